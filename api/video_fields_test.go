package api_test

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"modelrelay/api"
	"modelrelay/providers"
	"modelrelay/providers/router"
)

// TestFieldsOfAnotherVideoFormat: a field of another video format has the meaning of that format, so that the price of a video is complete.
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
		{
			generations, `"metadata":{"frames":"241","a":[1]},"duration":10`,
			providers.VideoRequest{Seconds: "10", Metadata: json.RawMessage(`{"frames":"241","a":[1]}`)},
		},
		{generations, `"metadata":{"n":2}`, providers.VideoRequest{N: 2, Metadata: json.RawMessage(`{"n":2}`)}},
		{generations, `"metadata":{"model":"sora-2"}`, providers.VideoRequest{Metadata: json.RawMessage(`{"model":"sora-2"}`)}},
		{generations, `"size":"1280x720"`, providers.VideoRequest{Size: "1280x720", Width: 1280, Height: 720}},
		{generations, `"size":"wide"`, providers.VideoRequest{Size: "wide"}},
		{
			generations, `"input_reference":{"image_url":"https://example.com/a"}`,
			providers.VideoRequest{Inputs: []providers.Media{{URL: "https://example.com/a"}}},
		},
		{"/v1/videos", `"duration":10`, providers.VideoRequest{Seconds: "10"}},
		{"/v1/videos", `"n":3,"width":640,"height":"480","fps":30,"seed":7,"user":"u","response_format":"url"`, providers.VideoRequest{
			N: 3, Width: 640, Height: 480, FPS: 30, Seed: &seed, User: "u", ResponseFormat: "url",
		}},
		{"/v1/videos", `"image":"` + bare + `"`, providers.VideoRequest{Inputs: []providers.Media{upload}}},
		{
			"/v1/videos", `"image_urls":["https://example.com/a"],"binary_data_base64":["` + bare + `"]`,
			providers.VideoRequest{Inputs: []providers.Media{upload, {URL: "https://example.com/a"}}},
		},
		{"/v1/videos", `"req_key":"sora-2"`, providers.VideoRequest{}},
		{submitPath, `"duration":10`, providers.VideoRequest{Seconds: "10"}},
		{submitPath, `"seconds":"10","frames":241`, providers.VideoRequest{Seconds: "10"}},
		{submitPath, `"metadata":{"duration":10}`, providers.VideoRequest{Seconds: "10", Metadata: json.RawMessage(`{"duration":10}`)}},
		{"/v1/videos", `"last_image":"https://h/b","image":"https://h/a","reference_images":["https://h/c","https://h/d"],"video":"https://h/v","audio":"https://h/s"`, providers.VideoRequest{
			Inputs: []providers.Media{
				{URL: "https://h/a"},
				{Role: providers.LastFrame, URL: "https://h/b"},
				{Role: providers.SourceVideo, URL: "https://h/v"},
				{Role: providers.SourceAudio, URL: "https://h/s"},
				{Role: providers.Reference, URL: "https://h/c"},
				{Role: providers.Reference, URL: "https://h/d"},
			},
		}},
		{
			"/v1/videos", `"input_reference":["https://h/a",{"image_url":"https://h/b"}],"input_reference_role":["first_frame","last_frame"]`,
			providers.VideoRequest{
				Inputs: []providers.Media{{URL: "https://h/a"}, {Role: providers.LastFrame, URL: "https://h/b"}},
			},
		},
		{generations, `"image":"` + base64.StdEncoding.EncodeToString([]byte("GIF89a0000000")) + `"`, providers.VideoRequest{
			Inputs: []providers.Media{{ContentType: "image/gif", Size: 13, Data: []byte("GIF89a0000000")}},
		}},
		{generations, `"negative_prompt":"rain","aspect_ratio":" 16:9","resolution":"720P","generate_audio":false`, providers.VideoRequest{
			NegativePrompt: "rain", AspectRatio: "16:9", Resolution: "720p", GenerateAudio: new(bool),
		}},
		{submitPath, `"resolution":"4K","generate_audio":"false"`, providers.VideoRequest{Resolution: "4k", GenerateAudio: new(bool)}},
	} {
		g := newGateway(t, nil, severalVideos)
		rec := g.do(t, request("POST", tc.path, `{"model":"sora-2","prompt":"p",`+tc.members+`}`))
		tc.want.Model, tc.want.Prompt = "sora-2", "p"
		if len(g.tasks.creates) != 1 || !reflect.DeepEqual(g.tasks.creates[0].Request, tc.want) {
			t.Errorf("%s at %s: got %d %s %+v, want %+v", tc.members, tc.path, rec.Code, rec.Body, g.tasks.creates, tc.want)
		}
	}
	// In a form every value is a text.
	g := newGateway(t, nil, func(_ *gateway, o *api.Options) { o.DefaultVideoModel = "sora-2" })
	contentType, body := form(t, part{"prompt", "", "", "p"}, part{"frames", "", "", "241"}, part{"metadata[duration]", "", "", "10"},
		part{"style", "", "", "x"})
	got := created(t, g, request("POST", "/v1/videos", body, "Content-Type", contentType)).Request
	if got.Seconds != "10" || string(got.Extra) != `{"style":"x"}` {
		t.Errorf("got %+v", got)
	}
	g = newGateway(t, nil, func(_ *gateway, o *api.Options) { o.DefaultVideoModel = "sora-2" })
	contentType, body = form(t, part{"prompt", "", "", "p"}, part{"last_image", "z.png", "image/png", png},
		part{"reference_images[]", "", "", "https://h/c"},
		part{"input_reference[]", "a.png", "image/png", png}, part{"input_reference[]", "b.png", "image/png", png},
		part{"input_reference_role[]", "", "", "reference"}, part{"input_reference_role[]", "", "", "first_frame"},
		part{"resolution", "", "", "1080p"}, part{"generate_audio", "", "", "true"}, part{"size", "", "", "1280x720"})
	got = created(t, g, request("POST", "/v1/videos", body, "Content-Type", contentType)).Request
	var roles []string
	for _, input := range got.Inputs {
		roles = append(roles, string(input.Role)+" "+input.Name+input.URL)
	}
	if want := []string{"reference a.png", " b.png", "last_frame z.png", "reference https://h/c"}; !slices.Equal(roles, want) ||
		got.Resolution != "1080p" || got.GenerateAudio == nil || !*got.GenerateAudio {
		t.Errorf("got inputs %q of %+v", roles, got)
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
		{"/v1/videos", `"input_reference":"https://h/a","input_reference_role":"first"`, "input_reference_role"},
		{"/v1/videos", `"input_reference":"https://h/a","input_reference_role":["reference","reference"]`, "input_reference_role"},
		{"/v1/videos", `"input_reference_role":["reference"]`, "input_reference_role"},
		{"/v1/videos", `"input_reference":"https://h/a","input_reference_role":[7]`, "input_reference_role"},
		{generations, `"generate_audio":"yes"`, "generate_audio"},
		{generations, `"resolution":720`, "resolution"},
		{generations, `"aspect_ratio":"` + strings.Repeat("1", 65) + `"`, "aspect_ratio"},
		{generations, `"fps":0`, "fps"},
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

// TestRemixFields: a remix is charged like its source. A field that would change its price is refused.
func TestRemixFields(t *testing.T) {
	t.Parallel()
	for _, member := range []string{
		`"model":"fast"`, `"seconds":"20"`, `"size":"1920x1080"`, `"duration":20`, `"frames":481`, `"n":4`, `"width":1920`, `"req_key":"fast"`,
		`"image":"https://example.com/a"`, `"metadata":{"seconds":"20"}`, `"metadata":{"model":"fast"}`, `"metadata":{"size":"1x1"}`,
	} {
		g := newGateway(t, nil, nil)
		remixable(g)
		rec := g.do(t, request("POST", remixPath, `{"prompt":"p",`+member+`}`))
		if rec.Code != 400 || !strings.Contains(rec.Body.String(), "a remix has the value of its source video") || len(g.tasks.creates) > 0 {
			t.Errorf("%s: got %d %s", member, rec.Code, rec.Body)
		}
	}
	for _, field := range []string{"model", "seconds", "size", "duration", "metadata[seconds]"} {
		g := newGateway(t, nil, nil)
		remixable(g)
		contentType, body := form(t, part{"prompt", "", "", "p"}, part{field, "", "", "20"})
		rec := g.do(t, request("POST", remixPath, body, "Content-Type", contentType))
		if rec.Code != 400 || !strings.Contains(rec.Body.String(), "a remix has the value of its source video") || len(g.tasks.creates) > 0 {
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

// TestVideosThatNoModelMakes: what the one channel's model does not take is refused in the words of each format, and nothing is
// made; what another channel takes goes there.
func TestVideosThatNoModelMakes(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, func(g *gateway, o *api.Options) {
		first := providers.FirstFrame
		vendor := providers.Vendor{
			Name: "openai", Video: struct{ providers.VideoAdapter }{},
			VideoModels: func(string) (providers.VideoModel, bool) {
				return providers.VideoModel{
					Seconds: []string{"5", "10"}, AspectRatios: []string{"16:9"}, Resolutions: []string{"720p"}, FPS: 24,
					Inputs: []providers.VideoInput{{Role: providers.FirstFrame}, {Role: providers.LastFrame, With: &first}},
				}, true
			},
		}
		o.Router = router.New(providers.Catalog{"openai": vendor}, []providers.Channel{{
			Name: "main", Vendor: "openai", Keys: []providers.Secret{"k"}, Models: map[string]string{"sora-2": ""}, Groups: []string{"default"},
		}}, nil)
	})
	for _, tc := range []struct{ path, members, param, message string }{
		{generations, `"duration":7`, "duration", "Invalid request: 'duration' is not possible with this model, which takes 5, 10. The nearest is 5."},
		{"/v1/videos", `"seconds":"9"`, "seconds", "Invalid request: 'seconds' is not possible with this model, which takes 5, 10. The nearest is 10."},
		{"/v1/videos", `"size":"720x1280"`, "size", "Invalid request: 'size' is not possible with this model, which makes 16:9 in 720p."},
		{generations, `"width":640,"height":480`, "width", "Invalid request: 'width' is not possible with this model, which makes 16:9 in 720p."},
		{
			generations, `"aspect_ratio":"1:1"`, "aspect_ratio",
			"Invalid request: 'aspect_ratio' is not possible with this model, which takes 16:9.",
		},
		{generations, `"last_image":"https://h/b"`, "last_image", "Invalid request: this model takes 'last_image' only together with 'image'."},
		{
			"/v1/videos", `"input_reference":["https://h/b","https://h/c"]`, "input_reference",
			"Invalid request: 'input_reference' has more inputs than this model accepts, which is 1.",
		},
		{generations, `"reference_images":["https://h/b"]`, "reference_images", "Invalid request: this model does not take 'reference_images'."},
		{generations, `"negative_prompt":"x"`, "negative_prompt", "Invalid request: this model does not take 'negative_prompt'."},
		{generations, `"fps":30`, "fps", "Invalid request: 'fps' is not possible with this model, which takes 24."},
		{generations, `"generate_audio":true`, "generate_audio", "Invalid request: this model makes no sound."},
		{
			generations, `"image":"` + base64.StdEncoding.EncodeToString([]byte("GIF89a0000000")) + `"`, "image",
			"Invalid request: 'image' is of a kind that this model does not take: it takes image/png, image/jpeg, image/webp.",
		},
		{generations, `"n":2`, "n", "Invalid request: 'n' is 1 at most with this model."},
	} {
		rec := g.do(t, request("POST", tc.path, `{"model":"sora-2","prompt":"p",`+tc.members+`}`))
		var got struct {
			Error struct{ Message, Param string }
		}
		_ = json.Unmarshal(rec.Body.Bytes(), &got) // compared below
		if rec.Code != 400 || got.Error.Param != tc.param || got.Error.Message != tc.message {
			t.Errorf("%s at %s: got %d %s", tc.members, tc.path, rec.Code, rec.Body)
		}
	}
	rec := g.do(t, request("POST", submitPath, `{"model":"sora-2","prompt":"p","frames":100}`))
	if rec.Code != 400 || !strings.Contains(rec.Body.String(), "'frames' is not possible") {
		t.Errorf("vendor C: got %d %s", rec.Code, rec.Body)
	}
	if len(g.tasks.creates) != 0 {
		t.Errorf("tasks were made: %+v", g.tasks.creates)
	}
	for _, members := range []string{
		`"duration":5,"width":1280,"height":720,"fps":24`,
		`"duration":10,"aspect_ratio":"16:9","resolution":"720p","generate_audio":false`,
	} {
		if rec := g.do(t, request("POST", generations, `{"model":"sora-2","prompt":"p",`+members+`}`)); rec.Code != 200 {
			t.Errorf("%s: got %d %s", members, rec.Code, rec.Body)
		}
	}
}
