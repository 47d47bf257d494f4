package api_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"modelrelay/activities"
	"modelrelay/api"
	"modelrelay/providers"
	"modelrelay/providers/relay"
	"modelrelay/providers/router"
	"modelrelay/storage/tokens"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// background begins the body of an interaction that makes a video with the model cut.
const background = `{"model":"cut","background":true,"response_format":{"type":"video"`

// TestInteractionVideo: what each kind of input becomes, below both prefixes.
func TestInteractionVideo(t *testing.T) {
	t.Parallel()
	seed := int64(7)
	image := func(role providers.InputRole) providers.Media {
		return providers.Media{Role: role, ContentType: "image/png", Size: int64(len(png)), Data: []byte(png)}
	}
	png64 := `{"type":"image","mime_type":"image/png","data":"` + base64Of(png) + `"}`
	task := func(word string) string { return `"generation_config":{"video_config":{"task":"` + word + `"}},` }
	for _, tc := range []struct {
		name, path, body string
		want             providers.VideoRequest
	}{
		{"a text", "/v1/interactions", background + `},"input":"p"}`, providers.VideoRequest{}},
		{"what it must be like", "/v1beta/interactions", background + `,"aspect_ratio":"16:9","resolution":"720P","duration":"6s","delivery":"uri"},
			"generation_config":{"seed":7,"temperature":1},"labels":{"a":"b"},"store":true,"stream":false,"input":[{"type":"text","text":"p"}]}`, providers.VideoRequest{
			AspectRatio: "16:9", Resolution: "720p", Seconds: "6", Seed: &seed,
			Extra: json.RawMessage(`{"generation_config":{"temperature":1},"labels":{"a":"b"}}`),
		}},
		{"a list of formats", "/v1/interactions", `{"model":"cut","background":true,"response_format":[{"type":"video"}],"input":{"type":"text","text":"p"}}`, providers.VideoRequest{}},
		{
			"a first image", "/v1/interactions", background + `},"input":[` + png64 + `,{"type":"text","text":"p"}]}`,
			providers.VideoRequest{Inputs: []providers.Media{image(providers.FirstFrame)}},
		},
		{"both images", "/v1/interactions", background + `},` + task("image_to_video") + `"input":[` + png64 + `,` + png64 +
			`,{"type":"text","text":"p"}]}`, providers.VideoRequest{
			Inputs: []providers.Media{image(providers.FirstFrame), image(providers.LastFrame)},
		}},
		{"references", "/v1/interactions", background + `},` + task("reference_to_video") + `"input":[{"type":"user_input","content":[` + png64 +
			`,{"type":"text","text":"p"}]}]}`, providers.VideoRequest{
			Inputs: []providers.Media{image(providers.Reference)},
		}},
		{
			"an edit", "/v1/interactions", background + `},"input":[{"type":"video","data":"` + base64Of(mp4) + `"},{"type":"text","text":"p"}]}`,
			providers.VideoRequest{
				Inputs: []providers.Media{{Role: providers.SourceVideo, ContentType: "video/mp4", Size: int64(len(mp4)), Data: []byte(mp4)}},
			},
		},
		{"the one before", "/v1/interactions", background + `},"previous_interaction_id":"` + sourceID + `","input":"p"}`, providers.VideoRequest{
			Inputs: []providers.Media{{
				Role: providers.SourceVideo, Object: "tasks/" + sourceID + "/0", ContentType: "video/mp4", Size: 500,
				SHA256: "abc", From: sourceID,
			}},
		}},
		{
			"to go on from a file", "/v1/interactions",
			background + `},` + task("extend") + `"input":[{"type":"video","uri":"http://h/v1beta/files/video0123456789abcdefghijklmnop:download?alt=media"},{"type":"text","text":"p"}]}`,
			providers.VideoRequest{
				Inputs: []providers.Media{{
					Role: providers.ExtendVideo, Object: "tasks/" + sourceID + "/0", ContentType: "video/mp4", Size: 500,
					SHA256: "abc", From: sourceID,
				}},
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			g := newOpenCutter(t)
			rec := g.do(t, request("POST", tc.path, tc.body, "Idempotency-Key", "k"))
			var got struct{ ID, Object, Status, Model string }
			if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil || rec.Code != 200 || got.ID != "video_1" || got.Object != "interaction" ||
				got.Status != "in_progress" || got.Model != "cut" {
				t.Fatalf("got %d %s", rec.Code, rec.Body)
			}
			tc.want.Model, tc.want.Prompt = "cut", "p"
			if made := g.tasks.creates[0]; !reflect.DeepEqual(made.Request, tc.want) || made.IdempotencyKey != "k" ||
				made.Format != providers.Gemini {
				t.Errorf("got  %+v\nwant %+v", made.Request, tc.want)
			}
		})
	}
}

// TestInteractionVideoFaults: what cannot be made is refused under the interaction's own names, and makes nothing.
func TestInteractionVideoFaults(t *testing.T) {
	t.Parallel()
	png64 := `{"type":"image","data":"` + base64Of(png) + `"}`
	for body, field := range map[string]string{
		background + `},"stream":true,"input":"p"}`:                                           "stream",
		background + `},"store":false,"input":"p"}`:                                           "store",
		background + `,"delivery":"inline"},"input":"p"}`:                                     "response_format.delivery",
		background + `,"gcs_uri":"gs://b"},"input":"p"}`:                                      "response_format.gcs_uri",
		background + `,"duration":"6m"},"input":"p"}`:                                         "response_format.duration",
		background + `,"duration":"5s"},"input":"p"}`:                                         "response_format.duration",
		background + `,"aspect_ratio":9},"input":"p"}`:                                        "response_format.aspect_ratio",
		background + `},"input":[` + png64 + `,` + png64 + `]}`:                               "generation_config.video_config.task",
		background + `},"generation_config":{"video_config":{"task":"edit"}},"input":"p"}`:    "generation_config.video_config.task",
		background + `},"generation_config":{"video_config":{"task":"upscale"}},"input":"p"}`: "generation_config.video_config.task",
		background + `},"previous_interaction_id":"v1_x","input":"p"}`:                        "previous_interaction_id",
		background + `},"input":[{"type":"function_call"}]}`:                                  "input",
		background + `},"input":"p","webhook_config":{"uris":["https://a","https://b"]}}`:     "webhook_config",
		`{"model":"cut","response_format":{"type":"video"},"input":"p"}`:                      "background",
		`{"model":"cut","background":true,"input":"p"}`:                                       "background",
	} {
		g := newCutter(t)
		rec := g.do(t, request("POST", "/v1beta/interactions", body))
		if rec.Code != 400 || !strings.Contains(rec.Body.String(), "'"+field+"'") || !strings.Contains(rec.Body.String(), "INVALID_ARGUMENT") ||
			len(g.tasks.creates) != 0 {
			t.Errorf("%s: got %d %s, want a fault of %s", body, rec.Code, rec.Body, field)
		}
	}
}

// TestInteractionOfTask: a task is read, cancelled and deleted as an interaction, by its own token alone.
func TestInteractionOfTask(t *testing.T) {
	t.Parallel()
	g := newCutter(t)
	failed := func(id, code string) {
		g.tasks.put(tasks.Task{
			ID: id, Token: "good", State: workflows.Failed, Request: providers.VideoRequest{Model: "cut"},
			Ending: workflows.Ending{Failure: &providers.VideoFailure{Code: code, Message: "m"}},
		})
	}
	failed("video_failed", "content_policy")
	failed("video_cancelled", workflows.CodeCancelled)
	g.tasks.put(tasks.Task{
		ID: "video_old", Token: "good", State: workflows.Completed,
		Ending:  workflows.Ending{ExpiresAt: time.Now().Add(-time.Hour), Outputs: []activities.Output{{Object: "o"}}},
		Request: providers.VideoRequest{Model: "cut"},
	})
	for _, tc := range []struct{ path, want string }{
		{"/v1/interactions/" + sourceID, `"status":"completed"`},
		{"/v1beta/interactions/" + sourceID, `"steps":[{"type":"model_output","content":[{"type":"video","mime_type":"video/mp4","uri":"http://example.com/v1beta/files/video0123456789abcdefghijklmnop:download?alt=media"}]}]`},
		{"/v1/interactions/" + sourceID + "?include_input=true", `"input":"a cat"`},
		{"/v1/interactions/video_runs", `"status":"in_progress"`},
		{"/v1/interactions/video_old", `"status":"completed","created"`},
		{"/v1/interactions/video_old", `"steps":[]`},
		{"/v1/interactions/video_failed", `"errors":[{"code":"content_policy","message":"m"}]`},
		{"/v1/interactions/video_cancelled", `"status":"cancelled"`},
		{"/v1/interactions/video_theirs", `"status":"NOT_FOUND"`},
		{"/v1/interactions/" + sourceID + "?stream=true", `"status":"INVALID_ARGUMENT"`},
		{"/v1/interactions/video_runs?wait=61", `"status":"INVALID_ARGUMENT"`},
	} {
		if rec := g.do(t, request("GET", tc.path, "")); !strings.Contains(rec.Body.String(), tc.want) {
			t.Errorf("%s: got %d %s, want %s", tc.path, rec.Code, rec.Body, tc.want)
		}
	}
	film := mp4 + strings.Repeat("\x00", 500-len(mp4))
	g.archive["tasks/"+sourceID+"/0"] = []byte(film)
	for _, prefix := range []string{"/v1", "/v1beta"} {
		if rec := g.do(t, request("GET", prefix+"/files/video0123456789abcdefghijklmnop:download?alt=media", "")); rec.Code != 200 ||
			rec.Body.String() != film {
			t.Errorf("%s: got %d %q", prefix, rec.Code, rec.Body)
		}
		if rec := g.do(t, request("GET", prefix+"/files/video_x:download", "")); rec.Code != 404 ||
			!strings.Contains(rec.Body.String(), `"status":"NOT_FOUND"`) {
			t.Errorf("%s: got %d %q", prefix, rec.Code, rec.Body)
		}
	}
	if rec := g.do(t, request("POST", "/v1beta/interactions/video_runs/cancel", "")); rec.Code != 200 ||
		!strings.Contains(rec.Body.String(), `"id":"video_runs"`) {
		t.Errorf("cancel: got %d %s", rec.Code, rec.Body)
	}
	if rec := g.do(t, request("DELETE", "/v1/interactions/"+sourceID, "")); rec.Code != 200 {
		t.Errorf("delete: got %d %s", rec.Code, rec.Body)
	}
	if rec := g.do(t, request("GET", "/v1/interactions/"+sourceID, "")); rec.Code != 404 {
		t.Errorf("after the delete: got %d %s", rec.Code, rec.Body)
	}
}

// TestInteractionPermission: what an interaction makes decides which word of the token's operations it needs.
func TestInteractionPermission(t *testing.T) {
	t.Parallel()
	g := newCutter(t)
	for _, word := range []string{"relay", "video"} {
		g.tokens["sk-"+word] = &tokens.Token{ID: word, Group: "default", Models: []string{"*"}, Operations: []string{word}}
	}
	for _, tc := range []struct {
		key, body string
		status    int
	}{
		{"sk-video", background + `},"input":"p"}`, 200},
		{"sk-relay", background + `},"input":"p"}`, 403},
		{"sk-video", `{"model":"cut","input":"p"}`, 403},
		{"sk-relay", `{"model":"cut","input":"p"}`, 404}, // no channel relays it
	} {
		rec := g.do(t, request("POST", "/v1/interactions", tc.body, "Authorization", "Bearer "+tc.key))
		if rec.Code != tc.status {
			t.Errorf("%s %s: got %d %s, want %d", tc.key, tc.body, rec.Code, rec.Body, tc.status)
		}
	}
}

// TestInteractionRelayed: another kind of interaction reaches a Gemini upstream as it is, but for the model's name; what works on
// behind its answer is refused, for it could not be read.
func TestInteractionRelayed(t *testing.T) {
	t.Parallel()
	interactions := providers.Endpoint{Format: providers.Gemini, Operation: providers.Interactions}
	var seen providers.Call
	var model string
	answer := relayer(func(_ context.Context, to providers.Target, call *providers.Call) (*http.Response, error) {
		seen, model = *call, to.Model
		return upstreamAnswer("application/json", `{"id":"v1_a","status":"completed","usage":{"total_input_tokens":3,"total_output_tokens":5}}`), nil
	})
	g := newGateway(t, answer, func(_ *gateway, o *api.Options) {
		catalog := providers.Catalog{"gemini": {
			Name: "gemini", Relay: answer, Endpoints: []providers.Endpoint{interactions},
			Usage: map[providers.Endpoint]providers.UsageShape{
				interactions: {Input: []string{"usage.total_input_tokens"}, Output: []string{"usage.total_output_tokens"}},
			},
		}}
		channels := router.New(catalog, []providers.Channel{{
			Name: "g", Vendor: "gemini", BaseURL: "http://u", Keys: []providers.Secret{"k"},
			Models: map[string]string{"flash": "gemini-flash", "deep": ""}, Groups: []string{"default"},
		}}, nil)
		o.Router, o.Relay = channels, relay.New(channels, catalog, &relay.Options{MaxAttempts: 1})
	})
	for body, want := range map[string]string{
		`{"model": "flash", "input":[{"type":"text","text":"hi"}] , "response_format":{"type":"video"}}`: `{"model": "gemini-flash", "input":[{"type":"text","text":"hi"}] , "response_format":{"type":"video"}}`,
		`{"agent":"deep","input":"hi"}`: `{"agent":"deep","input":"hi"}`,
	} {
		rec := g.do(t, request("POST", "/v1/interactions", body))
		sent := new(bytes.Buffer)
		for _, piece := range seen.Payload(model) {
			sent.Write(piece)
		}
		if rec.Code != 200 || !strings.Contains(rec.Body.String(), `"id":"v1_a"`) || sent.String() != want || seen.Endpoint != interactions {
			t.Errorf("%s: got %d %s, sent %s", body, rec.Code, rec.Body, sent)
		}
	}
	if entries := g.ledger.entries; len(entries) != 2 || entries[0].InputTokens != 3 || entries[0].OutputTokens != 5 {
		t.Errorf("counted %+v", entries)
	}
	for body, status := range map[string]int{
		`{"model":"none","input":"hi"}`: 404, `{"input":"hi"}`: 400, `{"model":"flash","input":1}`: 400,
	} {
		if rec := g.do(t, request("POST", "/v1beta/interactions", body)); rec.Code != status ||
			!strings.Contains(rec.Body.String(), `"details":[]`) {
			t.Errorf("%s: got %d %s, want %d", body, rec.Code, rec.Body, status)
		}
	}
}

// TestInteractionAgent: a model that is named with an agent does not replace the permission to use the agent.
func TestInteractionAgent(t *testing.T) {
	t.Parallel()
	interactions := providers.Endpoint{Format: providers.Gemini, Operation: providers.Interactions}
	answer := relayer(func(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
		return upstreamAnswer("application/json", `{"id":"v1_a","status":"completed"}`), nil
	})
	g := newGateway(t, answer, func(g *gateway, o *api.Options) {
		g.tokens[goodKey] = &tokens.Token{ID: "good", Name: "good", Group: "default", Models: []string{"flash"}}
		catalog := providers.Catalog{"gemini": {Name: "gemini", Relay: answer, Endpoints: []providers.Endpoint{interactions}}}
		channels := router.New(catalog, []providers.Channel{{
			Name: "g", Vendor: "gemini", BaseURL: "http://u", Keys: []providers.Secret{"k"}, Models: map[string]string{"flash": "", "deep": ""},
			Groups: []string{"default"},
		}}, nil)
		o.Router, o.Relay = channels, relay.New(channels, catalog, &relay.Options{MaxAttempts: 1})
	})
	for body, status := range map[string]int{
		`{"model":"flash","input":"hi"}`: 200, `{"agent":"deep","input":"hi"}`: 404, `{"model":"flash","agent":"deep","input":"hi"}`: 404,
		`{"model":"flash","agent":"flash","input":"hi"}`: 200,
	} {
		if rec := g.do(t, request("POST", "/v1beta/interactions", body)); rec.Code != status {
			t.Errorf("%s: got %d %s, want %d", body, rec.Code, rec.Body, status)
		}
	}
}

// newOpenCutter is newCutter whose models take whatever is asked for.
func newOpenCutter(t *testing.T) *gateway {
	t.Helper()
	g := newGateway(t, nil, func(_ *gateway, o *api.Options) {
		vendor := providers.Vendor{Name: "openai", Video: struct{ providers.VideoAdapter }{}}
		o.Router = router.New(providers.Catalog{"openai": vendor}, []providers.Channel{{
			Name: "main", Vendor: "openai", Keys: []providers.Secret{"k"}, Models: map[string]string{"cut": ""}, Groups: []string{"default"},
		}}, nil)
	})
	g.tasks.put(tasks.Task{
		ID: sourceID, Token: "good", State: workflows.Completed, Request: providers.VideoRequest{Model: "cut"},
		Ending: workflows.Ending{Outputs: []activities.Output{{
			Object: "tasks/" + sourceID + "/0", ContentType: "video/mp4", Size: 500,
			SHA256: "abc",
		}}},
	})
	return g
}

func base64Of(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
