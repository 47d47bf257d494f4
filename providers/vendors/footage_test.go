package vendors_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/vendors"
)

// TestFootage: a request in a vendor's own fields costs what the same request in the contract's fields costs. Without such fields it costs
// the usual footage of the model.
func TestFootage(t *testing.T) {
	t.Parallel()
	vendors := vendors.New(http.DefaultClient)
	for _, tc := range []struct {
		vendor, model, own string
		want, usual        providers.Footage
	}{
		{
			"ark", "doubao-seedance-2-5-260628", `{"duration":10,"resolution":"1080p"}`,
			providers.Footage{Seconds: "10", Resolution: "1080p"},
			providers.Footage{Seconds: "5", Resolution: "720p"},
		},
		{
			"ark", "doubao-seedance-1-0-pro-250528", `{"frames":240}`,
			providers.Footage{Seconds: "10", Resolution: "1080p"},
			providers.Footage{Seconds: "5", Resolution: "1080p"},
		},
		{
			"fal", "fal-ai/some/model", `{"duration":"10","resolution":"1080p"}`,
			providers.Footage{Seconds: "10", Resolution: "1080p"},
			providers.Footage{},
		},
		{
			"generic", "m", `{"duration":10,"size":"1920x1080","n":2}`,
			providers.Footage{Seconds: "10", Resolution: "1080p", Videos: 2},
			providers.Footage{},
		},
		{
			"hailuo", "MiniMax-Hailuo-02", `{"duration":10,"resolution":"1080P"}`,
			providers.Footage{Seconds: "10", Resolution: "1080p"},
			providers.Footage{Seconds: "6", Resolution: "768p"},
		},
		{
			"hailuo", "MiniMax-H3", `{"duration":10,"resolution":"2K"}`,
			providers.Footage{Seconds: "10", Resolution: "2k"},
			providers.Footage{Seconds: "5", Resolution: "768p"},
		},
		{
			"kling", "kling-3.0", `{"settings":{"duration":15,"resolution":"4k","audio":"native"}}`,
			providers.Footage{Seconds: "15", Resolution: "4k", Audio: "true"},
			providers.Footage{Seconds: "5", Resolution: "720p"},
		},
		{
			"kling", "kling-v2-6", `{"duration":"10","mode":"pro","sound":"on"}`,
			providers.Footage{Seconds: "10", Resolution: "1080p", Audio: "true"},
			providers.Footage{Seconds: "5", Resolution: "720p"},
		},
		{
			"luma", "ray-3.2", `{"video":{"duration":"10s","resolution":"1080p"}}`,
			providers.Footage{Seconds: "10", Resolution: "1080p"},
			providers.Footage{Seconds: "5", Resolution: "720p"},
		},
		{
			"omni", "gemini-omni-1.2-flash", `{"response_format":{"duration":"15s","resolution":"4k"}}`,
			providers.Footage{Seconds: "15", Resolution: "4k"},
			providers.Footage{Seconds: "8", Resolution: "720p"},
		},
		{"openai", "sora-2", `{"size":"1792x1024"}`, providers.Footage{Seconds: "4", Resolution: "1024p"}, providers.Footage{Seconds: "4"}},
		{
			"pixverse", "v6", `{"duration":8,"quality":"1080p","generate_audio_switch":true}`,
			providers.Footage{Seconds: "8", Resolution: "1080p", Audio: "true"},
			providers.Footage{Seconds: "5", Resolution: "540p"},
		},
		{
			"replicate", "owner/model", `{"duration":10,"resolution":"1080p"}`,
			providers.Footage{Seconds: "10", Resolution: "1080p"},
			providers.Footage{},
		},
		{
			"runway", "gen4.5", `{"duration":10,"ratio":"1280:720"}`,
			providers.Footage{Seconds: "10", Resolution: "720p"},
			providers.Footage{Seconds: "5", Resolution: "720p"},
		},
		{
			"vendorc", "jimeng", `{"frames":241}`,
			providers.Footage{Seconds: "10", Resolution: "720p"},
			providers.Footage{Seconds: "5", Resolution: "720p"},
		},
		{
			"vendorc", "jimeng_ti2v_v30_pro", `{"frames":241}`,
			providers.Footage{Seconds: "10", Resolution: "1080p"},
			providers.Footage{Seconds: "5", Resolution: "1080p"},
		},
		{
			"veo", "veo-3.1-generate-001", `{"parameters":{"durationSeconds":8,"resolution":"4k","sampleCount":2,"generateAudio":false}}`,
			providers.Footage{Seconds: "8", Resolution: "4k", Videos: 2, Audio: "false"},
			providers.Footage{Seconds: "8", Resolution: "720p"},
		},
		{
			"vidu", "viduq2", `{"duration":8,"resolution":"1080p"}`,
			providers.Footage{Seconds: "8", Resolution: "1080p"},
			providers.Footage{Seconds: "5", Resolution: "720p"},
		},
		{
			"wan", "wan3.0-video", `{"parameters":{"duration":30,"resolution":"1080P"}}`,
			providers.Footage{Seconds: "30", Resolution: "1080p"},
			providers.Footage{Seconds: "5", Resolution: "1080p"},
		},
		{
			"wan", "wan2.6-t2v", `{"parameters":{"size":"1280*720"}}`,
			providers.Footage{Seconds: "5", Resolution: "720p"},
			providers.Footage{Seconds: "5", Resolution: "1080p"},
		},
		{
			"xai", "grok-imagine-video-1.5", `{"duration":15,"resolution":"1080p"}`,
			providers.Footage{Seconds: "15", Resolution: "1080p"},
			providers.Footage{Seconds: "6", Resolution: "480p"},
		},
		{
			"ltx", "ltx-2-3-pro", `{"duration":10,"resolution":"3840x2160"}`,
			providers.Footage{Seconds: "10", Resolution: "4k"},
			providers.Footage{Seconds: "6", Resolution: "1080p"},
		},
		{
			"bfl", "flux-3-video", `{"duration":10,"resolution":"fhd","generate_audio":false}`,
			providers.Footage{Seconds: "10", Resolution: "1080p", Audio: "false"},
			providers.Footage{Seconds: "5", Resolution: "720p"},
		},
		{
			"zhipu", "cogvideox-3", `{"duration":10,"size":"3840x2160"}`,
			providers.Footage{Seconds: "10", Resolution: "4k"},
			providers.Footage{Seconds: "5", Resolution: "1080p"},
		},
	} {
		vendor := vendors[tc.vendor]
		for name, req := range map[string]providers.VideoRequest{
			"metadata": {Prompt: "p", Metadata: json.RawMessage(tc.own)},
			"extra":    {Prompt: "p", Extra: json.RawMessage(tc.own)},
		} {
			sent, got := vendor.Complete(providers.Channel{}, tc.model, req)
			if got != tc.want {
				t.Errorf("%s %s, %s: got %+v, want %+v", tc.vendor, tc.model, name, got, tc.want)
			}
			if paths := vendor.VideoPaths.Footage(req); paths.Seconds != "" && sent.Seconds != "" {
				t.Errorf("%s %s, %s: the usual %s s overrule the caller's own", tc.vendor, tc.model, name, sent.Seconds)
			}
		}
		sent, got := vendor.Complete(providers.Channel{}, tc.model, providers.VideoRequest{Prompt: "p"})
		if got != tc.usual {
			t.Errorf("%s %s, no fields: got %+v, want %+v", tc.vendor, tc.model, got, tc.usual)
		}
		if known, ok := vendor.VideoModel(providers.Channel{}, tc.model); ok && len(known.Seconds) > 1 && sent.Seconds != tc.usual.Seconds {
			t.Errorf("%s %s: %q s are sent, want %s", tc.vendor, tc.model, sent.Seconds, tc.usual.Seconds)
		}
	}
	// The contract's fields overrule the vendor's own.
	both := providers.VideoRequest{
		Seconds: "4", Resolution: "720p",
		Metadata: json.RawMessage(`{"parameters":{"durationSeconds":8,"resolution":"4k"}}`),
	}
	if _, got := vendors["veo"].Complete(providers.Channel{}, "veo-3.1-generate-001",
		both); got != (providers.Footage{Seconds: "4", Resolution: "720p"}) {
		t.Errorf("both: got %+v", got)
	}
	// A model that reads only the ratio of a size makes its own resolution.
	small := providers.VideoRequest{Prompt: "p", Width: 1280, Height: 720}
	if _, got := vendors["vendorc"].Complete(providers.Channel{}, "jimeng_ti2v_v30_pro", small); got.Resolution != "1080p" {
		t.Errorf("a size at a model of one resolution: got %+v", got)
	}
	// A video that is continued has the length of its source.
	extended := providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{{Role: providers.ExtendVideo}}}
	if _, got := vendors["veo"].Complete(providers.Channel{}, "veo-3.1-generate-001", extended); got != (providers.Footage{}) {
		t.Errorf("extended: got %+v", got)
	}
}

// FuzzFootage: no parameters of a caller crash the reader, or make a length that is none.
func FuzzFootage(f *testing.F) {
	f.Add(`{"parameters":{"durationSeconds":8,"resolution":"4k"}}`)
	f.Add(`{"frames":1}`)
	f.Add(`{"video":{"duration":"1e400s"},"frames":-1,"size":"9999999999999999999x1","n":"x"}`)
	vendors := vendors.New(http.DefaultClient)
	f.Fuzz(func(t *testing.T, own string) {
		for name, vendor := range vendors {
			if got := vendor.VideoPaths.Footage(providers.VideoRequest{Metadata: json.RawMessage(own)}); got.Seconds == "0" || got.Videos < 0 {
				t.Errorf("%s: got %+v", name, got)
			}
		}
	})
}
