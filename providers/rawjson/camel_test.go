package rawjson_test

import (
	"testing"

	"modelrelay/providers/rawjson"
)

// TestCamel: a name matches in camel case and in snake case, as in Google's APIs.
func TestCamel(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"a": "a", "max_items": "maxItems", "maxItems": "maxItems", "_x_": "X", "a__b2_c": "aB2C"} {
		if got := rawjson.Camel(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	for name, want := range map[string]bool{
		"max_items": true, "maxItems": true, `m\u0061xItems`: true, "maxitems": false, "max_item": false, "maxItems_": false, "maxItemss": false,
		"": false,
	} {
		if got := rawjson.Text(`"` + name + `"`).IsCamel("maxItems"); got != want {
			t.Errorf("%s: got %v", name, got)
		}
	}
	if got := rawjson.Value(`{"max_items":1,"maxItems":2,"x":3}`).GetCamel("maxItems"); string(got) != "2" {
		t.Errorf("got %s", got)
	}
}
