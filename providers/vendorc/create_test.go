package vendorc_test

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
)

// submit sends a create to an upstream that accepts it; the body is nil where nothing was sent.
func submit(t *testing.T, req providers.VideoRequest) (body []byte, ticket providers.Ticket, err error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil || r.ContentLength != int64(len(body)) ||
			r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("got %d of %d bytes, %v", len(body), r.ContentLength, err)
		}
		_, _ = io.WriteString(w, `{"code":10000,"data":{"task_id":7392616336519610409},"message":"Success"}`)
	}))
	t.Cleanup(server.Close)
	ticket, err = newVideos(t).Submit(t.Context(), target(server.URL), req)
	return body, ticket, err
}

func image(data string) providers.Media {
	return providers.Media{
		Object: "tasks/video_1/inputs/0",
		Open:   func(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(data)), nil },
	}
}

func TestVideoCreate(t *testing.T) {
	t.Parallel()
	seed := int64(1)<<62 + 1
	type fields = map[string]string
	for _, tc := range []struct {
		name string
		req  providers.VideoRequest
		want fields
	}{
		{"a prompt", providers.VideoRequest{Prompt: "千军万马"}, fields{"prompt": `"千军万马"`}},
		{
			"everything",
			providers.VideoRequest{
				Model: "pub", Prompt: "a cat", Seconds: "5", Width: 1280, Height: 720, FPS: 30, N: 1, Seed: &seed, User: "u",
				Extra:    json.RawMessage(`{"camera_strength":"weak","guidance":7.50,"mask":null,"req_key":"another"}`),
				Metadata: json.RawMessage(`{"camera_strength":"strong","campaign":"c"}`), IdempotencyKey: "video_1-1",
			},
			fields{
				"prompt": `"a cat"`, "frames": "121", "aspect_ratio": `"16:9"`, "seed": "4611686018427387905",
				"camera_strength": `"weak"`, "guidance": "7.50", "mask": "null", "campaign": `"c"`,
			},
		},
		{"ten seconds", providers.VideoRequest{Prompt: "a", Seconds: "10"}, fields{"prompt": `"a"`, "frames": "241"}},
		{"part of a second", providers.VideoRequest{Prompt: "a", Seconds: "0.5"}, fields{"prompt": `"a"`, "frames": "13"}},
		{
			"upright",
			providers.VideoRequest{Prompt: "a", Size: "720x1280", Width: 720, Height: 1280},
			fields{"prompt": `"a"`, "aspect_ratio": `"9:16"`},
		},
		{
			"the vendor's own size",
			providers.VideoRequest{Prompt: "a", Width: 2176, Height: 928},
			fields{"prompt": `"a"`, "aspect_ratio": `"21:9"`},
		},
		{
			"another of the vendor's",
			providers.VideoRequest{Prompt: "a", Width: 1088, Height: 1920},
			fields{"prompt": `"a"`, "aspect_ratio": `"9:16"`},
		},
		{"a ratio for a size", providers.VideoRequest{Prompt: "a", Size: "3:4"}, fields{"prompt": `"a"`, "aspect_ratio": `"3:4"`}},
		{
			"the vendor's own ratio",
			providers.VideoRequest{Prompt: "a", Extra: json.RawMessage(`{"aspect_ratio":"2:1"}`)},
			fields{"prompt": `"a"`, "aspect_ratio": `"2:1"`},
		},
		{"addresses", providers.VideoRequest{
			Inputs: []providers.Media{{URL: "https://h/a.png?x=1&y=2"}, {URL: "https://h/b.png"}}, Width: 999,
			Height: 10,
		}, fields{
			"image_urls": `["https://h/a.png?x=1\u0026y=2","https://h/b.png"]`,
		}},
		{
			"data",
			providers.VideoRequest{Inputs: []providers.Media{image("\x00\x01\x02"), image("four")}},
			fields{"binary_data_base64": `["AAEC","Zm91cg=="]`},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			body, ticket, err := submit(t, tc.req)
			if err != nil || ticket.Job != "7392616336519610409" || string(ticket.Data) != `{"req_key":"jimeng_t2v_v30"}` {
				t.Fatalf("got %+v, %v", ticket, err)
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
			want["req_key"] = `"jimeng_t2v_v30"`
			if !maps.Equal(got, want) {
				t.Errorf("got %q\nwant %q", got, want)
			}
		})
	}
}

// TestVideoReqJSON: how the vendor marks the video goes with the looks, not with the submit.
func TestVideoReqJSON(t *testing.T) {
	t.Parallel()
	const marks = `{"aigc_meta":{"content_producer":"001191440300192203821610000"}}`
	text, err := json.Marshal(map[string]string{"req_json": marks})
	if err != nil {
		t.Fatal(err)
	}
	body, ticket, err := submit(t, providers.VideoRequest{Prompt: "a", Extra: text})
	if err != nil || bytes.Contains(body, []byte("req_json")) {
		t.Fatalf("got %s, %v", body, err)
	}
	var asked map[string]string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, `{"code":10000,"data":{"status":"generating"}}`)
	}))
	t.Cleanup(server.Close)
	to := target(server.URL)
	to.Model = "renamed-since"
	if _, err := newVideos(t).Poll(t.Context(), to, ticket); err != nil {
		t.Fatal(err)
	}
	if want := (map[string]string{"req_key": "jimeng_t2v_v30", "task_id": "7392616336519610409", "req_json": marks}); !maps.Equal(asked,
		want) {
		t.Errorf("got %q, want %q", asked, want)
	}
}

// TestVideoRefusesItself: what the vendor has no field for is refused before anything is sent.
func TestVideoRefusesItself(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, param string
		req         providers.VideoRequest
	}{
		{"two videos", "n", providers.VideoRequest{Prompt: "a", N: 2}},
		{"no time", "seconds", providers.VideoRequest{Prompt: "a", Seconds: "0"}},
		{"endless time", "seconds", providers.VideoRequest{Prompt: "a", Seconds: "Inf"}},
		{"no number", "seconds", providers.VideoRequest{Prompt: "a", Seconds: "NaN"}},
		{"a size of no ratio it makes", "size", providers.VideoRequest{Prompt: "a", Width: 1000, Height: 100}},
		{"a word for a size", "size", providers.VideoRequest{Prompt: "a", Size: "1080p"}},
		{"a zero ratio", "size", providers.VideoRequest{Prompt: "a", Size: "0:0"}},
		{"images of both kinds", "image", providers.VideoRequest{Inputs: []providers.Media{{URL: "https://h/a.png"}, image("x")}}},
		{"parameters that are no object", "", providers.VideoRequest{Prompt: "a", Extra: json.RawMessage(`[1]`)}},
		{"req_json that is no string", "req_json", providers.VideoRequest{Prompt: "a", Extra: json.RawMessage(`{"req_json":{}}`)}},
		{"req_json with a link", "req_json", providers.VideoRequest{Prompt: "a", Extra: json.RawMessage(`{"req_json":"https://h/a?sig=x"}`)}},
		{"long req_json", "req_json", providers.VideoRequest{
			Prompt: "a",
			Extra:  json.RawMessage(`{"req_json":"` + strings.Repeat("x", 3000) + `"}`),
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			body, _, err := submit(t, tc.req)
			var fault *providers.Fault
			if !errors.As(err, &fault) {
				t.Fatalf("got %v", err)
			}
			if fault.Kind != providers.Invalid || fault.Param != tc.param || fault.Accepted != providers.NotAccepted || fault.Retryable() {
				t.Errorf("got %+v", fault)
			}
			if body != nil {
				t.Error("it was sent")
			}
		})
	}
}
