package upstream_test

import (
	"strings"
	"testing"

	"modelrelay/dev/upstream"
)

// videoRefusal is a create that a vendor refuses, in its own words.
type videoRefusal struct {
	name, path, body string
	header           []string
	status           int
	want             map[string]any
}

// videoRefusals are what the video vendors refuse, each as its pages or its SDK say.
func videoRefusals() []videoRefusal {
	base := func(code int) map[string]any { return map[string]any{"base_resp.status_code": code} }
	second := func(code string) map[string]any { return map[string]any{"type": "error", "error.http_code": code} }
	code := func(word string) map[string]any { return map[string]any{"code": word} }
	reason := func(word string) map[string]any { return map[string]any{"reason": word} }
	errCode := func(n int) map[string]any { return map[string]any{"ErrCode": n, "Resp": nil} }
	errorCode := func(word string) map[string]any { return map[string]any{"error.code": word} }
	async := []string{"X-DashScope-Async", "enable"}
	token, traced := []string{"Authorization", "Token " + testKey}, []string{"API-KEY", testKey, "Ai-trace-id", "1"}
	const (
		first, secondPath = "/hailuo/v1/video_generation", "/hailuo/v2/video_generation"
		synthesis         = "/wan/api/v1/services/aigc/video-generation/video-synthesis"
		vidu, pix         = "/vidu/ent/v2/", "/pixverse/openapi/v2/video/"
		zhipu             = "/zhipu/videos/generations"
		frame             = `{"type":"image_url","image_url":{"url":"https://h/1"},"role":"first_frame"}`
		text              = `{"type":"text","text":"p"}`
	)
	return []videoRefusal{
		{"no prompt", first, `{"model":"MiniMax-Hailuo-02"}`, nil, 200, base(2013)},
		{"ten seconds in 1080P", first, `{"model":"MiniMax-Hailuo-02","prompt":"p","duration":10,"resolution":"1080P"}`, nil, 200, base(2013)},
		{"512P from a text", first, `{"model":"MiniMax-Hailuo-02","prompt":"p","resolution":"512P"}`, nil, 200, base(2013)},
		{"a last frame of 2.3", first, `{"model":"MiniMax-Hailuo-2.3","prompt":"p","last_frame_image":"https://h/1"}`, nil, 200, base(2013)},
		{"a length of 01", first, `{"model":"T2V-01","prompt":"p","duration":6}`, nil, 200, base(2013)},
		{"the other API's model", first, `{"model":"MiniMax-H3","prompt":"p"}`, nil, 200, base(2013)},
		{"a wrong key", first, `{"model":"T2V-01","prompt":"p"}`, []string{"Authorization", "Bearer x"}, 200, base(1004)},
		{"no ratio", secondPath, `{"model":"MiniMax-H3","content":[` + text + `],"resolution":"768P","duration":5}`, nil, 400, second("400")},
		{"no length", secondPath, `{"model":"MiniMax-H3","content":[` + text + `],"resolution":"768P","ratio":"16:9"}`, nil, 400, second("400")},
		{
			"2K of Max", secondPath, `{"model":"MiniMax-H3-Max","content":[` + text + `],"resolution":"2K","duration":5,"ratio":"16:9"}`, nil, 400,
			second("400"),
		},
		{
			"frames beside references", secondPath,
			`{"model":"MiniMax-H3","content":[` + text + `,` + frame +
				`,{"type":"image_url","image_url":{"url":"https://h/1"},"role":"reference_image"}],"resolution":"768P","duration":5}`,
			nil, 400, second("400"),
		},
		{"no asynchronous header", synthesis, `{"model":"wan2.7-t2v","input":{"prompt":"p"}}`, nil, 403, code("AccessDenied")},
		{
			"a size of 2.7", synthesis, `{"model":"wan2.7-t2v","input":{"prompt":"p"},"parameters":{"size":"1280*720"}}`, async, 400,
			code("InvalidParameter"),
		},
		{
			"a resolution of 2.6", synthesis, `{"model":"wan2.6-t2v","input":{"prompt":"p"},"parameters":{"resolution":"720P"}}`, async, 400,
			code("InvalidParameter"),
		},
		{"a ratio from an image", synthesis, `{"model":"wan2.7-i2v","input":{"media":[{"type":"first_frame","url":"https://h/1"}]},"parameters":{"ratio":"16:9"}}`, async, 400, code("InvalidParameter")},
		{
			"frames beside references of 3.0", synthesis,
			`{"model":"wan3.0-video","input":{"prompt":"p","media":[{"type":"first_frame","url":"https://h/1"},{"type":"reference_image","url":"https://h/1"}]}}`, async, 400, code("InvalidParameter"),
		},
		{"an unknown model", synthesis, `{"model":"unknown","input":{"prompt":"p"}}`, async, 404, code("ModelNotFound")},
		{"a bearer key", vidu + "text2video", `{"model":"viduq3-turbo","prompt":"p"}`, nil, 401, reason("Unauthorized")},
		{
			"a ratio of an image", vidu + "img2video", `{"model":"viduq3-turbo","images":["https://h/1"],"aspect_ratio":"16:9"}`, token, 400,
			reason("FieldUnwanted"),
		},
		{
			"one of two frames", vidu + "start-end2video", `{"model":"viduq3-turbo","images":["https://h/1"]}`, token, 400,
			reason("FieldItemCountOutOfRange"),
		},
		{
			"ten seconds between frames", vidu + "start-end2video", `{"model":"viduq2-turbo","images":["https://h/1","https://h/2"],"duration":10}`,
			token, 400, reason("FieldInvalid"),
		},
		{"bytes without a type", vidu + "img2video", `{"model":"viduq3-turbo","images":["AAAA"]}`, token, 400, reason("ImageFormatInvalid")},
		{"sound of q2", vidu + "text2video", `{"model":"viduq2","prompt":"p","audio":true}`, token, 400, reason("FieldUnwanted")},
		{
			"no trace id", pix + "text/generate", `{"model":"v6","prompt":"p","duration":5,"quality":"540p","aspect_ratio":"16:9"}`,
			[]string{"API-KEY", testKey},
			200, errCode(400011),
		},
		{"no ratio of a text", pix + "text/generate", `{"model":"v6","prompt":"p","duration":5,"quality":"540p"}`, traced, 200, errCode(400017)},
		{
			"an image that was not uploaded", pix + "img/generate", `{"model":"v6","prompt":"p","duration":5,"quality":"540p","img_id":4711}`,
			traced, 200, errCode(500033),
		},
		{
			"ten seconds in 1080p", pix + "text/generate", `{"model":"v5.5","prompt":"p","duration":10,"quality":"1080p","aspect_ratio":"16:9"}`,
			traced, 200, errCode(400017),
		},
		{"a long prompt", zhipu, `{"model":"cogvideox-3","prompt":"` + strings.Repeat("p", 513) + `"}`, nil, 400, errorCode("1214")},
		{"a length of flash", zhipu, `{"model":"cogvideox-flash","prompt":"p","duration":5}`, nil, 400, errorCode("1214")},
		{"a wrong size", zhipu, `{"model":"cogvideox-3","prompt":"p","size":"640x480"}`, nil, 400, errorCode("1214")},
		{"a bearer key at fal", "/fal/fal-ai/veo3.1", `{"prompt":"p"}`, nil, 401, map[string]any{"detail": "Invalid API key."}},
		{
			"no such app", "/fal/unknown/app", `{"prompt":"p"}`,
			[]string{"Authorization", "Key " + testKey},
			404,
			map[string]any{"detail": "Application 'app' not found"},
		},
		{
			"a member of no model", "/replicate/v1/models/google/veo-3.1/predictions", `{"input":{"prompt":"p","end_image":"https://h"}}`, nil, 422,
			map[string]any{"status": 422},
		},
		{
			"a length as a text", "/replicate/v1/models/google/veo-3.1/predictions", `{"input":{"prompt":"p","duration":"8"}}`, nil, 422,
			map[string]any{"status": 422},
		},
		{
			"a model of the community without its version", "/replicate/v1/models/community/app/predictions", `{"input":{"prompt":"p"}}`, nil, 404,
			map[string]any{"status": 404},
		},
	}
}

func TestVideoVendorsRefuse(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	for _, tc := range videoRefusals() {
		a := f.do(t, "POST", tc.path, tc.body, tc.header...)
		if a.status != tc.status {
			t.Errorf("%s %s: got %d %s, want %d", tc.path, tc.name, a.status, a.body, tc.status)
			continue
		}
		wants(t, a.json(t), tc.want)
	}
	if made := f.control(t, "GET", "stats", ""); at(made, "videos", "created") != float64(0) {
		t.Errorf("refused creates made jobs: %v", made)
	}
}

// TestVideoVendorsRepeat: what a second create with the same word makes, as each vendor says.
func TestVideoVendorsRepeat(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	for _, tc := range []struct {
		name, path, body string
		header           []string
		made             float64
	}{
		{
			"a payload makes no two creates one", "/vidu/ent/v2/text2video", `{"model":"viduq3-turbo","prompt":"vidu","payload":"mine"}`,
			[]string{"Authorization", "Token " + testKey},
			2,
		},
		{"a request id is refused", "/zhipu/videos/generations", `{"model":"cogvideox-3","prompt":"zhipu","request_id":"mine-1"}`, nil, 1},
		{
			"a trace id makes no second video", "/pixverse/openapi/v2/video/text/generate",
			`{"model":"v6","prompt":"pixverse","duration":5,"quality":"540p","aspect_ratio":"16:9"}`,
			[]string{"API-KEY", testKey, "Ai-trace-id", "mine"},
			1,
		},
	} {
		for range 2 {
			f.do(t, "POST", tc.path, tc.body, tc.header...)
		}
		vendor := strings.SplitN(tc.path, "/", 3)[1]
		found, _ := f.control(t, "GET", "jobs?vendor="+vendor, "")["jobs"].([]any)
		if float64(len(found)) != tc.made {
			t.Errorf("%s: got %d jobs, want %g", tc.name, len(found), tc.made)
		}
	}
}

// TestFalInput: what is wrong with a model's input is a job that fails, under owner and app alone.
func TestFalInput(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	key := []string{"Authorization", "Key " + testKey}
	for body, kind := range map[string]string{
		`{}`:                             "missing",
		`{"prompt":"p","duration":"5"}`:  "literal_error",
		`{"prompt":"p","image_url":"x"}`: "",
	} {
		made := f.do(t, "POST", "/fal/fal-ai/veo3.1-fast", body, key...)
		id := textAt(t, made.json(t), "request_id")
		if made.status != 200 || !strings.HasSuffix(textAt(t, made.json(t), "response_url"), "/fal/fal-ai/veo3.1-fast/requests/"+id) {
			t.Fatalf("%s: got %d %s", body, made.status, made.body)
		}
		if kind != "" {
			f.control(t, "POST", "jobs/"+id, `{"state":"failed"}`)
		} else {
			f.control(t, "POST", "jobs/"+id, `{"state":"completed"}`)
		}
		at := "/fal/fal-ai/veo3.1-fast/requests/" + id
		wants(t, f.do(t, "GET", at+"/status", "", key...).json(t), map[string]any{"status": "COMPLETED"})
		result := f.do(t, "GET", at, "", key...)
		if kind == "" && result.status != 200 {
			t.Errorf("%s: got %d %s", body, result.status, result.body)
		}
		if kind != "" {
			if result.status != 422 {
				t.Errorf("%s: got %d %s", body, result.status, result.body)
			}
			wants(t, result.json(t), map[string]any{"detail.0.type": kind})
		}
		if a := f.do(t, "GET", "/fal/fal-ai/other/requests/"+id, "", key...); a.status != 404 {
			t.Errorf("under another app: got %d %s", a.status, a.body)
		}
	}
}

// TestWanUnknown: an unknown job is no refusal, and a link is for GET alone.
func TestWanUnknown(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	wants(t, f.do(t, "GET", "/wan/api/v1/tasks/none", "").json(t), map[string]any{"output.task_status": "UNKNOWN"})
	made := f.do(t, "POST", "/wan/api/v1/services/aigc/video-generation/video-synthesis", `{"model":"wan2.7-t2v","input":{"prompt":"p"}}`,
		"X-DashScope-Async", "enable")
	id := textAt(t, made.json(t), "output", "task_id")
	f.control(t, "POST", "jobs/"+id, `{"state":"completed"}`)
	link := strings.TrimPrefix(textAt(t, f.do(t, "GET", "/wan/api/v1/tasks/"+id, "").json(t), "output", "video_url"), f.url)
	if a := f.do(t, "HEAD", link, ""); a.status != 403 {
		t.Errorf("HEAD: got %d", a.status)
	}
	if a := f.do(t, "GET", link, ""); a.status != 200 {
		t.Errorf("GET: got %d", a.status)
	}
}
