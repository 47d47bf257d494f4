package router_test

import (
	"fmt"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/router"
)

// manyChannels are channels with twenty models each, and three that take names by patterns. With own, no two channels list a model of
// one name.
func manyChannels(n int, own bool) []providers.Channel {
	var all []providers.Channel
	for i := range n {
		models := make(map[string]string)
		for m := range 20 {
			if own {
				m += 20 * i
			}
			models[fmt.Sprint("m-", m)] = ""
		}
		all = append(all, channel(fmt.Sprint("c-", i), "talks", func(c *providers.Channel) { c.Models, c.Priority = models, i%3 }))
	}
	for i := range 3 {
		all = append(all, channel(fmt.Sprint("wide-", i), "talks",
			func(c *providers.Channel) { c.Models = map[string]string{"m-1*": "", "*": ""} }))
	}
	return all
}

// TestLoadIsLinear: twice the channels are twice the work to load, whether they list models of the same names or of their own.
func TestLoadIsLinear(t *testing.T) {
	t.Parallel()
	for _, own := range []bool{false, true} {
		var compared [2]int
		for i, n := range []int{200, 400} {
			r := router.New(vendors(), manyChannels(n, own), nil)
			compared[i] = r.Compared()
			models := catalogue(r)
			want := 20
			if own {
				want *= n
			}
			if len(models) != want || own && len(models[0].Channels) != 4 || !own && len(models[0].Channels) != n+3 {
				t.Errorf("own %v, %d channels: %d models, the first one at %d channels", own, n, len(models), len(models[0].Channels))
			}
		}
		if growth := float64(compared[1]) / float64(compared[0]); compared[0] == 0 || growth > 2.01 {
			t.Errorf("own %v: %d and %d comparisons, a growth by %.2f", own, compared[0], compared[1], growth)
		}
	}
}

// BenchmarkLoad loads 2,000 channels with 20 models each.
func BenchmarkLoad(b *testing.B) {
	channels := manyChannels(2000, true)
	r := router.New(vendors(), channels, nil)
	for b.Loop() {
		r.Load(channels, nil)
	}
}
