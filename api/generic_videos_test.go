package api_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"modelrelay/activities"
	"modelrelay/api"
	"modelrelay/providers"
	"modelrelay/providers/router"
	"modelrelay/storage"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

const generations = "/v1/video/generations"

// severalVideos opens the gateway's video model to several videos of one request.
func severalVideos(_ *gateway, o *api.Options) {
	o.Router = router.New(
		providers.Catalog{"generic": {Name: "generic", Video: struct{ providers.VideoAdapter }{}, Several: true}},
		[]providers.Channel{{
			Name: "several", Vendor: "generic", BaseURL: "http://upstream.invalid", Keys: []providers.Secret{"up-key"},
			Models: map[string]string{"sora-2": ""}, Groups: []string{"default"},
		}}, nil)
	o.DefaultVideoModel = "sora-2"
}

func TestGenericObject(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	rec := g.do(t, request("POST", generations, `{"model":"sora-2","prompt":"a <cat>","metadata":{"a": 1}}`))
	const head = `{"id":"video_1","task_id":"video_1","object":"video","model":"sora-2","status":"queued","progress":0,"created_at":1769860800`
	if got := strings.TrimSpace(rec.Body.String()); rec.Code != 200 || got != head+"}" {
		t.Errorf("got %d %s, want %s}", rec.Code, got, head)
	}
	const queued = head + `,"completed_at":null,"expires_at":null,"duration":null,"width":null,"height":null,"url":null,"urls":[],"error":null,` +
		`"metadata":{"a":1}}`
	if got := strings.TrimSpace(g.do(t, request("GET", generations+"/video_1", "")).Body.String()); got != queued {
		t.Errorf("read: got %s, want %s", got, queued)
	}

	outputs := []activities.Output{{Object: "a"}, {Object: "b"}}
	later := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	for want, change := range map[string]func(*tasks.Task){
		`"status":"completed","progress":100,"created_at":1769860800,"completed_at":1769860860,`: func(task *tasks.Task) {
			task.State, task.Progress, task.CompletedAt = workflows.Completed, 100, day.Add(time.Minute)
		},
		`"duration":8.5,"width":1280,"height":720,"url":"/v1/videos/video_2/content","urls":["/v1/videos/video_2/content","/v1/videos/video_2/content?index=1"],`: func(task *tasks.Task) {
			task.State, task.Outputs, task.ExpiresAt = workflows.Completed, outputs, later
			task.Request.Seconds, task.Seconds, task.Width, task.Height = "8.5", "9", 1280, 720
		},
		`"duration":9,"width":null`: func(task *tasks.Task) { task.Seconds, task.Width = "9", 5 },
		`"url":null,"urls":[],`: func(task *tasks.Task) {
			task.State, task.Outputs, task.ExpiresAt = workflows.Completed, outputs, day
		},
		`"status":"failed"`: func(task *tasks.Task) { task.State = workflows.Failed },
		`"error":{"code":"cancelled","message":"Stopped."}}`: func(task *tasks.Task) {
			task.State, task.Failure = workflows.Failed, &providers.VideoFailure{Code: "cancelled", Message: "Stopped."}
		},
		`"error":null,"queue_position":3}`: func(task *tasks.Task) { task.QueuePosition = 3 },
	} {
		task := tasks.Task{
			ID: "video_2", Token: "good", State: workflows.Queued, CreatedAt: day,
			Request: providers.VideoRequest{Model: "sora-2", Prompt: "p"},
		}
		change(&task)
		g.tasks.put(task)
		if got := g.do(t, request("GET", generations+"/video_2", "")).Body.String(); !strings.Contains(got, want) {
			t.Errorf("got %s, want %s in it", got, want)
		}
	}
}

func TestGenericCreate(t *testing.T) {
	t.Parallel()
	bare := base64.StdEncoding.EncodeToString([]byte(png))
	upload := []providers.Media{{ContentType: "image/png", Size: int64(len(png)), Data: []byte(png)}}
	seed := int64(-1)
	for _, test := range []struct {
		name, body string
		want       providers.VideoRequest
	}{
		{
			"everything", `{"model":"sora-2","prompt":"p","image":"https://example.com/a.png?sig=1","duration":8,"width":1280,"height":720,"fps":24,"seed":-1,` +
				`"n":2,"response_format":"url","user":"u","metadata":{"style":"x"},"webhook_url":"https://example.com/hook","cfg":0.50,"size":"1K"}`,
			providers.VideoRequest{
				Model: "sora-2", Prompt: "p", Inputs: []providers.Media{{URL: "https://example.com/a.png?sig=1"}}, Seconds: "8", Width: 1280,
				Height: 720, FPS: 24, Seed: &seed, N: 2, ResponseFormat: "url", User: "u", Metadata: json.RawMessage(`{"style":"x"}`),
				WebhookURL: "https://example.com/hook", Extra: json.RawMessage(`{"cfg":0.50,"size":"1K"}`),
			},
		},
		{"a fraction", `{"prompt":"p","duration":8.5}`, providers.VideoRequest{Model: "sora-2", Prompt: "p", Seconds: "8.5"}},
		{"an exponent", `{"prompt":"p","duration":1e1,"n":1.0}`, providers.VideoRequest{Model: "sora-2", Prompt: "p", Seconds: "10", N: 1}},
		{"nulls", `{"prompt":"p","image":null,"n":null,"seed":null,"duration":null}`, providers.VideoRequest{Model: "sora-2", Prompt: "p"}},
		{"an image alone", `{"image":"` + bare + `"}`, providers.VideoRequest{Model: "sora-2", Inputs: upload}},
		{"an empty image", `{"prompt":"p","image":""}`, providers.VideoRequest{Model: "sora-2", Prompt: "p"}},
		{"without padding", `{"image":"` + strings.TrimRight(bare, "=") + `"}`, providers.VideoRequest{Model: "sora-2", Inputs: upload}},
		{
			"escaped", `{"image":"` + strings.ReplaceAll("data:image/png;base64,"+bare, "/", `\/`) + `"}`,
			providers.VideoRequest{Model: "sora-2", Inputs: upload},
		},
		{"in lines", `{"image":"` + bare[:8] + `\r\n` + bare[8:] + `\n"}`, providers.VideoRequest{Model: "sora-2", Inputs: upload}},
		{
			"of another type than it says", `{"image":"data:image/gif;base64,` + bare + `"}`,
			providers.VideoRequest{Model: "sora-2", Inputs: upload},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, nil, severalVideos)
			got := created(t, g, request("POST", generations, test.body))
			if !reflect.DeepEqual(got.Request, test.want) {
				t.Errorf("got %+v, want %+v", got.Request, test.want)
			}
			if got.TokenID != "good" || got.Format != providers.Generic {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestGenericCreateFaults(t *testing.T) {
	t.Parallel()
	large := base64.StdEncoding.EncodeToString(append([]byte(png), make([]byte, 32<<20)...))
	for _, test := range []struct{ name, members, param string }{
		{"neither prompt nor image", `"n":1`, "prompt"},
		{"n without a vendor that makes several", `"prompt":"p","n":2`, "n"},
		{"no videos", `"prompt":"p","n":0`, "n"},
		{"half a video", `"prompt":"p","n":1.5`, "n"},
		{"too wide", `"prompt":"p","width":4294967296`, "width"},
		{"negative", `"prompt":"p","height":-1`, "height"},
		{"fps is a word", `"prompt":"p","fps":"24"`, "fps"},
		{"seed out of range", `"prompt":"p","seed":1e30`, "seed"},
		{"no time", `"prompt":"p","duration":0`, "duration"},
		{"a negative time", `"prompt":"p","duration":-8`, "duration"},
		{"for ever", `"prompt":"p","duration":1e99`, "duration"},
		{"duration is a string", `"prompt":"p","duration":"8"`, "duration"},
		{"metadata is a list", `"prompt":"p","metadata":[]`, "metadata"},
		{"an image object", `"image":{"url":"https://example.com"}`, "image"},
		{"an image of text", `"image":"aGVsbG8gd29ybGQ="`, "image"},
		{"a PDF", `"image":"` + base64.StdEncoding.EncodeToString([]byte("%PDF-1.7 0000000")) + `"`, "image"},
		{"an SVG", `"image":"data:image/svg+xml;base64,` + base64.StdEncoding.EncodeToString([]byte("<svg/>")) + `"`, "image"},
		{"neither Base64 nor a URL", `"image":"a cat!"`, "image"},
		{"a strange scheme", `"image":"ftp://example.com/a.png"`, "image"},
		{"a long URL", `"image":"https://example.com/` + strings.Repeat("a", 9000) + `"`, "image"},
		{"a large image", `"image":"` + large + `"`, "image"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, nil, nil)
			rec := g.do(t, request("POST", generations, `{"model":"sora-2",`+test.members+`}`))
			if code, param := fault(t, rec); rec.Code != 400 || code != "invalid_request" || param != test.param {
				t.Errorf("got %d %s, want 400 on %q", rec.Code, rec.Body, test.param)
			}
			if len(g.tasks.creates) != 0 {
				t.Error("a task was made")
			}
		})
	}
	g := newGateway(t, nil, nil)
	rec := g.do(t, request("POST", generations, `{"model":"none","prompt":"p","n":2}`))
	if code, param := fault(t, rec); rec.Code != 404 || code != "model_not_found" || param != "model" {
		t.Errorf("several of an unknown model: got %d %s", rec.Code, rec.Body)
	}
}

func TestGenericCancel(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	g.tasks.put(tasks.Task{ID: "video_1", Token: "good", State: workflows.InProgress, CreatedAt: day})
	rec := g.do(t, request("POST", generations+"/video_1/cancel", ""))
	if rec.Code != 200 || !strings.Contains(rec.Body.String(), `"task_id":"video_1"`) ||
		!strings.Contains(rec.Body.String(), `"code":"cancelled"`) {
		t.Errorf("got %d %s", rec.Code, rec.Body)
	}
}

// presigned makes links of an archive; one of a key it refuses is read through the gateway.
type presigned map[string]time.Duration

func (p presigned) Presign(_ context.Context, key string, ttl time.Duration) (string, error) {
	if key == "refused" {
		return "", storage.ErrUnavailable
	}
	p[key] = ttl
	return "https://store.example.com/" + key + "?sig=x&y", nil
}

// TestLinks: where the deployment makes links, addresses need no token; none outlives its video.
func TestLinks(t *testing.T) {
	t.Parallel()
	links := presigned{}
	g := newGateway(t, nil, func(_ *gateway, o *api.Options) { o.Links = links })
	task := tasks.Task{
		ID: "video_1", Token: "good", State: workflows.Completed, CreatedAt: day, Ending: workflows.Ending{
			ExpiresAt: time.Now().Add(48 * time.Hour),
			Outputs:   []activities.Output{{Object: "a"}, {Object: "refused"}},
		},
	}
	g.tasks.put(task)
	rec := g.do(t, request("GET", generations+"/video_1", ""))
	const want = `"url":"https://store.example.com/a?sig=x&y","urls":["https://store.example.com/a?sig=x&y","/v1/videos/video_1/content?index=1"]`
	if !strings.Contains(strings.ReplaceAll(rec.Body.String(), `\u0026`, "&"), want) {
		t.Errorf("got %s, want %s", rec.Body, want)
	}
	if links["a"] != time.Hour {
		t.Errorf("got a link for %v, want an hour", links["a"])
	}
	task.ExpiresAt = time.Now().Add(10 * time.Minute)
	g.tasks.put(task)
	data := vendorCOK(t, g.do(t, request("POST", resultPath, `{"task_id":"video_1"}`)))
	if data["video_url"] != "https://store.example.com/a?sig=x&y" || links["a"] > 10*time.Minute {
		t.Errorf("got %v for %v", data, links["a"])
	}
}
