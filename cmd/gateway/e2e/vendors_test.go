package e2e_test

import (
	"testing"

	"github.com/openai/openai-go/v3"
)

// TestVendors drives a task over each vendor's adapter against its fake upstream, links that ran out included.
func TestVendors(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	g := s.gateway(gatewayOptions{channels: s.everyVendor()})
	for _, vendor := range []struct{ name, model, upstreamModel string }{
		{"vendorc", "jimeng", "jimeng_t2v_v30"},
	} {
		t.Run(vendor.name, func(t *testing.T) {
			sdk := g.sdk()
			video, err := sdk.Videos.New(t.Context(), openai.VideoNewParams{
				Prompt: vendor.name + " at dawn", Model: openai.VideoModel(vendor.model + "-fast"), Seconds: "5", Size: "1280x720",
			})
			if err != nil {
				t.Fatal(err)
			}
			g.completed(video.ID, taskTimeout)

			failing := g.create(t.Context(), vendor.model+"-fast-fail", vendor.name+" is doomed")
			if ended := g.end(failing.ID, taskTimeout); ended.Status != openai.VideoStatusFailed || ended.Error.Code == "" || ended.Error.Message == "" {
				t.Errorf("ended = %s", ended.RawJSON())
			}

			// The first link is dead when it comes; the next one works.
			manual := g.create(t.Context(), vendor.model+"-manual", vendor.name+" and an old link")
			s.control.wait("video.get", vendor.upstreamModel+"_manual", "", 1)
			s.control.rule(map[string]any{"vendor": vendor.name, "operation": "video.content", "action": "status", "status": 403, "times": 1})
			s.control.drive(s.control.job(vendor.name+" and an old link").ID, "completed", 100)
			g.completed(manual.ID, taskTimeout)
			s.control.clear()
		})
	}
	g.secretsNowhere(t)
}
