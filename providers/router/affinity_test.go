package router_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"modelrelay/providers"
	"modelrelay/providers/router"
)

// TestAffinity: calls with the same affinity go to the same channel and key, in every process. Different affinities spread by
// weight. A channel that cools down moves only its own calls.
func TestAffinity(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		configured := []providers.Channel{
			channel("low", "talks", func(c *providers.Channel) { c.Priority = -1 }),
			channel("a", "talks", func(c *providers.Channel) { c.Keys = []providers.Secret{"k0", "k1", "k2"} }),
			channel("b", "talks"), channel("c", "talks", func(c *providers.Channel) { c.Weight = 2 }),
		}
		routes, other := router.New(vendors(), configured, nil), router.New(vendors(), configured, nil)
		with := func(affinity uint64) func(*router.Request) {
			return func(want *router.Request) { want.Affinity = affinity }
		}
		const callers = 4000
		homes, share := make([]string, callers), make(map[string]int)
		for i := range homes {
			to := pickOf(t, routes, with(uint64(i)+1))
			homes[i] = to.Channel.Name + to.Key.Reveal()
			share[to.Channel.Name]++
			share[homes[i]]++
			if to := pickOf(t, other, with(uint64(i)+1)); to.Channel.Name+to.Key.Reveal() != homes[i] {
				t.Fatalf("caller %d: another process picks %s, this one %s", i, to.Channel.Name, homes[i])
			}
		}
		for name, want := range map[string]int{
			"a": callers / 4, "b": callers / 4, "c": callers / 2, "low": 0, "ak0": callers / 12,
			"ak1": callers / 12,
		} {
			if diff := share[name] - want; diff < -200 || diff > 200 {
				t.Errorf("%s: got %d of %d callers, want about %d", name, share[name], callers, want)
			}
		}
		to := pickOf(t, routes, func(want *router.Request) { want.Only = []string{"b"} })
		for range failures {
			routes.Report(to, down())
		}
		for i, home := range homes {
			to := pickOf(t, routes, with(uint64(i)+1))
			if got := to.Channel.Name + to.Key.Reveal(); got != home && !strings.HasPrefix(home, "b") || strings.HasPrefix(got, "b") {
				t.Fatalf("caller %d moved from %s to %s while b cools down", i, home, got)
			}
		}
	})
}

// TestOrigin: a call continues at the channel and key of its origin, whatever their priority, and even while they cool down. If the
// origin is removed or already tried, another channel is picked.
func TestOrigin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		routes := router.New(vendors(), []providers.Channel{
			channel("best", "talks", func(c *providers.Channel) { c.Priority = 1 }),
			channel("made", "talks", func(c *providers.Channel) { c.Keys = []providers.Secret{"k0", "k1"} }),
			channel("films", "films"),
		}, nil)
		of := func(channel string, key providers.Secret) providers.KeyRef {
			return providers.KeyRef{Channel: channel, Fingerprint: key.Fingerprint()}
		}
		from := func(origin providers.KeyRef) func(*router.Request) {
			return func(want *router.Request) { want.Origin = origin }
		}
		for range 3 {
			if to := pickOf(t, routes, from(of("made", "k1"))); to.Channel.Name != "made" || to.Key != "k1" {
				t.Errorf("got %s, want the origin", to.Channel.Name)
			}
		}
		to := pickOf(t, routes, from(of("made", "k1")))
		for range failures {
			routes.Report(to, down())
		}
		if to := pickOf(t, routes, from(of("made", "k1"))); to.Channel.Name != "made" {
			t.Errorf("got %s while the origin cools down", to.Channel.Name)
		}
		for _, origin := range []providers.KeyRef{of("gone", "k1"), of("made", "k9"), of("films", "key-films")} {
			if to := pickOf(t, routes, from(origin)); to.Channel.Name != "best" {
				t.Errorf("got %s, although %v cannot serve", to.Channel.Name, origin)
			}
		}
		for _, tried := range []func(*router.Request){
			func(want *router.Request) { want.Exclude = []string{"made"} },
			func(want *router.Request) { want.ExcludeKeys = []providers.KeyRef{of("made", "k1")} },
		} {
			if to := pickOf(t, routes, from(of("made", "k1")), tried); to.Channel.Name != "best" {
				t.Errorf("got %s after the origin was tried", to.Channel.Name)
			}
		}
	})
}
