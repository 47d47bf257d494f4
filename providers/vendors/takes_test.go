package vendors_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"modelrelay/providers/vendors"
)

// TestTakes: the endpoints that translated calls are made at stand with their vendors, and no other vendor has any.
func TestTakes(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"anthropic": "anthropic.messages anthropic.count_tokens",
		"gemini":    "gemini.generate_content gemini.stream_content gemini.count_tokens gemini.embeddings gemini.batch_embeddings",
		"openai":    "openai.responses openai.chat openai.input_tokens openai.embeddings",
	}
	for name, vendor := range vendors.New(http.DefaultClient) {
		var takes []string
		for _, endpoint := range vendor.Takes {
			takes = append(takes, endpoint.String())
		}
		for endpoint := range strings.FieldsSeq(want[name]) {
			if !slices.Contains(takes, endpoint) {
				t.Errorf("%s takes %v, want %s", name, takes, endpoint)
			}
		}
		if want[name] == "" && len(takes) > 0 {
			t.Errorf("%s takes %v, want nothing", name, takes)
		}
	}
}
