package pricing_test

import (
	"encoding/json"
	"testing"

	"modelrelay/providers/pricing"
)

// TestRatePer: a rate is shown as it was written.
func TestRatePer(t *testing.T) {
	t.Parallel()
	for text, per := range map[string]int64{
		"2.5": 1_000_000, "0": 1, "0.075": 1_000_000, "0.00000125": 1, "10": 1000, "0.000006": 60,
		"123456.789": 1,
	} {
		if got := rate(t, text, per).Per(per); string(got) != text {
			t.Errorf("%s for %d is shown as %s", text, per, got)
		}
	}
	if got := rate(t, "0.0000025", 1).Per(1_000_000); got != "2.5" {
		t.Errorf("a token's price for a million is shown as %s", got)
	}
	if got := (*pricing.Rate)(nil).Per(1); got != "" {
		t.Errorf("no price is shown as %s", got)
	}
	raw, err := json.Marshal(map[string]pricing.Decimal{"a": "2.50", "b": ""})
	if err != nil || string(raw) != `{"a":2.50,"b":null}` {
		t.Errorf("written as %s, %v", raw, err)
	}
	var read map[string]pricing.Decimal
	if err := json.Unmarshal([]byte(`{"a":2.5e-7,"b":null,"c":"1"}`), &read); err != nil || read["a"] != "0.00000025" || read["b"] != "" ||
		read["c"] != "1" {
		t.Errorf("read %v, %v", read, err)
	}
	if err := json.Unmarshal([]byte(`{"a":"1/3"}`), &read); err == nil {
		t.Error("a fraction is read as a decimal number")
	}
}
