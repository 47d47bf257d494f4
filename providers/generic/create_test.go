package generic_test

import (
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
)

// create submits to an upstream that gives one answer; the body is nil where nothing was sent.
func create(t *testing.T, req providers.VideoRequest, status int, answer string) (body []byte, ticket providers.Ticket, err error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil || r.ContentLength != int64(len(body)) ||
			r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("got %d of %d bytes, %v", len(body), r.ContentLength, err)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	ticket, err = newVideos(t).Submit(t.Context(), target(server.URL), req)
	return body, ticket, err
}

func TestVideoTickets(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`{"id":"video_1","task_id":"video_1"}`:                        "video_1",
		`{"id":"video_1"}`:                                            "video_1",
		`{"id":12,"task_id":"task_1"}`:                                "task_1",
		`{"code":"success","data":{"id":12,"task_id":"task_1"}}`:      "task_1",
		`{"code":"success","data":{"task_id":"task_1","status":"x"}}`: "task_1",
	} {
		_, ticket, err := create(t, providers.VideoRequest{Prompt: "a cat"}, http.StatusOK, answer)
		if err != nil || ticket.Job != want {
			t.Errorf("%s: got %+v, %v, want %q", answer, ticket, err, want)
		}
	}
}

func TestVideoCreate(t *testing.T) {
	t.Parallel()
	seed := int64(1)<<62 + 1
	type fields = map[string]string
	image := func(contentType string) []providers.Media {
		return []providers.Media{{
			Object: "tasks/video_1/inputs/0", ContentType: contentType,
			Open: func(context.Context) (io.ReadCloser, error) {
				return io.NopCloser(strings.NewReader("\x00\x01\x02")), nil
			},
		}}
	}
	for _, tc := range []struct {
		name string
		req  providers.VideoRequest
		want fields
	}{
		{"a prompt", providers.VideoRequest{Prompt: "千军万马"}, fields{"prompt": `"千军万马"`}},
		{
			"everything",
			providers.VideoRequest{
				Model: "pub", Prompt: "a cat", Seconds: "5.50", Size: "1280x720", Width: 1280, Height: 720, FPS: 30, N: 3, Seed: &seed, User: "u",
				Extra:    json.RawMessage(`{"guidance":7.50,"mask":null,"model":"another","metadata":{"x":1}}`),
				Metadata: json.RawMessage(`{"style":"noir","n":{"deep":[1.0]}}`), IdempotencyKey: "video_1-1",
				WebhookURL: "https://client.example/hook", RemixOf: "video_0",
			},
			fields{
				"prompt": `"a cat"`, "duration": "5.5", "width": "1280", "height": "720", "fps": "30", "n": "3", "seed": "4611686018427387905",
				"guidance": "7.50", "mask": "null", "metadata": `{"style":"noir","n":{"deep":[1.0]}}`,
			},
		},
		{"a word for a size", providers.VideoRequest{Prompt: "a", Size: "1080p"}, fields{"prompt": `"a"`, "size": `"1080p"`}},
		{"an address", providers.VideoRequest{Inputs: []providers.Media{{URL: "https://h/a.png?x=1"}}}, fields{"image": `"https://h/a.png?x=1"`}},
		{"data", providers.VideoRequest{Inputs: image("image/webp")}, fields{"image": `"data:image/webp;base64,AAEC"`}},
		{"data without a type", providers.VideoRequest{Inputs: image("")}, fields{"image": `"AAEC"`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			body, _, err := create(t, tc.req, http.StatusOK, `{"id":"video_1"}`)
			if err != nil {
				t.Fatal(err)
			}
			again, _, err := create(t, tc.req, http.StatusOK, `{"id":"video_1"}`)
			if err != nil || string(again) != string(body) {
				t.Errorf("the same request has other bytes the second time: %s, %v", again, err)
			}
			var members map[string]json.RawMessage
			if err := json.Unmarshal(body, &members); err != nil {
				t.Fatal(err)
			}
			got := make(fields)
			for name, raw := range members {
				got[name] = string(raw)
			}
			want := maps.Clone(tc.want)
			want["model"] = `"up"`
			if !maps.Equal(got, want) {
				t.Errorf("got %q\nwant %q", got, want)
			}
		})
	}
}

// TestVideoRefusals: the fault that a refused create returns to the client, the router and the task.
func TestVideoRefusals(t *testing.T) {
	t.Parallel()
	const said = "The upstream refused the request: "
	type want struct {
		kind           providers.Kind
		accepted       providers.Accepted
		retryable      bool
		message        string
		code, param    string
		blamesTheOwner bool
	}
	for _, tc := range []struct {
		name   string
		status int
		body   string
		want   want
	}{
		{
			"field", 400, `{"error":{"message":"'duration' must be a number of seconds.","type":"invalid_request_error","param":"duration","code":"invalid_request"}}`,
			want{
				kind: providers.Invalid, accepted: providers.NotAccepted, message: said + "'duration' must be a number of seconds.",
				code: "invalid_request", param: "duration",
			},
		},
		{
			"the key is another request's", 422, `{"error":{"message":"used","type":"invalid_request_error","code":"idempotency_mismatch"}}`,
			want{kind: providers.Invalid, accepted: providers.AcceptedUnknown, message: said + "used", code: "idempotency_mismatch"},
		},
		{
			"the key's task is being started", 409, `{"error":{"message":"being started","type":"invalid_request_error","code":"conflict"}}`,
			want{kind: providers.Conflict, accepted: providers.AcceptedUnknown, message: said + "being started", code: "conflict"},
		},
		{
			"another 422", 422, `{"message":"no such size","code":"bad_size"}`,
			want{kind: providers.Invalid, accepted: providers.NotAccepted, message: said + "no such size", code: "bad_size"},
		},
		{
			"no model", 404, `{"error":{"message":"hush","type":"invalid_request_error","code":"model_not_found"}}`,
			want{kind: providers.ModelNotFound, accepted: providers.NotAccepted, message: said + "hush", code: "model_not_found"},
		},
		{
			"out of money", 429, `{"error":{"message":"x","type":"insufficient_quota","code":"insufficient_quota"}}`,
			want{
				kind: providers.Upstream, accepted: providers.NotAccepted, retryable: true, message: "The upstream refused the gateway's own key.",
				code: "insufficient_quota", blamesTheOwner: true,
			},
		},
		{
			"overloaded", 503, `{"error":{"message":"x","type":"api_error","code":"overloaded"}}`,
			want{
				kind: providers.Overloaded, accepted: providers.AcceptedUnknown, retryable: true, message: "The upstream is overloaded.",
				code: "overloaded",
			},
		},
		{"nothing", 400, `<html>`, want{kind: providers.Invalid, accepted: providers.NotAccepted, message: "The upstream refused the request."}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := create(t, providers.VideoRequest{Prompt: "a"}, tc.status, tc.body)
			var fault *providers.Fault
			if !errors.As(err, &fault) {
				t.Fatalf("got %v", err)
			}
			got := want{fault.Kind, fault.Accepted, fault.Retryable(), fault.Message, fault.Code, fault.Param, fault.Blame == providers.BlameKey}
			if got != tc.want {
				t.Errorf("got %+v\nwant %+v", got, tc.want)
			}
		})
	}
	for name, req := range map[string]providers.VideoRequest{
		"two images": {Inputs: []providers.Media{{URL: "https://h/a.png"}, {URL: "https://h/b.png"}}},
		"no number":  {Prompt: "a", Seconds: "long"},
		"no object":  {Prompt: "a", Extra: json.RawMessage(`[1]`)},
	} {
		body, _, err := create(t, req, http.StatusOK, `{"id":"video_1"}`)
		if fault, ok := errors.AsType[*providers.Fault](err); !ok || fault.Kind != providers.Invalid || fault.Accepted != providers.NotAccepted ||
			body != nil {
			t.Errorf("%s: got %v, sent %q", name, err, body)
		}
	}
}

// TestVideoFindDeclared: a create is repeated only where the upstream declares that this makes no second task.
func TestVideoFindDeclared(t *testing.T) {
	t.Parallel()
	const remixes = `{"paths":{"/v1/videos":{"post":{}},"/v1/videos/{id}/remix":{"post":{"parameters":[{"in":"header","name":"Idempotency-Key"}]}}}}`
	for _, tc := range []struct {
		name, document string
		status         int
		found, remix   bool
	}{
		{"remix declared", remixes, 200, true, true},
		{"only a remix declared", remixes, 200, false, false},
		{"declared", `{"paths":{"/v1/video/generations":{"post":{"parameters":[{"in":"query","name":"x"},{"in":"header","name":"idempotency-key"}]}}}}`, 200, true, false},
		{
			"only a create declared", `{"paths":{"/v1/video/generations":{"post":{"parameters":[{"in":"header","name":"Idempotency-Key"}]}}}}`, 200,
			false, true,
		},
		{
			"not declared", `{"paths":{"/v1/video/generations":{"post":{"parameters":[{"in":"query","name":"Idempotency-Key"}]}}}}`, 200, false,
			false,
		},
		{"another operation's", `{"paths":{"/v1/videos":{"post":{"parameters":[{"in":"header","name":"Idempotency-Key"}]}}}}`, 200, false, false},
		{"no document", `<html>`, 200, false, false},
		{"more than is read", `{"paths":{"/v1/video/generations":{"post":{"parameters":[{"in":"header","name":"Idempotency-Key"}]}}},"x":"` +
			strings.Repeat("x", 5<<20) + `"}`, 200, false, false},
		{"none at all", `not found`, 404, false, false},
		{"away", `x`, 503, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			creates := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.Method + " " + r.URL.Path {
				case "GET /openapi.json":
					w.WriteHeader(tc.status)
					_, _ = io.WriteString(w, tc.document)
				case "POST /v1/video/generations", "POST /v1/videos/video_0/remix":
					if remix := r.URL.Path != "/v1/video/generations"; remix != tc.remix || r.Header.Get("Idempotency-Key") != "video_1-1" {
						t.Errorf("got %s with key %q", r.URL.Path, r.Header.Get("Idempotency-Key"))
					}
					creates++
					_, _ = io.WriteString(w, `{"id":"video_1"}`)
				default:
					t.Errorf("got %s %s", r.Method, r.URL.Path)
				}
			}))
			t.Cleanup(server.Close)
			req := providers.VideoRequest{Prompt: "a", IdempotencyKey: "video_1-1"}
			if tc.remix {
				req.Source = &providers.Ticket{Job: "video_0"}
			}
			ticket, err := newVideos(t).Find(t.Context(), target(server.URL+"/v1"), req)
			if tc.found {
				if err != nil || ticket.Job != "video_1" || creates != 1 {
					t.Errorf("got %+v, %v after %d creates", ticket, err, creates)
				}
				return
			}
			if final := errors.Is(err, providers.ErrNoLookup); final != (tc.status != 503) {
				t.Errorf("another look finds no more: %v, %v", final, err)
			}
			if fault, ok := errors.AsType[*providers.Fault](err); !ok || fault.Accepted != providers.AcceptedUnknown || creates != 0 {
				t.Errorf("got %v after %d creates", err, creates)
			}
		})
	}
}
