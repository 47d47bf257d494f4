package openai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/openai"
	"modelrelay/providers/upstream"
)

func newClient(t *testing.T) *http.Client {
	t.Helper()
	client := upstream.NewClient(nil)
	t.Cleanup(client.CloseIdleConnections)
	return client
}

func target(base string) providers.Target {
	return providers.Target{Channel: providers.Channel{Name: "main", BaseURL: base}, Key: "upstream-credential", Model: "up"}
}

// sent is a request as the upstream saw it.
type sent struct {
	contentType string
	body        []byte
}

// request is the request again, unread.
func (s sent) request(t *testing.T) *http.Request {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/videos", bytes.NewReader(s.body))
	req.Header.Set("Content-Type", s.contentType)
	return req
}

// create submits to an upstream that gives the answer to everything; sent is nil where nothing was sent.
func create(t *testing.T, req providers.VideoRequest, answer string) (seen *sent, ticket providers.Ticket, err error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.ContentLength != int64(len(body)) {
			t.Errorf("got %d of %d bytes, %v", len(body), r.ContentLength, err)
		}
		seen = &sent{contentType: r.Header.Get("Content-Type"), body: body}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	ticket, err = openai.NewVideos(newClient(t)).Submit(t.Context(), target(server.URL), req)
	return seen, ticket, err
}

func TestVideoTickets(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`{"id":"video_1","task_id":"task_1"}`: "video_1",
		`{"task_id":"task_1"}`:                "task_1",
		`{"id":"","task_id":"task_1"}`:        "task_1",
		`{"id":12345678901234567890}`:         "12345678901234567890",
		`{"id":"video_1","progress":"0%","size":null,"seconds":4,"video":"later"}`: "video_1",
	} {
		_, ticket, err := create(t, providers.VideoRequest{Prompt: "a cat"}, answer)
		if err != nil || ticket.Job != want {
			t.Errorf("%s: got %+v, %v, want job %q", answer, ticket, err, want)
		}
	}
}

func TestVideoForm(t *testing.T) {
	t.Parallel()
	seed := int64(1)<<62 + 1
	data := []byte("\x89PNG\r\n--boundary--")
	type fields = map[string]string
	image := func(name, contentType string) providers.VideoRequest {
		return providers.VideoRequest{Inputs: []providers.Media{{
			Object: "tasks/video_1/inputs/0", Name: name, ContentType: contentType,
			Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
		}}}
	}
	for _, tc := range []struct {
		name           string
		req            providers.VideoRequest
		want           fields
		file, fileType string
	}{
		{name: "a prompt", req: providers.VideoRequest{Prompt: "a cat\r\n✓"}, want: fields{"model": "up", "prompt": "a cat\r\n✓"}},
		{
			name: "everything", req: providers.VideoRequest{
				Model: "pub", Prompt: "a cat", Seconds: "8", Size: "1280x720", Width: 9, Height: 9, FPS: 24, N: 1, Seed: &seed, User: "u",
				Extra:    json.RawMessage(`{"style":"noir","guidance":7.50,"loop":true,"mask":null,"camera":{"pan": 1.0},"model":"another","prompt":"another"}`),
				Metadata: json.RawMessage(`{"style":"vivid","campaign":"a \"b\""}`),
			},
			want: fields{
				"model": "up", "prompt": "a cat", "seconds": "8", "size": "1280x720", "seed": "4611686018427387905",
				"style": "noir", "guidance": "7.50", "loop": "true", "camera": `{"pan": 1.0}`, "campaign": `a "b"`,
			},
		},
		{
			name: "dimensions", req: providers.VideoRequest{Prompt: "a", Width: 720, Height: 1280},
			want: fields{"model": "up", "prompt": "a", "size": "720x1280"},
		},
		{name: "one dimension", req: providers.VideoRequest{Prompt: "a", Width: 720}, want: fields{"model": "up", "prompt": "a"}},
		{
			name: "nulls", req: providers.VideoRequest{Prompt: "a", Extra: json.RawMessage(`null`), Metadata: json.RawMessage(` null`)},
			want: fields{"model": "up", "prompt": "a"},
		},
		{name: "odd names", req: providers.VideoRequest{Extra: json.RawMessage(`{"a\"b":"1"}`)}, want: fields{"model": "up", `a"b`: "1"}},
		{name: "an image", req: image("Katze ✓.png", "image/png"), want: fields{"model": "up"}, file: "Katze ✓.png", fileType: "image/png"},
		{
			name: "an image without a name", req: image("", ""), want: fields{"model": "up"}, file: "input_reference",
			fileType: "application/octet-stream",
		},
		{
			name: "an image with a header in its type", req: image("a\r\nX: y.png", "image/png\r\nX-Evil: 1"),
			want: fields{"model": "up"}, file: "a%0D%0AX: y.png", fileType: "application/octet-stream",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			seen, _, err := create(t, tc.req, `{"id":"video_1"}`)
			if err != nil {
				t.Fatal(err)
			}
			req := seen.request(t)
			if err := req.ParseMultipartForm(1 << 20); err != nil {
				t.Fatalf("got type %q: %v", seen.contentType, err)
			}
			got := make(fields)
			for name, values := range req.MultipartForm.Value {
				got[name] = strings.Join(values, "; ")
			}
			if !maps.Equal(got, tc.want) {
				t.Errorf("got fields %q, want %q", got, tc.want)
			}
			if tc.file == "" {
				if len(req.MultipartForm.File) != 0 {
					t.Errorf("got files %v", req.MultipartForm.File)
				}
				return
			}
			file, err := upload(seen.request(t))
			if err != nil || file.Name != tc.file || file.ContentType != tc.fileType || !bytes.Equal(file.Data, data) {
				t.Errorf("got %+v, %v, want %q of type %q", file, err, tc.file, tc.fileType)
			}
		})
	}
}

func TestVideoJSON(t *testing.T) {
	t.Parallel()
	seed := int64(-7)
	seen, _, err := create(t, providers.VideoRequest{
		Prompt: "a cat", Seconds: "4", Seed: &seed, Inputs: []providers.Media{{URL: "https://example.com/a.png?x=1&y=2"}},
		Extra:    json.RawMessage(`{"guidance":7.50,"mask":null,"input_reference":{"file_id":"f"}}`),
		Metadata: json.RawMessage(`{"campaign":"c"}`),
	}, `{"id":"video_1"}`)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]json.RawMessage
	if err := json.Unmarshal(seen.body, &got); err != nil || seen.contentType != "application/json" {
		t.Fatalf("got type %q, %v", seen.contentType, err)
	}
	var reference map[string]string
	err = json.Unmarshal(got["input_reference"], &reference)
	if err != nil || !maps.Equal(reference, map[string]string{"image_url": "https://example.com/a.png?x=1&y=2"}) {
		t.Errorf("got input_reference %s, %v", got["input_reference"], err)
	}
	delete(got, "input_reference")
	words := make(map[string]string)
	for name, raw := range got {
		words[name] = string(raw)
	}
	want := map[string]string{
		"model": `"up"`, "prompt": `"a cat"`, "seconds": `"4"`, "seed": "-7", "guidance": "7.50", "mask": "null",
		"campaign": `"c"`,
	}
	if !maps.Equal(words, want) {
		t.Errorf("got %q, want %q", words, want)
	}
}

// TestVideoRemixBody: a remix carries the prompt and the caller's own parameters, and nothing of the source's.
func TestVideoRemixBody(t *testing.T) {
	t.Parallel()
	var seen []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var err error
		if seen, err = io.ReadAll(r.Body); err != nil || r.URL.EscapedPath() != "/videos/a%2Fb/remix" ||
			r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("got %s of type %s, %v", r.URL.EscapedPath(), r.Header.Get("Content-Type"), err)
		}
		_, _ = io.WriteString(w, `{"id":"video_2"}`)
	}))
	t.Cleanup(server.Close)
	ticket, err := openai.NewVideos(newClient(t)).Remix(t.Context(), target(server.URL), providers.Ticket{Job: "a/b"}, providers.VideoRequest{
		Model: "pub", Prompt: "at night", Seconds: "8", Size: "1280x720", Extra: json.RawMessage(`{"guidance":7.50}`), RemixOf: "video_0",
	})
	if want := `{"guidance":7.50,"prompt":"at night"}`; err != nil || ticket.Job != "video_2" || string(seen) != want {
		t.Errorf("got %s, %+v, %v, want %s", seen, ticket, err, want)
	}
}

// TestVideoRefusesItself: what the vendor has no field for is refused before anything is sent.
func TestVideoRefusesItself(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, param string
		req         providers.VideoRequest
	}{
		{name: "two videos", param: "n", req: providers.VideoRequest{Prompt: "a", N: 2}},
		{
			name: "two images", param: "input_reference",
			req: providers.VideoRequest{Inputs: []providers.Media{{URL: "https://example.com/a.png"}, {URL: "https://example.com/b.png"}}},
		},
		{name: "parameters that are no object", req: providers.VideoRequest{Prompt: "a", Extra: json.RawMessage(`[1]`)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			seen, _, err := create(t, tc.req, `{"id":"video_1"}`)
			var fault *providers.Fault
			if !errors.As(err, &fault) {
				t.Fatalf("got %v", err)
			}
			if fault.Kind != providers.Invalid || fault.Param != tc.param || fault.Accepted != providers.NotAccepted || fault.Retryable() {
				t.Errorf("got %+v", fault)
			}
			if seen != nil {
				t.Error("it was sent")
			}
		})
	}
}

// TestVideoRefusals: the fault that a refused create returns to the client and the router.
func TestVideoRefusals(t *testing.T) {
	t.Parallel()
	const said = "The upstream refused the request: "
	for _, tc := range []struct {
		name, body             string
		status                 int
		kind                   providers.Kind
		message                string
		code, param            string
		retryable, blamesOnKey bool
	}{
		{
			name: "field", status: 400, body: `{"error":{"message":"Invalid value: '5'.","type":"invalid_request_error","param":"seconds","code":"invalid_value"}}`,
			kind: providers.Invalid, message: said + "Invalid value: '5'.", code: "invalid_value", param: "seconds",
		},
		{name: "bare error", status: 400, body: `{"error":"no such size"}`, kind: providers.Invalid, message: said + "no such size"},
		{name: "bare message", status: 422, body: `{"message":"no such size"}`, kind: providers.Invalid, message: said + "no such size"},
		{name: "detail", status: 422, body: `{"detail":"no such size"}`, kind: providers.Invalid, message: said + "no such size"},
		{name: "nothing", status: 400, body: `<html>`, kind: providers.Invalid, message: "The upstream refused the request."},
		{
			name: "another shape", status: 400, body: `{"error":[],"detail":[{"msg":"x"}]}`, kind: providers.Invalid,
			message: "The upstream refused the request: x",
		},
		{
			name: "long", status: 400, body: `{"error":{"message":"` + strings.Repeat("é", 300) + `"}}`,
			kind: providers.Invalid, message: said + strings.Repeat("é", 200) + "…",
		},
		{
			name: "the key in its words", status: 400, body: `{"error":{"message":"bad key upstream-credential","code":"x"}}`,
			kind: providers.Invalid, message: said + "bad key ***", code: "x",
		},
		{
			name: "the client's link in its words", status: 400,
			body: `{"error":{"message":"cannot fetch https://h/a.png?sig=hush","code":"` + strings.Repeat("x", 120) + `"}}`,
			kind: providers.Invalid, message: said + "cannot fetch https://h/a.png?…", code: strings.Repeat("x", 100) + "…",
		},
		{
			name: "no such route", status: 404, body: `{"error":{"message":"Invalid URL (POST /videos)","type":"invalid_request_error","param":null,"code":null}}`,
			kind: providers.NotFound, message: said + "Invalid URL (POST /videos)", code: "invalid_request_error",
		},
		{
			name: "billing in a 400", status: 400,
			body: `{"error":{"message":"Billing hard limit has been reached","type":"invalid_request_error","param":null,"code":"billing_hard_limit_reached"}}`,
			kind: providers.Upstream, message: "The upstream refused the gateway's own key.", code: "billing_hard_limit_reached", retryable: true,
			blamesOnKey: true,
		},
		{
			name: "limited", status: 429, body: `{"error":{"message":"Slow down","type":"requests","param":null,"code":"rate_limit_exceeded"}}`,
			kind: providers.RateLimited, message: "The upstream limits the rate of requests.", code: "rate_limit_exceeded", retryable: true,
			blamesOnKey: true,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			}))
			t.Cleanup(server.Close)
			_, err := openai.NewVideos(newClient(t)).Submit(t.Context(), target(server.URL), providers.VideoRequest{Prompt: "a"})
			var fault *providers.Fault
			if !errors.As(err, &fault) {
				t.Fatalf("got %v", err)
			}
			if fault.Kind != tc.kind || fault.Message != tc.message || fault.Code != tc.code || fault.Param != tc.param ||
				fault.Accepted != providers.NotAccepted {
				t.Errorf("got %+v", fault)
			}
			if fault.Retryable() != tc.retryable || (fault.Blame == providers.BlameKey) != tc.blamesOnKey {
				t.Errorf("got retryable %t, blame %d", fault.Retryable(), fault.Blame)
			}
		})
	}
}
