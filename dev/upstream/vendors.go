package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"

	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/fakeanthropic"
	"modelrelay/dev/upstream/fakeark"
	"modelrelay/dev/upstream/fakebfl"
	"modelrelay/dev/upstream/fakefal"
	"modelrelay/dev/upstream/fakegemini"
	"modelrelay/dev/upstream/fakegeneric"
	"modelrelay/dev/upstream/fakehailuo"
	"modelrelay/dev/upstream/fakekling"
	"modelrelay/dev/upstream/fakeltx"
	"modelrelay/dev/upstream/fakeluma"
	"modelrelay/dev/upstream/fakeomni"
	"modelrelay/dev/upstream/fakeopenai"
	"modelrelay/dev/upstream/fakepixverse"
	"modelrelay/dev/upstream/fakereplicate"
	"modelrelay/dev/upstream/fakerunway"
	"modelrelay/dev/upstream/fakevendorc"
	"modelrelay/dev/upstream/fakeveo"
	"modelrelay/dev/upstream/fakevidu"
	"modelrelay/dev/upstream/fakewan"
	"modelrelay/dev/upstream/fakexai"
	"modelrelay/dev/upstream/fakezhipu"
	"modelrelay/dev/upstream/jobs"
)

// Channel leads to a fake vendor. The development stack and the tests over all vendors make their channels of it.
type Channel struct {
	// Name is the channel's. Vendor is the product's name of the vendor; "" in the table: as the channel.
	Name   string `json:"name"`
	Vendor string `json:"vendor"`
	// Path is that of base_url.
	Path string `json:"path"`
	// Keys are accepted by the fake, also with another text in place of "one"; Account: a service account's. None in the table:
	// sk-upstream-one.
	Keys []string `json:"keys"`
	// Models are upstream names by public names.
	Models map[string]string `json:"models"`
	// Fields is the channel's option of this name, in YAML.
	Fields string `json:"-"`
	// Video is what tests make at the channel; nil: none.
	Video *Video `json:"video"`
}

// Account is the key of a channel whose key is the service account of /veo/service_account.json.
const Account = "account"

// Video is a video that the model of a channel makes from a prompt and, unless TextOnly, from a first frame as well.
type Video struct {
	Model string `json:"model"` // the vendor's name
	// Seconds and Size are values that the model takes; in the table 0 is 5 and "" is 1280x720.
	Seconds  int    `json:"seconds"`
	Size     string `json:"size"`
	TextOnly bool   `json:"text_only"`
	// Named: the fake's digest of the frame is that of the text that named it, not of the bytes.
	Named bool `json:"named"`
	// Repeats: a create whose answer was lost is found by the same create again, under its idempotency key.
	Repeats bool `json:"repeats"`
	// Content is the operation whose answer holds the result; "" for video.content, the answer of a link.
	Content string `json:"content"`
	// Unknown is a model that a create is refused for; "" in the table is "unknown", Late a vendor that fails the job instead.
	Unknown string `json:"unknown"`
}

// Late is the Unknown of a vendor that accepts a create of a model that it does not have.
const Late = "-"

// vendor is a fake: it adds its paths to the server, under a prefix that is its name.
type vendor struct {
	serve    func(*fake.Server)
	channels []Channel
}

// same are models whose public names are the vendor's.
func same(names ...string) map[string]string {
	models := make(map[string]string, len(names))
	for _, name := range names {
		models[name] = ""
	}
	return models
}

// vendors is the table of fakes.
func vendors() []vendor {
	return []vendor{
		{fakeopenai.Serve, []Channel{{
			Name: "openai", Path: "/openai/v1", Keys: []string{"sk-upstream-one", "sk-upstream-two"}, Video: &Video{Model: "sora-2", Seconds: 4},
			Models: same("gpt-4o", "gpt-4o-mini", "sora-2", "sora-2-pro", "text-embedding-3-small", "whisper-1", "tts-1", "gpt-image-1",
				"omni-moderation-latest", "gpt-realtime"),
		}}},
		{fakeanthropic.Serve, []Channel{{Name: "anthropic", Path: "/anthropic", Models: same("claude-sonnet-5")}}},
		{fakegemini.Serve, []Channel{{Name: "gemini", Path: "/gemini", Models: same("gemini-2.5-flash")}}},
		{fakevendorc.Serve, []Channel{{
			Name: "vendorc", Path: "/vendorc", Keys: []string{"ak-upstream-one:sk-upstream-one"},
			Video:  &Video{Model: "jimeng_ti2v_v30_pro", Unknown: Late},
			Models: same("jimeng_t2v_v30", "jimeng_i2v_first_v30", "jimeng_ti2v_v30_pro"),
		}}},
		{fakegeneric.Serve, []Channel{{
			Name: "generic", Path: "/generic/v1", Models: same("generic-video"),
			Video: &Video{Model: "generic-video", Seconds: 4, Named: true, Repeats: true},
		}}},
		{fakeark.Serve, []Channel{{
			Name: "ark", Path: "/ark/api/v3", Models: same("doubao-seedance-2-0-260128", "doubao-seedance-2-5-260628"),
			Video: &Video{Model: "doubao-seedance-2-0-260128"},
		}}},
		{fakebfl.Serve, []Channel{{Name: "bfl", Path: "/bfl", Models: same("flux-3-video"), Video: &Video{Model: "flux-3-video"}}}},
		{fakefal.Serve, []Channel{
			{
				Name: "fal", Path: "/fal", Models: map[string]string{"veo-3.1-fal": "fal-ai/veo3.1"},
				Video: &Video{Model: "fal-ai/veo3.1", Seconds: 8, TextOnly: true, Unknown: "unknown/app"},
			},
			{
				Name: "fal-image", Vendor: "fal", Path: "/fal", Models: map[string]string{"mover": "some-one/mover"},
				Video:  &Video{Model: "some-one/mover", Unknown: "unknown/app"},
				Fields: "{some-one/mover: {image: start_image_url, last_image: end_image_url, seconds: {name: duration, as: text}}}",
			},
		}},
		{fakehailuo.Serve, []Channel{{
			Name: "hailuo", Path: "/hailuo", Models: same("MiniMax-H3", "MiniMax-Hailuo-02"),
			Video: &Video{Model: "MiniMax-H3", Size: "1366x768", Unknown: Late},
		}}},
		{fakekling.Serve, []Channel{{
			Name: "kling", Path: "/kling", Models: same("kling-3.0", "kling-3.0-omni"),
			Video: &Video{Model: "kling-3.0"},
		}}},
		{fakeltx.Serve, []Channel{{
			Name: "ltx", Path: "/ltx", Models: same("ltx-2-5-fast", "ltx-2-5-pro"),
			Video: &Video{Model: "ltx-2-5-pro", Seconds: 6},
		}}},
		{fakeluma.Serve, []Channel{{Name: "luma", Path: "/luma/v1", Models: same("ray-3.2"), Video: &Video{Model: "ray-3.2"}}}},
		{fakeomni.Serve, []Channel{{
			Name: "omni", Path: "/omni/v1beta", Models: same("gemini-omni-1.2-flash"),
			Video: &Video{Model: "gemini-omni-1.2-flash", Seconds: 6},
		}}},
		{fakepixverse.Serve, []Channel{{
			Name: "pixverse", Path: "/pixverse", Models: map[string]string{"pixverse-v6": "v6"},
			Video: &Video{Model: "v6"},
		}}},
		{fakereplicate.Serve, []Channel{{
			Name: "replicate", Path: "/replicate/v1", Models: map[string]string{"veo-3.1-replicate": "google/veo-3.1"},
			Video: &Video{Model: "google/veo-3.1", Seconds: 8, Unknown: "community/app"},
		}}},
		{fakerunway.Serve, []Channel{{Name: "runway", Path: "/runway", Models: same("gen4.5", "gen4_turbo"), Video: &Video{Model: "gen4.5"}}}},
		{fakeveo.Serve, []Channel{
			{
				Name: "veo", Path: "/veo/v1/projects/fake-project/locations/us-central1", Keys: []string{Account},
				Models: same("veo-3.1-generate-001", "veo-3.1-fast-generate-001"),
				Video:  &Video{Model: "veo-3.1-generate-001", Seconds: 8, Content: "video.get"},
			},
			{
				Name: "veo-key", Vendor: "veo", Path: "/veo/v1beta", Models: same("veo-3.1-generate-preview"),
				Video: &Video{Model: "veo-3.1-generate-preview", Seconds: 8},
			},
		}},
		{fakevidu.Serve, []Channel{{Name: "vidu", Path: "/vidu", Models: same("viduq3-turbo"), Video: &Video{Model: "viduq3-turbo"}}}},
		{fakewan.Serve, []Channel{{
			Name: "wan", Path: "/wan", Models: same("wan3.0-video", "wan2.7-t2v", "wan2.7-i2v"),
			Video: &Video{Model: "wan3.0-video", Unknown: Late},
		}}},
		{fakexai.Serve, []Channel{{
			Name: "xai", Path: "/xai/v1", Models: same("grok-imagine-video", "grok-imagine-video-1.5"),
			Video: &Video{Model: "grok-imagine-video", Seconds: 6},
		}}},
		{fakezhipu.Serve, []Channel{{Name: "zhipu", Path: "/zhipu", Models: same("cogvideox-3"), Video: &Video{Model: "cogvideox-3"}}}},
	}
}

// Channels are the channels to all fakes.
func Channels() []Channel {
	var channels []Channel
	for _, v := range vendors() {
		for _, c := range v.channels {
			c.Vendor = cmp.Or(c.Vendor, c.Name)
			if c.Keys == nil {
				c.Keys = []string{"sk-upstream-one"}
			}
			if c.Video != nil {
				c.Video.Seconds, c.Video.Size, c.Video.Unknown = cmp.Or(c.Video.Seconds, 5), cmp.Or(c.Video.Size, "1280x720"),
					cmp.Or(c.Video.Unknown, "unknown")
			}
			channels = append(channels, c)
		}
	}
	return channels
}

func newServer(ctx context.Context, o Options, store *jobs.Store) *fake.Server {
	s := fake.New(ctx, fake.Settings{
		Log: o.Log, VideoMin: o.VideoMin, VideoMax: o.VideoMax, ChunkInterval: o.ChunkInterval, LinkLife: o.LinkLife,
	}, store)
	for _, v := range vendors() {
		v.serve(s)
	}
	s.Mux.HandleFunc("GET /_control/channels", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"channels": Channels()})
	})
	return s
}
