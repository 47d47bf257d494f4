package pricing_test

import (
	"errors"
	"slices"
	"testing"

	"modelrelay/providers/pricing"
)

// The list in small, in the shape that it had in November 2026.
const modelsDev = `{"openai": {"id": "openai", "models": {"gpt-4o": {"id": "gpt-4o", "cost": {"input": 2.5, "output": 10, "cache_read": 1.25}}, "free": {"id": "free"},
		"broken": {"cost": {"input": "much"}}, "negative": {"cost": {"input": -1}}}},
	"proxy": {"id": "proxy", "models": {"gpt-4o": {"cost": {"input": 3.50, "output": 12}}, "openai/o3": {"cost": {"input": 2.0}}}}, "empty": {"id": "empty"}}`

// TestOffers reads the public list.
func TestOffers(t *testing.T) {
	t.Parallel()
	offers, err := pricing.ParseOffers([]byte(modelsDev))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		vendor string
		names  []string
		want   pricing.Offer
		others []string
	}{
		{"openai", []string{"gpt-4o"}, pricing.Offer{Name: "openai/gpt-4o", Input: "2.5", Cached: "1.25", Output: "10"}, nil},
		{"proxy", []string{"other", "gpt-4o"}, pricing.Offer{Name: "proxy/gpt-4o", Input: "3.5", Output: "12"}, nil},
		{"azure", []string{"gpt-4o"}, pricing.Offer{}, []string{"openai/gpt-4o", "proxy/gpt-4o"}},
		{"openai", []string{"o3"}, pricing.Offer{Name: "proxy/openai/o3", Input: "2"}, nil},
		{"openai", []string{"free"}, pricing.Offer{}, nil},
		{"openai", []string{"broken"}, pricing.Offer{}, nil},
		{"openai", []string{"negative"}, pricing.Offer{}, nil},
		{"openai", []string{"unknown"}, pricing.Offer{}, nil},
	} {
		got, found, others := offers.Find(test.vendor, test.names...)
		if got != test.want || found != (test.want.Name != "") || !slices.Equal(others, test.others) {
			t.Errorf("%s %v: got %+v, %v, %v, want %+v, %v", test.vendor, test.names, got, found, others, test.want, test.others)
		}
	}
	for _, text := range []string{"", "[]", "{}", `"x"`, `{"data":[]}`, `{"a":{"models":{}}}`, `{"gpt-4o":{"price":1}}`, `{"a":`} {
		if _, err := pricing.ParseOffers([]byte(text)); !errors.Is(err, pricing.ErrOffers) {
			t.Errorf("%q: got %v, want ErrOffers", text, err)
		}
	}
}

// FuzzOffers: no list, however broken, ends the reader.
func FuzzOffers(f *testing.F) {
	f.Add([]byte(modelsDev))
	f.Fuzz(func(t *testing.T, list []byte) {
		offers, err := pricing.ParseOffers(list)
		if err != nil {
			return
		}
		offer, _, _ := offers.Find("openai", "gpt-4o", "", "/")
		for _, amount := range []pricing.Decimal{offer.Input, offer.Cached, offer.Output} {
			if amount == "" {
				continue
			}
			if _, err := pricing.ParseRate(string(amount), 1_000_000); err != nil && len(amount) < 20 {
				t.Errorf("%s is no price: %v", amount, err)
			}
		}
	})
}
