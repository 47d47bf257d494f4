package trial_test

import (
	"net/http"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/pricing"
	"modelrelay/providers/trial"
	"modelrelay/providers/vendors"
)

// TestPlan: the cheapest video that a model makes is one that its vendor takes.
func TestPlan(t *testing.T) {
	t.Parallel()
	vendors := vendors.New(http.DefaultClient)
	for _, tc := range []struct {
		vendor, model, seconds, resolution, size string
		silent                                   bool
		inputs                                   int
	}{
		{"ark", "doubao-seedance-2-0-260128", "4", "480p", "", true, 0},
		{"fal", "fal-ai/veo3.1", "4", "720p", "", true, 0},
		{"fal", "fal-ai/kling-video/v3/pro/image-to-video", "3", "", "", true, 1},
		{"hailuo", "MiniMax-H3", "4", "768p", "", false, 0},
		{"hailuo", "MiniMax-Hailuo-02", "6", "", "", false, 0},
		{"kling", "kling-3.0", "3", "720p", "", true, 0},
		{"luma", "ray-3.2", "5", "540p", "", false, 0},
		{"omni", "gemini-omni-1.2-flash", "3", "360p", "", false, 0},
		{"pixverse", "v6", "1", "360p", "", true, 0},
		{"replicate", "google/veo-3.1", "4", "720p", "", true, 0},
		{"runway", "gen4.5", "2", "", "", false, 0},
		{"runway", "gen4_turbo", "2", "", "1104x832", false, 1},
		{"veo", "veo-3.1-generate-001", "4", "720p", "", true, 0},
		{"veo", "veo-3.1-generate-preview", "4", "720p", "", false, 0},
		{"vidu", "viduq3-turbo", "1", "540p", "", true, 0},
		{"wan", "wan3.0-video", "2", "480p", "", true, 0},
		{"xai", "grok-imagine-video", "1", "480p", "", true, 0},
		{"zhipu", "cogvideox-3", "5", "", "1280x720", true, 0},
		{"openai", "sora-2", "", "", "", false, 0},
	} {
		t.Run(tc.vendor+" "+tc.model, func(t *testing.T) {
			t.Parallel()
			ask, err := trial.New(vendors[tc.vendor], providers.Channel{Name: "main", Vendor: tc.vendor, Models: map[string]string{"film": tc.model}, Keys: []providers.Secret{"k"}}, "")
			if err != nil {
				t.Fatal(err)
			}
			plan, err := ask.Plan("", nil)
			if err != nil {
				t.Fatal(err)
			}
			req := plan.Request
			if silent := req.GenerateAudio != nil && !*req.GenerateAudio; req.Seconds != tc.seconds || req.Resolution != tc.resolution || req.Size != tc.size ||
				silent != tc.silent || len(req.Inputs) != tc.inputs || plan.Model != "film" || plan.Upstream != tc.model || plan.Priced {
				t.Errorf("got %s s, %q, %q, silent %t, %d inputs of %s", req.Seconds, req.Resolution, req.Size, silent, len(req.Inputs), plan.Upstream)
			}
		})
	}
}

// TestPlanPrice: of several models the one whose video costs least is made, by the tier that fits it.
func TestPlanPrice(t *testing.T) {
	t.Parallel()
	rate := func(text string) *pricing.Rate {
		r, err := pricing.ParseRate(text, 1)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	prices := pricing.NewList(map[string]pricing.Price{
		"dear":  {VideoSecond: rate("1")},
		"cheap": {VideoSecond: rate("9"), Tiers: []pricing.Tier{{Resolution: "540p", Second: rate("0.03")}}},
	})
	ask, err := trial.New(vendors.New(http.DefaultClient)["luma"], providers.Channel{
		Name: "main", Vendor: "luma", Models: map[string]string{"a": "ray-3.2", "cheap": "ray-3.2", "dear": "ray-3.2", "*": ""}, Keys: []providers.Secret{"k"},
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := ask.Plan("", prices)
	if err != nil || plan.Model != "cheap" || plan.Price.String() != "0.15" {
		t.Errorf("got %s for %s, %v", plan.Model, plan.Price, err)
	}
	if plan, err = ask.Plan("dear", prices); err != nil || plan.Price.String() != "5" {
		t.Errorf("got %s for %s, %v", plan.Model, plan.Price, err)
	}
	for model, vendor := range map[string]string{"aleph2": "runway", "wan2.7-videoedit": "wan"} { // they change a video
		ask, err := trial.New(vendors.New(http.DefaultClient)[vendor], providers.Channel{Name: "main", Models: map[string]string{model: ""}, Keys: []providers.Secret{"k"}}, "")
		if err != nil {
			t.Fatal(err)
		}
		if plan, err := ask.Plan("", nil); err == nil {
			t.Errorf("%s: planned %+v", model, plan.Request)
		}
	}
}
