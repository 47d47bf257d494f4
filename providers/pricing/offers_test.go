package pricing_test

import (
	"errors"
	"slices"
	"testing"

	"modelrelay/providers/pricing"
)

// The lists in small, in the shapes that they had in November 2026.
const (
	litellm = `{
		"sample_spec": {"input_cost_per_token": 0.0, "mode": "one of: chat, embedding", "max_tokens": "a text where a number is expected"},
		"gpt-4o": {"input_cost_per_token": 2.5e-06, "cache_read_input_token_cost": 1.25e-06, "output_cost_per_token": 1e-05, "mode": "chat", "litellm_provider": "openai"},
		"azure/gpt-4o": {"input_cost_per_token": 2.75e-06, "output_cost_per_token": 1.1e-05, "mode": "chat"},
		"gemini/gemini-2.5-pro": {"input_cost_per_token": 1.25e-06, "input_cost_per_token_above_200k_tokens": 2.5e-06, "output_cost_per_token": 1e-05, "mode": "chat"},
		"vertex_ai/claude-sonnet-4-5": {"input_cost_per_token": 3e-06, "output_cost_per_token": 1.5e-05, "mode": "chat"},
		"bedrock/claude-sonnet-4-5": {"input_cost_per_token": 3.3e-06, "output_cost_per_token": 1.65e-05, "mode": "chat"},
		"whisper-1": {"input_cost_per_second": 0.0001, "output_cost_per_second": 0.0001, "mode": "audio_transcription"},
		"dall-e-3": {"input_cost_per_image": 0.04, "mode": "image_generation"},
		"openai/sora-2": {"output_cost_per_video_per_second": 0.1, "mode": "video_generation"},
		"broken": {"input_cost_per_token": "much"}, "negative": {"input_cost_per_token": -1}
	}`
	modelsDev = `{"openai": {"id": "openai", "models": {"gpt-4o": {"id": "gpt-4o", "cost": {"input": 2.5, "output": 10, "cache_read": 1.25}}, "free": {"id": "free"}}},
		"proxy": {"id": "proxy", "models": {"gpt-4o": {"cost": {"input": 3, "output": 12}}}}}`
	openRouter = `{"data": [
		{"id": "openai/gpt-4o", "pricing": {"prompt": "0.0000025", "completion": "0.00001", "input_cache_read": "0.00000125", "request": "0", "image": "0.003613"}},
		{"id": "openrouter/auto", "pricing": {"prompt": "-1", "completion": "-1"}}, 7]}`
)

// TestOffers reads each of the public lists.
func TestOffers(t *testing.T) {
	t.Parallel()
	gpt := pricing.Offer{Input: "2.5", Cached: "1.25", Output: "10"}
	named := func(name string, o pricing.Offer) pricing.Offer { o.Name = name; return o }
	for _, test := range []struct {
		list, source, vendor string
		names                []string
		want                 pricing.Offer
		others               []string
	}{
		{litellm, pricing.LiteLLM, "openai", []string{"gpt-4o"}, named("gpt-4o", gpt), nil},
		{litellm, pricing.LiteLLM, "azure", []string{"other", "gpt-4o"}, named("gpt-4o", gpt), nil},
		{litellm, pricing.LiteLLM, "gemini", []string{"gemini-2.5-pro"}, pricing.Offer{Name: "gemini/gemini-2.5-pro", Input: "1.25", Output: "10"}, nil},
		{litellm, pricing.LiteLLM, "anthropic", []string{"claude-sonnet-4-5"}, pricing.Offer{}, []string{"bedrock/claude-sonnet-4-5", "vertex_ai/claude-sonnet-4-5"}},
		{litellm, pricing.LiteLLM, "openai", []string{"whisper-1"}, pricing.Offer{Name: "whisper-1", AudioSecond: "0.0001"}, nil},
		{litellm, pricing.LiteLLM, "openai", []string{"dall-e-3"}, pricing.Offer{Name: "dall-e-3", Image: "0.04"}, nil},
		{litellm, pricing.LiteLLM, "other", []string{"sora-2"}, pricing.Offer{Name: "openai/sora-2", Second: "0.1"}, nil},
		{litellm, pricing.LiteLLM, "openai", []string{"broken"}, pricing.Offer{}, nil},
		{litellm, pricing.LiteLLM, "openai", []string{"negative"}, pricing.Offer{}, nil},
		{litellm, pricing.LiteLLM, "openai", []string{"nobody"}, pricing.Offer{}, nil},
		{modelsDev, pricing.ModelsDev, "openai", []string{"gpt-4o"}, named("openai/gpt-4o", gpt), nil},
		{modelsDev, pricing.ModelsDev, "azure", []string{"gpt-4o"}, pricing.Offer{}, []string{"openai/gpt-4o", "proxy/gpt-4o"}},
		{modelsDev, pricing.ModelsDev, "openai", []string{"free"}, pricing.Offer{}, nil},
		{openRouter, pricing.OpenRouter, "openai", []string{"gpt-4o"}, named("openai/gpt-4o", gpt), nil},
		{openRouter, pricing.OpenRouter, "azure", []string{"gpt-4o"}, named("openai/gpt-4o", gpt), nil},
		{openRouter, pricing.OpenRouter, "openrouter", []string{"auto"}, pricing.Offer{}, nil},
	} {
		offers, err := pricing.ParseOffers([]byte(test.list))
		if err != nil || offers.Source != test.source {
			t.Fatalf("%s: %v", test.source, err)
		}
		got, found, others := offers.Find(test.vendor, test.names...)
		if got != test.want || found != (test.want.Name != "") || !slices.Equal(others, test.others) {
			t.Errorf("%s: %s %v: got %+v, %v, %v, want %+v, %v", test.source, test.vendor, test.names, got, found, others, test.want, test.others)
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
	for _, list := range []string{litellm, modelsDev, openRouter} {
		f.Add([]byte(list))
	}
	f.Fuzz(func(t *testing.T, list []byte) {
		offers, err := pricing.ParseOffers(list)
		if err != nil {
			return
		}
		offer, _, _ := offers.Find("openai", "gpt-4o", "", "/")
		for _, amount := range []pricing.Decimal{offer.Input, offer.Cached, offer.Output, offer.Request, offer.Image, offer.AudioSecond, offer.Second} {
			if amount == "" {
				continue
			}
			if _, err := pricing.ParseRate(string(amount), 1_000_000); err != nil && len(amount) < 20 {
				t.Errorf("%s is no price: %v", amount, err)
			}
		}
	})
}
