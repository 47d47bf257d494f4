package pricing_test

import (
	"math"
	"testing"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/pricing"
)

func TestMoney(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		amount pricing.Money
		shown  string
	}{
		"0": {0, "0"}, "2.5": {2_500_000_000, "2.5"}, "1e-3": {1_000_000, "0.001"}, "0.000000001": {1, "0.000000001"},
		"9223372036.854775807": {math.MaxInt64, "9223372036.854775807"}, "10": {10_000_000_000, "10"}, ".5": {500_000_000, "0.5"},
	} {
		got, err := pricing.ParseMoney(text)
		if err != nil || got != want.amount || got.String() != want.shown {
			t.Errorf("ParseMoney(%q) = %d (%s), %v, want %d (%s)", text, int64(got), got, err, int64(want.amount), want.shown)
		}
	}
	for _, text := range []string{
		"", "-1", "+1", "abc", "0.0000000001", "9223372036.854775808", "1e999999999", "1/3", "0x10", "1_000", "NaN",
		"Inf", "1.2.3", "e5", "1e",
	} {
		if got, err := pricing.ParseMoney(text); err == nil {
			t.Errorf("ParseMoney(%q) = %s, want an error", text, got)
		}
	}
	if got := pricing.Money(-1_500_000_000).String(); got != "-1.5" {
		t.Errorf("a debt is written %q", got)
	}
}

func rate(t *testing.T, text string, per int64) *pricing.Rate {
	t.Helper()
	r, err := pricing.ParseRate(text, per)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCost(t *testing.T) {
	t.Parallel()
	const million = 1_000_000
	chat := pricing.Price{Input: rate(t, "2.5", million), Cached: rate(t, "1.25", million), Output: rate(t, "10", million)}
	plain := pricing.Price{Input: rate(t, "0.15", million), Output: rate(t, "0.6", million)}
	cases := map[string]struct {
		price   pricing.Price
		measure pricing.Measure
		want    string
	}{
		"nothing is free":         {chat, pricing.Measure{}, "0"},
		"no price":                {pricing.Price{}, pricing.Measure{Requests: 1, Usage: providers.Usage{Input: 5, Output: 5}}, "0"},
		"one token of each":       {chat, pricing.Measure{Usage: providers.Usage{Input: 2, Cached: 1, Output: 1}}, "0.00001375"},
		"cached at input's price": {plain, pricing.Measure{Usage: providers.Usage{Input: 1000, Cached: 1000}}, "0.00015"},
		"a million":               {chat, pricing.Measure{Usage: providers.Usage{Input: million, Output: million}}, "12.5"},
		"more cached than input":  {chat, pricing.Measure{Usage: providers.Usage{Input: 1, Cached: 2}}, "0.0000025"},
		"video by the second": {
			pricing.Price{VideoSecond: rate(t, "0.1", 1), Request: rate(t, "0.01", 1)},
			pricing.Measure{Requests: 1, Video: 8 * time.Second},
			"0.81",
		},
		"audio by the part": {
			pricing.Price{AudioSecond: rate(t, "0.006", 60)},
			pricing.Measure{Usage: providers.Usage{Audio: 1500 * time.Millisecond}},
			"0.00015",
		},
		"images": {pricing.Price{Image: rate(t, "0.04", 1)}, pricing.Measure{Usage: providers.Usage{Images: 3}}, "0.12"},
		"rounded up": {
			pricing.Price{Input: rate(t, "1", 3*moneyUnit)},
			pricing.Measure{Usage: providers.Usage{Input: 1}},
			"0.000000001",
		},
		"a video": {
			pricing.Price{VideoSecond: rate(t, "0.1", 1), Video: rate(t, "0.5", 1), Request: rate(t, "0.01", 1)},
			pricing.Measure{Requests: 1, Video: 8 * time.Second, Videos: 2},
			"1.81",
		},
		"tokens in place of seconds": {
			pricing.Price{Input: rate(t, "1", million), Output: rate(t, "17.5", million), VideoSecond: rate(t, "0.1", 1), Video: rate(t, "9", 1)},
			pricing.Measure{Videos: 1, Video: 6 * time.Second, Usage: providers.Usage{Input: 100, Output: 34752}},
			"0.60826",
		},
		"tokens that are not counted": {
			pricing.Price{Output: rate(t, "17.5", million), VideoSecond: rate(t, "0.1", 1)},
			pricing.Measure{Videos: 1, Video: 6 * time.Second},
			"0.6",
		},
		"tokens without a price": {
			pricing.Price{VideoSecond: rate(t, "0.1", 1)},
			pricing.Measure{Videos: 1, Video: 6 * time.Second, Usage: providers.Usage{Output: 34752}},
			"0.6",
		},
		"beyond what Money holds": {
			pricing.Price{Request: rate(t, "9000000000", 1), Image: rate(t, "9000000000", 1)},
			pricing.Measure{Requests: 1, Usage: providers.Usage{Images: 2}},
			"9223372036.854775807",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.price.Cost(c.measure); got.String() != c.want {
				t.Errorf("cost = %s, want %s", got, c.want)
			}
		})
	}
}

const moneyUnit = 1_000_000_000

func BenchmarkCost(b *testing.B) {
	price, err := pricing.ParseRate("2.5", 1_000_000)
	if err != nil {
		b.Fatal(err)
	}
	p := pricing.Price{Input: price, Cached: price, Output: price}
	for b.Loop() {
		p.Cost(pricing.Measure{Requests: 1, Usage: providers.Usage{Input: 1234, Cached: 1000, Output: 321}})
	}
}
