package api_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

const remixPath = "/v1/videos/video_0/remix"

// remixable puts a completed task that another can be made of.
func remixable(g *gateway) {
	g.tasks.put(tasks.Task{
		ID: "video_0", Token: "good", State: workflows.Completed, Progress: 100, CreatedAt: day, Seconds: "8", Width: 720, Height: 1280,
		Request: providers.VideoRequest{
			Model: "sora-2", Prompt: "a cat", Size: "720x1280", Metadata: json.RawMessage(`{"a":1}`), User: "u",
			WebhookURL: "https://example.com/old",
		},
	})
}

func TestVideoRemix(t *testing.T) {
	t.Parallel()
	contentType, multi := form(t, part{"prompt", "", "", "a dog"}, part{"style", "", "", "x"},
		part{"webhook_url", "", "", "https://example.com/h"})
	for name, req := range map[string]*http.Request{
		"JSON": request("POST", remixPath, `{"prompt":"a dog","style":"x","webhook_url":"https://example.com/h"}`),
		"form": request("POST", remixPath, multi, "Content-Type", contentType),
	} {
		g := newGateway(t, nil, nil)
		remixable(g)
		rec := g.do(t, req)
		if rec.Code != 200 || !strings.Contains(rec.Body.String(), `"prompt":"a dog","remixed_from_video_id":"video_0"`) ||
			!strings.Contains(rec.Body.String(), `"seconds":"8","size":"720x1280"`) || !strings.Contains(rec.Body.String(), `"model":"sora-2"`) {
			t.Errorf("%s: got %d %s", name, rec.Code, rec.Body)
		}
		want := providers.VideoRequest{
			Model: "sora-2", Prompt: "a dog", RemixOf: "video_0", Seconds: "8", Size: "720x1280", Width: 720, Height: 1280,
			WebhookURL: "https://example.com/h", Extra: json.RawMessage(`{"style":"x"}`),
		}
		if got := g.tasks.creates[0].Request; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

func TestVideoRemixFaults(t *testing.T) {
	t.Parallel()
	contentType, multi := form(t, part{"style", "", "", "x"})
	for _, test := range []struct {
		name   string
		req    *http.Request
		status int
		param  string
	}{
		{"no prompt", request("POST", remixPath, `{}`), 400, "prompt"},
		{"an empty prompt", request("POST", remixPath, `{"prompt":""}`), 400, "prompt"},
		{"no prompt in a form", request("POST", remixPath, multi, "Content-Type", contentType), 400, "prompt"},
		{"bad JSON", request("POST", remixPath, `{`), 400, ""},
		{"an unknown video", request("POST", "/v1/videos/video_9/remix", `{"prompt":"p"}`), 404, ""},
		{"another's video", request("POST", remixPath, `{"prompt":"p"}`, "Authorization", "Bearer "+otherKey), 404, ""},
	} {
		g := newGateway(t, nil, nil)
		remixable(g)
		rec := g.do(t, test.req)
		if _, param := fault(t, rec); rec.Code != test.status || param != test.param || len(g.tasks.creates) != 0 {
			t.Errorf("%s: got %d %s, want %d on %q", test.name, rec.Code, rec.Body, test.status, test.param)
		}
	}
	g := newGateway(t, nil, nil)
	remixable(g)
	g.tasks.err = providers.InvalidField("video_id", "The upstream of this video cannot remix it.")
	rec := g.do(t, request("POST", remixPath, `{"prompt":"p"}`))
	if _, param := fault(t, rec); rec.Code != 400 || param != "video_id" {
		t.Errorf("an upstream that cannot: got %d %s", rec.Code, rec.Body)
	}
}

// TestVideoRemixRepeated: a repeat finds its task when the video that it was made of is gone.
func TestVideoRemixRepeated(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	remixable(g)
	if rec := g.do(t, request("POST", remixPath, `{"prompt":"a dog"}`, "Idempotency-Key", "k")); rec.Code != 200 {
		t.Fatalf("got %d %s", rec.Code, rec.Body)
	}
	g.tasks.drop("video_0")
	for _, tc := range []struct {
		name, body string
		header     []string
		status     int
		want       string
	}{
		{"the repeat", `{"prompt":"a dog"}`, []string{"Idempotency-Key", "k"}, 200, `"id":"video_1"`},
		{"another request under its key", `{"prompt":"a bird"}`, []string{"Idempotency-Key", "k"}, 422, "idempotency_mismatch"},
		{"another key", `{"prompt":"a dog"}`, []string{"Idempotency-Key", "l"}, 404, "not_found"},
		{"a bad key", `{"prompt":"a dog"}`, []string{"Idempotency-Key", strings.Repeat("k", 256)}, 400, "Idempotency-Key"},
		{"no key", `{"prompt":"a dog"}`, nil, 404, "not_found"},
	} {
		rec := g.do(t, request("POST", remixPath, tc.body, tc.header...))
		if rec.Code != tc.status || !strings.Contains(rec.Body.String(), tc.want) {
			t.Errorf("%s: got %d %s, want %d with %s", tc.name, rec.Code, rec.Body, tc.status, tc.want)
		}
	}
	if len(g.tasks.creates) != 1 {
		t.Errorf("%d creates, want one", len(g.tasks.creates))
	}
}
