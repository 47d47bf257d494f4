package api_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"reflect"
	"strings"
	"testing"
	"time"

	"modelrelay/api"
	"modelrelay/providers"
	"modelrelay/storage/tokens"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// png is the start of a PNG file, the only part that is checked.
const png = "\x89PNG\r\n\x1a\n0000"

func created(t *testing.T, g *gateway, req *http.Request) tasks.Create {
	t.Helper()
	rec := g.do(t, req)
	if rec.Code != 200 || len(g.tasks.creates) != 1 {
		t.Fatalf("got %d %s, %d creates", rec.Code, rec.Body, len(g.tasks.creates))
	}
	return g.tasks.creates[0]
}

// TestNoAddressesOfClients: a vendor sends neither the result nor news of the job to an address of the client's.
func TestNoAddressesOfClients(t *testing.T) {
	t.Parallel()
	for body, param := range map[string]string{
		`"metadata":{"parameters":{"storageUri":"gs://b/c"}}`: "storageUri", `"callback_url":"https://a/b"`: "callback_url",
		`"metadata":{"webhook_config":{"uris":["https://a"]}}`: "webhook_config",
		`"metadata":{"pubsubTopic":"t"}`:                       "pubsubTopic", `"parameters":{"storage_uri":"gs://b"}`: "storage_uri",
	} {
		g := newGateway(t, nil, nil)
		rec := g.do(t, request("POST", "/v1/video/generations", `{"model":"sora-2","prompt":"p",`+body+`}`))
		if _, got := fault(t, rec); rec.Code != http.StatusBadRequest || got != param || len(g.tasks.creates) > 0 {
			t.Errorf("%s: got %d %s", body, rec.Code, rec.Body)
		}
	}
	g := newGateway(t, nil, nil)
	created(t, g, request("POST", "/v1/video/generations",
		`{"model":"sora-2","prompt":"p","metadata":{"callback_url":null,"note":"a webhook"}}`))
}

func TestVideoObject(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	rec := g.do(t, request("POST", "/v1/videos", `{"model":"sora-2","prompt":"a <cat> & dog"}`))
	const queued = `{"id":"video_1","object":"video","model":"sora-2","status":"queued","progress":0,"created_at":1769860800,` +
		`"completed_at":null,"expires_at":null,"seconds":"4","size":null,"prompt":"a <cat> & dog","remixed_from_video_id":null,"error":null}`
	if got := strings.TrimSpace(rec.Body.String()); rec.Code != 200 || got != queued {
		t.Errorf("got %d %s, want %s", rec.Code, got, queued)
	}
	if got := strings.TrimSpace(g.do(t, request("GET", "/v1/videos/video_1", "")).Body.String()); got != queued {
		t.Errorf("read: got %s, want %s", got, queued)
	}

	for want, change := range map[string]func(*tasks.Task){
		`"status":"completed","progress":100,"created_at":1769860800,"completed_at":1769860860,"expires_at":1770120060,"seconds":"8","size":"1280x720"`: func(task *tasks.Task) {
			task.State, task.Progress, task.Seconds = workflows.Completed, 100, "9"
			task.CompletedAt, task.ExpiresAt = day.Add(time.Minute), day.Add(time.Minute+72*time.Hour)
			task.Request.Seconds, task.Width, task.Height = "8", 1280, 720
		},
		`"seconds":"9","size":"wide"`: func(task *tasks.Task) {
			task.Seconds, task.Request.Size, task.Width, task.Height = "9", "wide", 1, 1
		},
		`"error":{"code":"cancelled","message":"Stopped."}}`: func(task *tasks.Task) {
			task.State, task.Failure = workflows.Failed, &providers.VideoFailure{Code: "cancelled", Message: "Stopped."}
		},
		`"prompt":null,`:                   func(task *tasks.Task) { task.Request.Prompt = "" },
		`"error":null,"metadata":{"a": 1}`: func(task *tasks.Task) { task.Request.Metadata = []byte(`{"a": 1}`) },
	} {
		task := tasks.Task{
			ID: "video_2", Token: "good", State: workflows.Queued, CreatedAt: day,
			Request: providers.VideoRequest{Model: "sora-2", Prompt: "p"},
		}
		change(&task)
		g.tasks.put(task)
		rec := g.do(t, request("GET", "/v1/videos/video_2", ""))
		got := strings.ReplaceAll(rec.Body.String(), `{"a":1}`, `{"a": 1}`)
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %s in it", got, want)
		}
		var keys map[string]any
		decode(t, rec.Body.Bytes(), &keys)
		if delete(keys, "metadata"); len(keys) != 13 {
			t.Errorf("got %d keys in %s, want 13", len(keys), got)
		}
	}
}

// TestVideoRepeatedAfterItsModel: a repeat finds its task when the model has left the configuration; anything else gets
// that there is no such model.
func TestVideoRepeatedAfterItsModel(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	before := tasks.Create{TokenID: "good", IdempotencyKey: "k", Request: providers.VideoRequest{Model: "gone", Prompt: "p"}}
	g.tasks.creates = append(g.tasks.creates, before)
	g.tasks.put(tasks.Task{ID: "video_1", Token: "good", State: workflows.Queued, CreatedAt: day, Request: before.Request})
	for _, tc := range []struct {
		name, prompt, key string
		status            int
		want              string
	}{
		{"the repeat", "p", "k", 200, `"id":"video_1"`},
		{"another request under its key", "q", "k", 422, "idempotency_mismatch"},
		{"another key", "p", "l", 404, "model_not_found"},
		{"no key", "p", "", 404, "model_not_found"},
	} {
		body := `{"model":"gone","prompt":"` + tc.prompt + `"}`
		for _, path := range []string{"/v1/videos", "/v1/video/generations"} {
			rec := g.do(t, request("POST", path, body, "Idempotency-Key", tc.key))
			if rec.Code != tc.status || !strings.Contains(rec.Body.String(), tc.want) {
				t.Errorf("%s at %s: got %d %s, want %d with %s", tc.name, path, rec.Code, rec.Body, tc.status, tc.want)
			}
		}
	}
	if len(g.tasks.creates) != 1 {
		t.Errorf("%d creates, want none of a model that is gone", len(g.tasks.creates)-1)
	}
}

func TestVideoCreateFromJSON(t *testing.T) {
	t.Parallel()
	dataURL := "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte(png))
	upload := []providers.Media{{ContentType: "image/png", Size: int64(len(png)), Data: []byte(png)}}
	for _, test := range []struct {
		name, body string
		want       providers.VideoRequest
	}{
		{
			"everything", `{"model":"sora-2","prompt":"p","seconds":"8","size":"1280x720","metadata":{"a": 1},"style":"x","n":1,"deep":{"b":[1.0]}}`,
			providers.VideoRequest{
				Model: "sora-2", Prompt: "p", Seconds: "8", Size: "1280x720", Width: 1280, Height: 720,
				N: 1, Metadata: json.RawMessage(`{"a": 1}`), Extra: json.RawMessage(`{"style":"x","deep":{"b":[1.0]}}`),
			},
		},
		{
			"seconds with an exponent", `{"model":"sora-2","prompt":"p","seconds":1e1}`,
			providers.VideoRequest{Model: "sora-2", Prompt: "p", Seconds: "10"},
		},
		{
			"seconds as a number", `{"model":"sora-2","prompt":"p","seconds":8.5}`,
			providers.VideoRequest{Model: "sora-2", Prompt: "p", Seconds: "8.5"},
		},
		{
			"any word for the size", `{"model":"sora-2","prompt":"p","size":"wide"}`,
			providers.VideoRequest{Model: "sora-2", Prompt: "p", Size: "wide"},
		},
		{
			"nulls", `{"model":"sora-2","prompt":"p","seconds":null,"size":null,"input_reference":null,"metadata":null}`,
			providers.VideoRequest{Model: "sora-2", Prompt: "p"},
		},
		{"the default model", `{"prompt":"p"}`, providers.VideoRequest{Model: "sora-2", Prompt: "p"}},
		{
			"image url", `{"model":"sora-2","input_reference":{"image_url":"https://example.com/a.png?x=1"}}`,
			providers.VideoRequest{Model: "sora-2", Inputs: []providers.Media{{URL: "https://example.com/a.png?x=1"}}},
		},
		{
			"bare url", `{"model":"sora-2","input_reference":"https://example.com/a.png"}`,
			providers.VideoRequest{Model: "sora-2", Inputs: []providers.Media{{URL: "https://example.com/a.png"}}},
		},
		{
			"data url", `{"model":"sora-2","input_reference":{"image_url":"` + dataURL + `"}}`,
			providers.VideoRequest{Model: "sora-2", Inputs: upload},
		},
		{
			"data url without padding", `{"model":"sora-2","input_reference":"` + strings.TrimRight(dataURL, "=") + `"}`,
			providers.VideoRequest{Model: "sora-2", Inputs: upload},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, nil, func(_ *gateway, o *api.Options) { o.DefaultVideoModel = "sora-2" })
			got := created(t, g, request("POST", "/v1/videos", test.body))
			if !reflect.DeepEqual(got.Request, test.want) {
				t.Errorf("got %+v, want %+v", got.Request, test.want)
			}
			if got.TokenID != "good" || got.TokenName != "good" || got.Group != "default" || got.Format != providers.OpenAI {
				t.Errorf("got %+v", got)
			}
		})
	}
}

type part struct{ name, file, kind, content string }

func form(tb testing.TB, parts ...part) (contentType, body string) {
	tb.Helper()
	var buf bytes.Buffer
	w := multipart.NewWriter(&buf)
	for _, p := range parts {
		header := textproto.MIMEHeader{}
		disposition := `form-data; name="` + p.name + `"`
		if p.file != "" {
			disposition += `; filename="` + p.file + `"`
		}
		header.Set("Content-Disposition", disposition)
		if p.kind != "" {
			header.Set("Content-Type", p.kind)
		}
		out, err := w.CreatePart(header)
		if err != nil {
			tb.Fatal(err)
		}
		_, _ = out.Write([]byte(p.content))
	}
	_ = w.Close()
	return w.FormDataContentType(), buf.String()
}

func TestVideoCreateFromForm(t *testing.T) {
	t.Parallel()
	upload := func(name, kind string) []providers.Media {
		return []providers.Media{{Name: name, ContentType: kind, Size: int64(len(png)), Data: []byte(png)}}
	}
	model, prompt := part{"model", "", "", "sora-2"}, part{"prompt", "", "", "p"}
	for _, test := range []struct {
		name  string
		parts []part
		want  providers.VideoRequest
	}{
		{"everything", []part{
			model, prompt,
			{"seconds", "", "", "8"},
			{"size", "", "", "720x1280"},
			{"input_reference", "ü.png", "image/png", png},
			{"style", "", "", "x"},
			{"tag", "", "", "a"},
			{"tag", "", "", "b"},
			{"one[]", "", "", "a"},
			{"metadata[k]", "", "", "v"},
		}, providers.VideoRequest{
			Model: "sora-2", Prompt: "p", Seconds: "8", Size: "720x1280", Width: 720, Height: 1280, Inputs: upload("ü.png", "image/png"),
			Extra: json.RawMessage(`{"style":"x","tag":["a","b"],"one":["a"]}`), Metadata: json.RawMessage(`{"k":"v"}`),
		}},
		{
			"file without a type",
			[]part{model, {"input_reference", "a", "application/octet-stream", png}},
			providers.VideoRequest{Model: "sora-2", Inputs: upload("a", "image/png")},
		},
		{
			"metadata as JSON",
			[]part{model, prompt, {"metadata", "", "", ` {"k":1} `}},
			providers.VideoRequest{Model: "sora-2", Prompt: "p", Metadata: json.RawMessage(`{"k":1}`)},
		},
		{
			"reference in brackets",
			[]part{model, {"input_reference[image_url]", "", "", "http://example.com/a"}},
			providers.VideoRequest{Model: "sora-2", Inputs: []providers.Media{{URL: "http://example.com/a"}}},
		},
		{
			"reference as JSON",
			[]part{model, {"input_reference", "", "", `{"image_url":"http://example.com/a"}`}},
			providers.VideoRequest{Model: "sora-2", Inputs: []providers.Media{{URL: "http://example.com/a"}}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, nil, nil)
			contentType, body := form(t, test.parts...)
			got := created(t, g, request("POST", "/v1/videos", body, "Content-Type", contentType))
			if !reflect.DeepEqual(got.Request, test.want) {
				t.Errorf("got %+v, want %+v", got.Request, test.want)
			}
		})
	}
}

func TestVideoCreateFaults(t *testing.T) {
	t.Parallel()
	multi := func(parts ...part) *http.Request {
		contentType, body := form(t, append([]part{{"model", "", "", "sora-2"}, {"prompt", "", "", "p"}}, parts...)...)
		return request("POST", "/v1/videos", body, "Content-Type", contentType)
	}
	body := func(members string) *http.Request {
		return request("POST", "/v1/videos", `{"model":"sora-2",`+members+`}`)
	}
	_, cut := form(t, part{"model", "", "", "sora-2"}, part{"prompt", "", "", "p"})
	empty := body(`"prompt":"p"`)
	empty.Header["Idempotency-Key"] = []string{""}
	many := make([]part, 70)
	for i := range many {
		many[i] = part{"x", "", "", "1"}
	}
	for _, test := range []struct {
		name   string
		req    *http.Request
		status int
		code   string
		param  string
	}{
		{"no model", request("POST", "/v1/videos", `{"prompt":"p"}`), 400, "invalid_request", "model"},
		{"neither prompt nor image", body(`"seconds":"4"`), 400, "invalid_request", "prompt"},
		{"an empty prompt", body(`"prompt":""`), 400, "invalid_request", "prompt"},
		{"prompt is a number", body(`"prompt":1`), 400, "invalid_request", "prompt"},
		{"seconds is a word", body(`"prompt":"p","seconds":"long"`), 400, "invalid_request", "seconds"},
		{"seconds is empty", body(`"prompt":"p","seconds":""`), 400, "invalid_request", "seconds"},
		{"seconds is zero", body(`"prompt":"p","seconds":0`), 400, "invalid_request", "seconds"},
		{"seconds is negative", body(`"prompt":"p","seconds":"-4"`), 400, "invalid_request", "seconds"},
		{"seconds is no number", body(`"prompt":"p","seconds":"NaN"`), 400, "invalid_request", "seconds"},
		{"seconds is hexadecimal", body(`"prompt":"p","seconds":"0x8"`), 400, "invalid_request", "seconds"},
		{"seconds is a list", body(`"prompt":"p","seconds":[4]`), 400, "invalid_request", "seconds"},
		{"size is a number", body(`"prompt":"p","size":720`), 400, "invalid_request", "size"},
		{"metadata is a string", body(`"prompt":"p","metadata":"x"`), 400, "invalid_request", "metadata"},
		{"a file id", body(`"input_reference":{"file_id":"file_1"}`), 400, "invalid_request", "input_reference.file_id"},
		{"an empty reference", body(`"input_reference":{}`), 400, "invalid_request", "input_reference"},
		{"a reference is a number", body(`"input_reference":1`), 400, "invalid_request", "input_reference"},
		{"a strange scheme", body(`"input_reference":{"image_url":"file:///etc/passwd"}`), 400, "invalid_request", "input_reference.image_url"},
		{"no url", body(`"input_reference":"cat"`), 400, "invalid_request", "input_reference"},
		{"bad base64", body(`"input_reference":"data:image/png;base64,!!"`), 400, "invalid_request", "input_reference"},
		{"data url of a text", body(`"input_reference":"data:text/plain;base64,aGk="`), 400, "invalid_request", "input_reference"},
		{"data url without base64", body(`"input_reference":"data:image/svg+xml,<svg/>"`), 400, "invalid_request", "input_reference"},
		{"bad JSON", request("POST", "/v1/videos", `{`), 400, "invalid_request", ""},
		{"a file of text", multi(part{"input_reference", "a.txt", "text/plain", "hi"}), 400, "invalid_request", "input_reference"},
		{"an empty file", multi(part{"input_reference", "a.png", "image/png", ""}), 400, "invalid_request", "input_reference"},
		{"unknown bytes", multi(part{"input_reference", "a", "application/octet-stream", "hello"}), 400, "invalid_request", "input_reference"},
		{"another file", multi(part{"audio", "a.mp3", "audio/mpeg", "x"}), 400, "invalid_request", "audio"},
		{"a file as prompt", multi(part{"prompt", "a.txt", "text/plain", "x"}), 400, "invalid_request", "prompt"},
		{"prompt twice", multi(part{"prompt", "", "", "q"}), 400, "invalid_request", "prompt"},
		{"bad seconds in a form", multi(part{"seconds", "", "", "x"}), 400, "invalid_request", "seconds"},
		{"bad metadata in a form", multi(part{"metadata", "", "", "x"}), 400, "invalid_request", "metadata"},
		{"bad UTF-8 in a form", multi(part{"size", "", "", "\xff"}), 400, "invalid_request", "size"},
		{"a nameless part", multi(part{"", "", "", "x"}), 400, "invalid_request", ""},
		{"too many parts", multi(many...), 400, "invalid_request", ""},
		{"no boundary", request("POST", "/v1/videos", "x", "Content-Type", "multipart/form-data"), 400, "invalid_request", ""},
		{"another boundary", request("POST", "/v1/videos", cut, "Content-Type", "multipart/form-data; boundary=x"), 400, "invalid_request", ""},
		{"unknown model", request("POST", "/v1/videos", `{"model":"sora-9","prompt":"p"}`), 404, "model_not_found", "model"},
		{
			"a model the token may not see", request("POST", "/v1/videos", `{"model":"sora-2","prompt":"p"}`, "Authorization", "Bearer sk-few"),
			404, "model_not_found", "model",
		},
		{
			"a long prompt", request("POST", "/v1/videos", `{"model":"sora-2","prompt":"`+strings.Repeat("p", 128<<10+1)+`"}`), 400,
			"invalid_request", "prompt",
		},
		{
			"long metadata", request("POST", "/v1/video/generations",
				`{"model":"sora-2","prompt":"p","metadata":{"a":"`+strings.Repeat("p", 128<<10)+`"}}`),
			400, "invalid_request", "metadata",
		},
		{"an empty key", empty, 400, "invalid_request", "Idempotency-Key"},
		{
			"a long key", request("POST", "/v1/videos", `{"model":"sora-2","prompt":"p"}`, "Idempotency-Key", strings.Repeat("k", 256)),
			400, "invalid_request", "Idempotency-Key",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, nil, nil)
			rec := g.do(t, test.req)
			if rec.Code != test.status {
				t.Fatalf("got %d %s, want %d", rec.Code, rec.Body, test.status)
			}
			if code, param := fault(t, rec); code != test.code || param != test.param {
				t.Errorf("got %q on %q (%s), want %q on %q", code, param, rec.Body, test.code, test.param)
			}
			if len(g.tasks.creates) != 0 {
				t.Error("a task was made")
			}
		})
	}
}

func TestVideoCreateKeys(t *testing.T) {
	t.Parallel()
	const body = `{"model":"sora-2","prompt":"p"}`
	for name, test := range map[string]struct {
		headers []string
		key     string
		repeat  bool
	}{
		"neither":          {nil, "", false},
		"a key":            {[]string{"Idempotency-Key", strings.Repeat("ü", 255)}, strings.Repeat("ü", 255), false},
		"a first try":      {[]string{"X-Stainless-Retry-Count", "0"}, "", false},
		"a repeat":         {[]string{"X-Stainless-Retry-Count", "2"}, "", true},
		"nonsense":         {[]string{"X-Stainless-Retry-Count", "x"}, "", false},
		"a repeat and key": {[]string{"X-Stainless-Retry-Count", "1", "Idempotency-Key", "k"}, "k", true},
	} {
		g := newGateway(t, nil, nil)
		got := created(t, g, request("POST", "/v1/videos", body, test.headers...))
		if got.IdempotencyKey != test.key || got.Repeat != test.repeat {
			t.Errorf("%s: got key %q, repeat %v", name, got.IdempotencyKey, got.Repeat)
		}
	}
}

func TestVideoTaskFaults(t *testing.T) {
	t.Parallel()
	for kind, want := range map[providers.Kind]struct {
		status int
		code   string
		header map[string]string
	}{
		providers.Mismatch:   {422, "idempotency_mismatch", map[string]string{"X-Should-Retry": "false"}},
		providers.Conflict:   {409, "conflict", map[string]string{"Retry-After": "1"}},
		providers.Overloaded: {503, "overloaded", map[string]string{"Retry-After": "1"}},
		providers.Internal:   {500, "internal_error", nil},
	} {
		g := newGateway(t, nil, nil)
		g.tasks.err = &providers.Fault{Kind: kind, Message: "m", RetryAfter: time.Second}
		rec := g.do(t, request("POST", "/v1/videos", `{"model":"sora-2","prompt":"p"}`))
		if code, _ := fault(t, rec); rec.Code != want.status || code != want.code {
			t.Errorf("%s: got %d %s", kind, rec.Code, rec.Body)
		}
		for name, value := range want.header {
			if got := rec.Header().Get(name); got != value {
				t.Errorf("%s: %s got %q, want %q", kind, name, got, value)
			}
		}
	}
}

// TestTasksOfOthers: a task of another token looks like none at all, on every route.
func TestTasksOfOthers(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	g.tasks.put(tasks.Task{ID: "video_1", Token: "good", State: workflows.Queued, CreatedAt: day})
	for _, route := range [][2]string{
		{"GET", "/v1/videos/video_1"},
		{"POST", "/v1/videos/video_1/cancel"},
		{"GET", "/v1/videos/video_1/content"},
		{"HEAD", "/v1/videos/video_1/content"},
		{"DELETE", "/v1/videos/video_1"},
		{"GET", "/v1/videos/video_1/events"},
		{"GET", generations + "/video_1"},
		{"POST", generations + "/video_1/cancel"},
		{"DELETE", generations + "/video_1"},
		{"GET", generations + "/video_1/events"},
	} {
		others := g.do(t, request(route[0], route[1], "", "Authorization", "Bearer "+otherKey))
		unknown := g.do(t, request(route[0], strings.Replace(route[1], "video_1", "video_0", 1), ""))
		if others.Code != 404 || unknown.Code != 404 {
			t.Errorf("%v: got %d and %d, want 404", route, others.Code, unknown.Code)
		}
		if code, _ := fault(t, others); code != "not_found" {
			t.Errorf("%v: got %q", route, code)
		}
	}
	if g.tasks.byID["video_1"].State != workflows.Queued {
		t.Error("another token cancelled the task")
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	g.tasks.put(tasks.Task{ID: "video_1", Token: "good", State: workflows.InProgress, CreatedAt: day})
	rec := g.do(t, request("POST", "/v1/videos/video_1/cancel", ""))
	if rec.Code != 200 || !strings.Contains(rec.Body.String(), `"status":"failed"`) ||
		!strings.Contains(rec.Body.String(), `"code":"cancelled"`) {
		t.Errorf("got %d %s", rec.Code, rec.Body)
	}
	again := g.do(t, request("POST", "/v1/videos/video_1/cancel", ""))
	if again.Code != 200 || again.Body.String() != rec.Body.String() {
		t.Errorf("again: got %d %s, want it unchanged", again.Code, again.Body)
	}
}

func FuzzVideoForm(f *testing.F) {
	contentType, body := form(f, part{"model", "", "", "sora-2"}, part{"prompt", "", "", "p"},
		part{"input_reference", "a.png", "image/png", png},
		part{"metadata[k]", "", "", "v"}, part{"x[]", "", "", "1"})
	f.Add(contentType, []byte(body))
	f.Add("multipart/form-data; boundary=x", []byte("--x\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\np\r\n--x--"))
	f.Add("application/json", []byte(`{"model":"sora-2","prompt":"p","seconds":4,"a":{"b":[1]}}`))
	g := newGateway(f, nil, nil)
	g.tokens[goodKey] = &tokens.Token{ID: "good", Group: "default"}
	f.Fuzz(func(t *testing.T, contentType string, raw []byte) {
		req := request("POST", "/v1/videos", "")
		req.Body, req.ContentLength = http.NoBody, 0
		if len(raw) > 0 {
			with := request("POST", "/v1/videos", string(raw))
			req.Body, req.ContentLength = with.Body, with.ContentLength
		}
		req.Header["Content-Type"] = []string{contentType}
		g.tasks.creates = nil
		rec := g.do(t, req)
		switch {
		case rec.Code == 200:
			made := g.tasks.creates[0].Request
			if extra := made.Extra; extra != nil && !json.Valid(extra) {
				t.Errorf("extra is not JSON: %s", extra)
			}
			if metadata := made.Metadata; metadata != nil && !json.Valid(metadata) {
				t.Errorf("metadata is not JSON: %s", metadata)
			}
		case rec.Code >= 500:
			t.Errorf("got %d %s", rec.Code, rec.Body)
		}
	})
}
