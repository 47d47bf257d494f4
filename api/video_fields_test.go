package api_test

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"modelrelay/api"
	"modelrelay/providers"
)

// A field of another video format means what it means there, so that nothing of a video's price passes by.
func TestFieldsOfAnotherVideoFormat(t *testing.T) {
	t.Parallel()
	bare := base64.StdEncoding.EncodeToString([]byte(png))
	upload := providers.Media{ContentType: "image/png", Size: int64(len(png)), Data: []byte(png)}
	seed := int64(7)
	for _, tc := range []struct {
		path, members string
		want          providers.VideoRequest
	}{
		{generations, `"seconds":10`, providers.VideoRequest{Seconds: "10"}},
		{generations, `"seconds":"10","duration":10.0`, providers.VideoRequest{Seconds: "10.0"}},
		{generations, `"frames":241,"style":"x"`, providers.VideoRequest{Seconds: "10", Extra: json.RawMessage(`{"style":"x"}`)}},
		{generations, `"frames":99`, providers.VideoRequest{Seconds: "4.0833"}},
		{generations, `"seconds":null,"frames":null`, providers.VideoRequest{}},
		{generations, `"metadata":{"seconds":10}`, providers.VideoRequest{Seconds: "10", Metadata: json.RawMessage(`{"seconds":10}`)}},
		{generations, `"metadata":{"frames":"241","a":[1]},"duration":10`, providers.VideoRequest{Seconds: "10", Metadata: json.RawMessage(`{"frames":"241","a":[1]}`)}},
		{generations, `"metadata":{"n":2}`, providers.VideoRequest{N: 2, Metadata: json.RawMessage(`{"n":2}`)}},
		{generations, `"metadata":{"model":"sora-2"}`, providers.VideoRequest{Metadata: json.RawMessage(`{"model":"sora-2"}`)}},
		{generations, `"size":"1280x720"`, providers.VideoRequest{Size: "1280x720", Width: 1280, Height: 720}},
		{generations, `"size":"wide"`, providers.VideoRequest{Size: "wide"}},
		{generations, `"input_reference":{"image_url":"https://example.com/a"}`, providers.VideoRequest{Images: []providers.Media{{URL: "https://example.com/a"}}}},
		{"/v1/videos", `"duration":10`, providers.VideoRequest{Seconds: "10"}},
		{"/v1/videos", `"n":3,"width":640,"height":"480","fps":30,"seed":7,"user":"u","response_format":"url"`, providers.VideoRequest{
			N: 3, Width: 640, Height: 480, FPS: 30, Seed: &seed, User: "u", ResponseFormat: "url",
		}},
		{"/v1/videos", `"image":"` + bare + `"`, providers.VideoRequest{Images: []providers.Media{upload}}},
		{"/v1/videos", `"image_urls":["https://example.com/a"],"binary_data_base64":["` + bare + `"]`, providers.VideoRequest{Images: []providers.Media{upload, {URL: "https://example.com/a"}}}},
		{"/v1/videos", `"req_key":"sora-2"`, providers.VideoRequest{}},
		{submitPath, `"duration":10`, providers.VideoRequest{Seconds: "10"}},
		{submitPath, `"seconds":"10","frames":241`, providers.VideoRequest{Seconds: "10"}},
		{submitPath, `"metadata":{"duration":10}`, providers.VideoRequest{Seconds: "10", Metadata: json.RawMessage(`{"duration":10}`)}},
	} {
		g := newGateway(t, nil, severalVideos)
		rec := g.do(t, request("POST", tc.path, `{"model":"sora-2","prompt":"p",`+tc.members+`}`))
		tc.want.Model, tc.want.Prompt = "sora-2", "p"
		if len(g.tasks.creates) != 1 || !reflect.DeepEqual(g.tasks.creates[0].Request, tc.want) {
			t.Errorf("%s at %s: got %d %s %+v, want %+v", tc.members, tc.path, rec.Code, rec.Body, g.tasks.creates, tc.want)
		}
	}
	// A form says it in texts.
	g := newGateway(t, nil, func(_ *gateway, o *api.Options) { o.DefaultVideoModel = "sora-2" })
	contentType, body := form(t, part{"prompt", "", "", "p"}, part{"frames", "", "", "241"}, part{"metadata[duration]", "", "", "10"}, part{"style", "", "", "x"})
	got := created(t, g, request("POST", "/v1/videos", body, "Content-Type", contentType)).Request
	if got.Seconds != "10" || string(got.Extra) != `{"style":"x"}` {
		t.Errorf("got %+v", got)
	}
}

func TestFieldsOfAnotherVideoFormatAtFault(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ path, members, param string }{
		{generations, `"duration":5,"seconds":10`, "seconds"},
		{generations, `"duration":5,"metadata":{"seconds":10}`, "metadata.seconds"},
		{generations, `"seconds":5,"metadata":{"frames":241}`, "metadata.frames"},
		{generations, `"duration":"10s"`, "duration"},
		{generations, `"seconds":"10s"`, "seconds"},
		{generations, `"seconds":-10`, "seconds"},
		{generations, `"seconds":"NaN"`, "seconds"},
		{generations, `"seconds":1e400`, "seconds"},
		{generations, `"seconds":[10]`, "seconds"},
		{generations, `"frames":1`, "frames"},
		{generations, `"frames":24.5`, "frames"},
		{generations, `"frames":4294967296`, "frames"},
		{generations, `"metadata":{"seconds":[10]}`, "metadata.seconds"},
		{generations, `"metadata":{"seconds":{"a":10}}`, "metadata.seconds"},
		{generations, `"metadata":{"model":"fast"}`, "metadata.model"},
		{generations, `"metadata":{"model":["fast"]}`, "metadata.model"},
		{generations, `"metadata":{"req_key":"fast"}`, "metadata.req_key"},
		{generations, `"metadata":{"n":2},"n":1`, "metadata.n"},
		{generations, `"metadata":{"n":0}`, "metadata.n"},
		{generations, `"req_key":"fast"`, "req_key"},
		{generations, `"width":640,"size":"1280x720"`, "size"},
		{"/v1/videos", `"seconds":"4","duration":10`, "duration"},
		{"/v1/videos", `"n":3`, "n"}, // no channel of the model makes several
		{submitPath, `"seconds":"10s"`, ""},
		{submitPath, `"metadata":[]`, ""},
	} {
		g := newGateway(t, nil, nil)
		rec := g.do(t, request("POST", tc.path, `{"model":"sora-2","prompt":"p",`+tc.members+`}`))
		if rec.Code != 400 || len(g.tasks.creates) > 0 || !strings.Contains(rec.Body.String(), "'"+tc.param) {
			t.Errorf("%s: got %d %s, want a 400 on %q", tc.members, rec.Code, rec.Body, tc.param)
		}
	}
	g := newGateway(t, nil, nil)
	contentType, body := form(t, part{"prompt", "", "", "p"}, part{"model", "", "", "sora-2"}, part{"seconds[]", "", "", "10"})
	if rec := g.do(t, request("POST", "/v1/videos", body, "Content-Type", contentType)); rec.Code != 400 {
		t.Errorf("an array of seconds: got %d %s", rec.Code, rec.Body)
	}
}

// A remix is charged as its source: it cannot say otherwise.
func TestRemixSaysNothingOfItsSource(t *testing.T) {
	t.Parallel()
	for _, member := range []string{
		`"model":"fast"`, `"seconds":"20"`, `"size":"1920x1080"`, `"duration":20`, `"frames":481`, `"n":4`, `"width":1920`, `"req_key":"fast"`,
		`"image":"https://example.com/a"`, `"metadata":{"seconds":"20"}`, `"metadata":{"model":"fast"}`, `"metadata":{"size":"1x1"}`,
	} {
		g := newGateway(t, nil, nil)
		remixable(g)
		rec := g.do(t, request("POST", remixPath, `{"prompt":"p",`+member+`}`))
		if rec.Code != 400 || !strings.Contains(rec.Body.String(), "it is that of the video to remix") || len(g.tasks.creates) > 0 {
			t.Errorf("%s: got %d %s", member, rec.Code, rec.Body)
		}
	}
	for _, field := range []string{"model", "seconds", "size", "duration", "metadata[seconds]"} {
		g := newGateway(t, nil, nil)
		remixable(g)
		contentType, body := form(t, part{"prompt", "", "", "p"}, part{field, "", "", "20"})
		rec := g.do(t, request("POST", remixPath, body, "Content-Type", contentType))
		if rec.Code != 400 || !strings.Contains(rec.Body.String(), "it is that of the video to remix") || len(g.tasks.creates) > 0 {
			t.Errorf("%s: got %d %s", field, rec.Code, rec.Body)
		}
	}
	g := newGateway(t, nil, nil)
	remixable(g)
	if rec := g.do(t, request("POST", remixPath, `{"prompt":"p","model":null,"seconds":null,"style":"x","metadata":{"a":1}}`)); rec.Code != 200 {
		t.Fatalf("got %d %s", rec.Code, rec.Body)
	}
	if got := string(g.tasks.creates[0].Request.Extra); got != `{"style":"x"}` {
		t.Errorf("got %s", got)
	}
}
