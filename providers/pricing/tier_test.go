package pricing_test

import (
	"testing"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/pricing"
)

// TestTiers: the first tier that surely fits counts; where something is not known, the dearest that may is reserved.
func TestTiers(t *testing.T) {
	t.Parallel()
	price := pricing.Price{VideoSecond: rate(t, "0.3", 1), Output: rate(t, "10", 1_000_000), Tiers: []pricing.Tier{
		{Resolution: "720p", Sound: pricing.SoundOff, Second: rate(t, "0.1", 1)},
		{Resolution: "720p", Second: rate(t, "0.2", 1)},
		{Resolution: "4k", Video: rate(t, "7", 1)},
		{Sound: pricing.SoundOn, Second: rate(t, "0.5", 1)},
	}}
	for name, c := range map[string]struct {
		measure    pricing.Measure
		cost, most string
	}{
		"silent 720p":   {pricing.Measure{Resolution: "720p", Sound: pricing.SoundOff}, "1", "1"},
		"720p":          {pricing.Measure{Resolution: "720p", Sound: pricing.SoundOn}, "2", "2"},
		"either 720p":   {pricing.Measure{Resolution: "720p"}, "2", "2"},
		"4k by piece":   {pricing.Measure{Resolution: "4k", Sound: pricing.SoundOn}, "7", "7"},
		"two 4k":        {pricing.Measure{Resolution: "4k", Videos: 2}, "14", "14"},
		"sound":         {pricing.Measure{Resolution: "1080p", Sound: pricing.SoundOn}, "5", "5"},
		"no tier":       {pricing.Measure{Resolution: "1080p", Sound: pricing.SoundOff}, "3", "3"},
		"sound unknown": {pricing.Measure{Resolution: "1080p"}, "3", "5"},
		"unknown":       {pricing.Measure{}, "3", "7"},
		"by tokens":     {pricing.Measure{Resolution: "4k", Usage: providers.Usage{Output: 1000}}, "0.01", "7.01"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := c.measure
			m.Video, m.Videos = 10*time.Second, max(1, m.Videos)
			if got, most := price.Cost(m).String(), price.Most(m).String(); got != c.cost || most != c.most {
				t.Errorf("got %s, at most %s, want %s, %s", got, most, c.cost, c.most)
			}
		})
	}
}
