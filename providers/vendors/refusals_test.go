package vendors_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
	"modelrelay/providers/vendors"
)

// submitTo submits a video to a vendor whose upstream answers as given.
func submitTo(t *testing.T, vendor, model, key string, status int, body string, req providers.VideoRequest) *providers.Fault {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	client := upstream.NewClient(nil)
	t.Cleanup(client.CloseIdleConnections)
	channel := providers.Channel{Name: "c", Vendor: vendor, BaseURL: server.URL, AllowPrivateResults: true}
	req.Model = model
	_, err := vendors.New(client)[vendor].Video.Submit(t.Context(),
		providers.Target{Channel: channel, Key: providers.Secret(key), Model: model}, req)
	if err == nil {
		t.Fatalf("%s: no fault", vendor)
	}
	return providers.AsFault(err)
}

// TestContentRefusals: what a vendor refuses for its content is the prompt's fault under every status: no key and no channel is blamed,
// and it is not sent again. The texts of xAI were seen in public reports.
func TestContentRefusals(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		vendor, model, key, body string
		status                   int
	}{
		"xai, guidelines": {
			"xai", "grok-imagine-video", "k",
			`{"code":"invalid-argument","error":"Generated video rejected: the prompt violates usage guidelines."}`, 400,
		},
		"xai, as a key": {
			"xai", "grok-imagine-video", "k",
			`{"code":"permission-denied","error":"Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_DATA_LEAKAGE"}`, 403,
		},
		"luma": {"luma", "ray-2", "k", `{"detail":"The prompt did not pass our content moderation."}`, 422},
		"vidu": {"vidu", "viduq2", "k", `{"message":"The prompt violates the content policy.","code":403}`, 403},
		"replicate": {
			"replicate", "owner/model", "k",
			`{"title":"Input flagged","detail":"The input was flagged as NSFW by the safety filter.","status":422}`, 422,
		},
	} {
		fault := submitTo(t, tc.vendor, tc.model, tc.key, tc.status, tc.body, providers.VideoRequest{Prompt: "p", Seconds: ""})
		if fault.Failed != providers.FailedContent || fault.Kind != providers.Invalid || fault.Blame != providers.BlameNone ||
			fault.Accepted != providers.NotAccepted || fault.Retryable() {
			t.Errorf("%s: got %+v", name, fault)
		}
	}
	// A key that is refused stays one.
	if fault := submitTo(t, "xai", "grok-imagine-video", "k", 403, `{"code":"permission-denied","error":"The key may not use this model."}`,
		providers.VideoRequest{Prompt: "p"}); fault.Blame != providers.BlameKey || fault.Failed != "" {
		t.Errorf("a forbidden key: %+v", fault)
	}
}

// TestVendorsOwnWords: facts in the vendors' error bodies, and refusals that the gateway makes before it sends.
func TestVendorsOwnWords(t *testing.T) {
	t.Parallel()
	throttled := submitTo(t, "replicate", "owner/model", "k", 429,
		`{"detail":"Request was throttled. Your rate limit resets in ~30s.","status":429}`, providers.VideoRequest{Prompt: "p"})
	if throttled.RetryAfter != 30*time.Second {
		t.Errorf("replicate's throttling: %+v", throttled)
	}
	if fault := submitTo(t, "pixverse", "v5", "k", 200, `{"ErrCode":0,"ErrMsg":"success","Resp":{"video_id":0}}`,
		providers.VideoRequest{Prompt: "p"}); fault.Accepted != providers.AcceptedUnknown {
		t.Errorf("pixverse without an id: %+v", fault)
	}
	table, _ := vendors.New(upstream.NewClient(nil))["runway"].VideoModels("gen4.5")
	short := providers.VideoRequest{Prompt: strings.Repeat("😀", 600), Seconds: "5", Size: "1280x720"}
	if fault := table.Check(short.Shape()); fault == nil || fault.Param != "prompt" {
		t.Errorf("1,200 UTF-16 units of 600 characters: %+v", fault)
	}
	legacy, _ := url.Parse("https://api.lumalabs.ai/dream-machine/v1")
	if err := vendors.New(upstream.NewClient(nil))["luma"].CheckBaseURL(legacy); err == nil || !strings.Contains(err.Error(), "legacy") {
		t.Errorf("luma's legacy address: %v", err)
	}
	shape := providers.VideoRequest{
		Prompt: "p", Resolution: "1080p",
		Inputs: []providers.Media{{Role: providers.Reference, URL: "https://a/b.png"}},
	}.Shape()
	if fault := vendors.New(upstream.NewClient(nil))["xai"].CheckVideo(providers.Channel{}, "grok-imagine-video-1.5", shape); fault == nil ||
		fault.Param != "resolution" {
		t.Errorf("xai's references with 1080p: %+v", fault)
	}
}
