package api_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"

	"modelrelay/activities"
	"modelrelay/api"
	"modelrelay/providers"
	"modelrelay/providers/router"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// mp4 is how a video file begins.
const mp4 = "\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom"

const sourceID = "video_0123456789abcdefghijklmnop"

// newCutter is a gateway whose model "cut" edits and extends videos; "sora-2" takes none. A task of each is completed.
func newCutter(t *testing.T) *gateway {
	t.Helper()
	g := newGateway(t, nil, func(_ *gateway, o *api.Options) {
		vendor := providers.Vendor{
			Name: "openai", Video: struct{ providers.VideoAdapter }{},
			VideoModels: func(model string) (providers.VideoModel, bool) {
				table := providers.VideoModel{Seconds: []string{"4"}, Sizes: []string{"1280x720"}}
				if model == "cut" {
					table.Inputs = []providers.VideoInput{{Role: providers.SourceVideo, MaxBytes: 1000}, {Role: providers.ExtendVideo}}
				}
				return table, true
			},
		}
		o.Router = router.New(providers.Catalog{"openai": vendor}, []providers.Channel{{
			Name: "main", Vendor: "openai", Keys: []providers.Secret{"k"}, Models: map[string]string{"sora-2": "", "cut": ""},
			Groups: []string{"default"},
		}}, nil)
		o.DefaultVideoModel = "cut"
	})
	for id, model := range map[string]string{sourceID: "cut", "video_sora": "sora-2"} {
		g.tasks.put(tasks.Task{
			ID: id, Token: "good", State: workflows.Completed, CreatedAt: day, Seconds: "8", Width: 1280, Height: 720,
			Request: providers.VideoRequest{Model: model, Prompt: "a cat"},
			Ending:  workflows.Ending{Outputs: []activities.Output{{Object: "tasks/" + id + "/0", ContentType: "video/mp4", Size: 500, SHA256: "abc"}}},
		})
	}
	g.tasks.put(tasks.Task{ID: "video_runs", Token: "good", State: workflows.InProgress, Request: providers.VideoRequest{Model: "cut"}})
	g.tasks.put(tasks.Task{ID: "video_theirs", Token: "other", State: workflows.Completed, Request: providers.VideoRequest{Model: "cut"}})
	return g
}

// TestVideoSources: what an edit and an extension become, by each way to name their source.
func TestVideoSources(t *testing.T) {
	t.Parallel()
	own := func(role providers.InputRole, id string) providers.Media {
		return providers.Media{Role: role, Object: "tasks/" + id + "/0", ContentType: "video/mp4", Size: 500, SHA256: "abc", From: id}
	}
	upload := func(name string) providers.Media {
		return providers.Media{Role: providers.SourceVideo, Name: name, ContentType: "video/mp4", Size: int64(len(mp4)), Data: []byte(mp4)}
	}
	fileType, file := form(t, part{"prompt", "", "", "p"}, part{"video", "a.mp4", "video/mp4", mp4})
	idType, id := form(t, part{"prompt", "", "", "p"}, part{"video[id]", "", "", sourceID}, part{"seconds", "", "", "4"})
	dotType, dot := form(t, part{"prompt", "", "", "p"}, part{"video.id", "", "", sourceID}, part{"style", "", "", "x"})
	for _, tc := range []struct {
		name, path, kind, body string
		want                   providers.VideoRequest
	}{
		{
			"id", "edits", "", `{"prompt":"p","video":{"id":"` + sourceID + `"}}`,
			providers.VideoRequest{Model: "cut", Inputs: []providers.Media{own(providers.SourceVideo, sourceID)}},
		},
		{"id as a text", "extensions", "", `{"prompt":"p","video":"` + sourceID + `","seconds":4}`, providers.VideoRequest{
			Model: "cut", Seconds: "4", Inputs: []providers.Media{own(providers.ExtendVideo, sourceID)},
		}},
		{"another model", "edits", "", `{"prompt":"p","model":"cut","video":{"id":"video_sora"}}`, providers.VideoRequest{
			Model: "cut", Inputs: []providers.Media{own(providers.SourceVideo, "video_sora")},
		}},
		{"URL", "extensions", "", `{"prompt":"p","video":{"url":"https://h/a.mp4"},"aspect_ratio":null}`, providers.VideoRequest{
			Model: "cut", Inputs: []providers.Media{{Role: providers.ExtendVideo, URL: "https://h/a.mp4"}},
		}},
		{"file", "edits", fileType, file, providers.VideoRequest{Model: "cut", Inputs: []providers.Media{upload("a.mp4")}}},
		{"id in a form", "extensions", idType, id, providers.VideoRequest{
			Model: "cut", Seconds: "4",
			Inputs: []providers.Media{own(providers.ExtendVideo, sourceID)},
		}},
		{"id with a dot", "edits", dotType, dot, providers.VideoRequest{
			Model:  "cut",
			Inputs: []providers.Media{own(providers.SourceVideo, sourceID)}, Extra: []byte(`{"style":"x"}`),
		}},
		{"only a remix", "edits", "", `{"prompt":"p","video":{"id":"video_sora"}}`, providers.VideoRequest{
			Model: "sora-2", RemixOf: "video_sora", Seconds: "8", Width: 1280, Height: 720,
		}},
	} {
		g := newCutter(t)
		headers := []string{"Idempotency-Key", "k"}
		if tc.kind != "" {
			headers = append(headers, "Content-Type", tc.kind)
		}
		rec := g.do(t, request("POST", "/v1/videos/"+tc.path, tc.body, headers...))
		if rec.Code != 200 || !strings.Contains(rec.Body.String(), `"status":"queued"`) {
			t.Errorf("%s: got %d %s", tc.name, rec.Code, rec.Body)
			continue
		}
		tc.want.Prompt = "p"
		if got := g.tasks.creates[0]; !reflect.DeepEqual(got.Request, tc.want) || got.IdempotencyKey != "k" {
			t.Errorf("%s: got %+v, want %+v", tc.name, got.Request, tc.want)
		}
	}
}

func TestVideoSourceFaults(t *testing.T) {
	t.Parallel()
	textType, text := form(t, part{"prompt", "", "", "p"}, part{"video", "", "", mp4})
	twiceType, twice := form(t, part{"prompt", "", "", "p"}, part{"video[id]", "", "", sourceID}, part{"video", "a.mp4", "video/mp4", mp4})
	for _, tc := range []struct {
		name, path, kind, body string
		status                 int
		param                  string
	}{
		{"no prompt", "edits", "", `{"video":{"id":"` + sourceID + `"}}`, 400, "prompt"},
		{"no source", "edits", "", `{"prompt":"p"}`, 400, "video"},
		{"an empty source", "edits", "", `{"prompt":"p","video":{}}`, 400, "video"},
		{"no video", "edits", "", `{"prompt":"p","video":"AAAA"}`, 400, "video"},
		{"no address", "edits", textType, text, 400, "video"},
		{"two sources", "edits", twiceType, twice, 400, "video"},
		{"unknown", "edits", "", `{"prompt":"p","video":{"id":"video_9"}}`, 404, ""},
		{"another token's", "edits", "", `{"prompt":"p","video":{"id":"video_theirs"}}`, 404, ""},
		{"unfinished", "extensions", "", `{"prompt":"p","video":{"id":"video_runs"}}`, 400, "video"},
		{"a model without", "extensions", "", `{"prompt":"p","video":{"id":"video_sora"}}`, 400, "video"},
		{"a model without, and more than a remix", "edits", "", `{"prompt":"p","seconds":"4","video":{"id":"video_sora"}}`, 400, "video"},
		{"another length", "edits", "", `{"prompt":"p","seconds":"5","video":{"id":"` + sourceID + `"}}`, 400, "seconds"},
		{"characters", "characters", "", `{"name":"n"}`, 400, ""},
	} {
		g := newCutter(t)
		var headers []string
		if tc.kind != "" {
			headers = []string{"Content-Type", tc.kind}
		}
		rec := g.do(t, request("POST", "/v1/videos/"+tc.path, tc.body, headers...))
		if _, param := fault(t, rec); rec.Code != tc.status || param != tc.param || len(g.tasks.creates) != 0 {
			t.Errorf("%s: got %d %s", tc.name, rec.Code, rec.Body)
		}
	}
	g := newCutter(t)
	g.tasks.err = providers.InvalidField("video_id", "The upstream of this video cannot remix it.")
	rec := g.do(t, request("POST", "/v1/videos/edits", `{"prompt":"p","video":{"id":"video_sora"}}`))
	if _, param := fault(t, rec); rec.Code != 400 || param != "video" {
		t.Errorf("neither a model nor the upstream: got %d %s", rec.Code, rec.Body)
	}
}

// TestVideoSourcesSDK: edits, extensions and characters as openai-go sends them.
func TestVideoSourcesSDK(t *testing.T) {
	t.Parallel()
	g := newCutter(t)
	client := sdk(t, g)
	if video, err := client.Videos.Edit(t.Context(), openai.VideoEditParams{
		Prompt: "p", Video: openai.VideoEditParamsVideoUnion{OfFile: bytes.NewReader([]byte(mp4))},
	}); err != nil || video.Status != openai.VideoStatusQueued {
		t.Errorf("edit of a file: %+v, %v", video, err)
	}
	if video, err := client.Videos.Edit(t.Context(), openai.VideoEditParams{Prompt: "p", Video: openai.VideoEditParamsVideoUnion{
		OfVideoEditsVideoVideoReferenceInputParam: &openai.VideoEditParamsVideoVideoReferenceInputParam{ID: sourceID},
	}}); err != nil || video.Model != "cut" {
		t.Errorf("edit of a task: %+v, %v", video, err)
	}
	if video, err := client.Videos.Extend(t.Context(), openai.VideoExtendParams{
		Prompt: "p", Seconds: openai.VideoSeconds4, Video: openai.VideoExtendParamsVideoUnion{
			OfVideoExtendsVideoVideoReferenceInputParam: &openai.VideoExtendParamsVideoVideoReferenceInputParam{ID: sourceID},
		},
	}); err != nil || video.Seconds != openai.VideoSeconds4 {
		t.Errorf("extension: %+v, %v", video, err)
	}
	for i, want := range []providers.Media{
		{Role: providers.SourceVideo},
		{Role: providers.SourceVideo, Object: "tasks/" + sourceID + "/0"},
		{Role: providers.ExtendVideo, Object: "tasks/" + sourceID + "/0"},
	} {
		if got := g.tasks.creates[i].Request.Inputs; len(got) != 1 || got[0].Role != want.Role || got[0].Object != want.Object {
			t.Errorf("create %d: got %+v, want %+v", i, got, want)
		}
	}
	var refused *openai.Error
	if _, err := client.Videos.NewCharacter(t.Context(),
		openai.VideoNewCharacterParams{Name: "n", Video: bytes.NewReader([]byte(mp4))}); !errors.As(err, &refused) || refused.StatusCode != 400 {
		t.Errorf("new character: %v", err)
	}
	if _, err := client.Videos.GetCharacter(t.Context(), "content"); !errors.As(err, &refused) || refused.StatusCode != 400 {
		t.Errorf("get character: %v", err)
	}
}

// TestVideoSourceRepeated: a repeat of an edit or an extension finds its task by its key when its source is gone or has
// not completed; another request does not.
func TestVideoSourceRepeated(t *testing.T) {
	t.Parallel()
	g := newCutter(t)
	for _, path := range []string{"edits", "extensions"} {
		g.tasks.creates = nil
		g.tasks.put(tasks.Task{
			ID: sourceID, Token: "good", State: workflows.Completed, Request: providers.VideoRequest{Model: "cut"},
			Ending: workflows.Ending{Outputs: []activities.Output{{Object: "o", ContentType: "video/mp4", Size: 5, SHA256: "abc"}}},
		})
		body := `{"prompt":"p","video":{"id":"` + sourceID + `"}}`
		path = "/v1/videos/" + path
		if rec := g.do(t, request("POST", path, body, "Idempotency-Key", "k")); rec.Code != 200 {
			t.Fatalf("got %d %s", rec.Code, rec.Body)
		}
		g.tasks.drop(sourceID)
		for _, tc := range []struct {
			name, body, key string
			status          int
			want            string
		}{
			{"the repeat", body, "k", 200, `"id":"video_1"`},
			{"another prompt", strings.Replace(body, `"p"`, `"q"`, 1), "k", 422, "idempotency_mismatch"},
			{"another key", body, "l", 404, "not_found"},
		} {
			rec := g.do(t, request("POST", path, tc.body, "Idempotency-Key", tc.key))
			if rec.Code != tc.status || !strings.Contains(rec.Body.String(), tc.want) {
				t.Errorf("%s %s: got %d %s, want %d with %s", path, tc.name, rec.Code, rec.Body, tc.status, tc.want)
			}
		}
		if rec := g.do(t, request("POST", path, body)); rec.Code != 404 || len(g.tasks.creates) != 1 {
			t.Errorf("without a key: got %d %s", rec.Code, rec.Body)
		}
	}
}

// TestVideoSourceRemixRepeated: an edit that is a remix, as its model edits nothing, is found again when its source is gone; so is
// one that names the model that the source has, and no other.
func TestVideoSourceRemixRepeated(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, first, again string
		status             int
	}{
		{"without a model", "", "", 200},
		{"its source's model", "sora-2", "sora-2", 200},
		{"another model", "sora-2", "cut", 422},
	} {
		g := newCutter(t)
		source := tasks.Task{
			ID: "video_ponmlkjihgfedcba9876543210", Token: "good", State: workflows.Completed, Request: providers.VideoRequest{Model: "sora-2"},
			Ending: workflows.Ending{Outputs: []activities.Output{{Object: "o", ContentType: "video/mp4", Size: 5, SHA256: "abc"}}},
		}
		g.tasks.put(source)
		body := func(model string) string {
			if model != "" {
				model = `"model":"` + model + `",`
			}
			return `{` + model + `"background":true,"response_format":{"type":"video"},"previous_interaction_id":"` + source.ID + `","input":"p"}`
		}
		first := g.do(t, request("POST", "/v1beta/interactions", body(tc.first), "Idempotency-Key", "k"))
		if first.Code != 200 || len(g.tasks.creates) != 1 || g.tasks.creates[0].Request.RemixOf != source.ID {
			t.Fatalf("%s: got %d %s", tc.name, first.Code, first.Body)
		}
		g.tasks.drop(source.ID)
		rec := g.do(t, request("POST", "/v1beta/interactions", body(tc.again), "Idempotency-Key", "k"))
		if rec.Code != tc.status || len(g.tasks.creates) != 1 {
			t.Errorf("%s: got %d %s, want %d", tc.name, rec.Code, rec.Body, tc.status)
		}
	}
}

// TestPublicURL: the addresses in answers begin with the configured one, whatever host the client asked.
func TestPublicURL(t *testing.T) {
	t.Parallel()
	for public, want := range map[string]string{
		"":                            "http://example.com/v1beta/files/",
		"https://ai.example.org/gate": "https://ai.example.org/gate/v1beta/files/",
	} {
		g := newGateway(t, nil, func(_ *gateway, o *api.Options) { o.PublicURL = public })
		g.tasks.put(tasks.Task{
			ID: sourceID, Token: "good", State: workflows.Completed, Request: providers.VideoRequest{Model: "sora-2"},
			Ending: workflows.Ending{Outputs: []activities.Output{{Object: "o"}}},
		})
		rec := g.do(t, request("GET", "/v1beta/models/sora-2/operations/"+sourceID, ""))
		if !strings.Contains(rec.Body.String(), `"uri":"`+want) {
			t.Errorf("%q: got %s", public, rec.Body)
		}
		rec = g.do(t, request("POST", "/vendorC/?Action=CVSync2AsyncGetResult&Version=2022-08-31", `{"task_id":"`+sourceID+`"}`))
		if !strings.Contains(rec.Body.String(), `"video_url":"`+strings.TrimSuffix(want, "/v1beta/files/")+"/v1/videos/") {
			t.Errorf("%q: format C got %s", public, rec.Body)
		}
	}
}
