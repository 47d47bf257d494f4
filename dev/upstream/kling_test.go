package upstream_test

import (
	"strings"
	"testing"

	"modelrelay/dev/upstream"
)

func TestKling(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	a := f.do(t, "POST", "/kling/text-to-video/kling-3.0-manual",
		`{"prompt":"a cat","settings":{"duration":8},"options":{"external_task_id":"mine-1"},"external_task_id":"ignored"}`)
	wants(t, a.json(t), map[string]any{"code": 0, "data.external_id": "mine-1"})
	data, _ := a.json(t)["data"].(map[string]any)
	id, _ := data["id"].(string)
	if id == "" {
		t.Fatalf("got %s", a.body)
	}
	f.control(t, "POST", "jobs/"+id, `{"state":"completed"}`)
	for _, query := range []string{"task_ids=" + id, "external_task_ids=mine-1"} {
		a = f.do(t, "GET", "/kling/tasks?"+query, "")
		wants(t, a.json(t), map[string]any{
			"code": 0, "data.0.id": id, "data.0.status": "succeeded", "data.0.outputs.0.type": "video",
			"data.0.outputs.0.duration": "8.041",
		})
	}
	tasks, _ := a.json(t)["data"].([]any)
	first, _ := tasks[0].(map[string]any)
	outputs, _ := first["outputs"].([]any)
	video, _ := outputs[0].(map[string]any)
	link, _ := video["url"].(string)
	if clip := f.do(t, "GET", strings.TrimPrefix(link, f.url), "", "Authorization", ""); clip.status != 200 ||
		clip.header.Get("Content-Type") != "video/mp4" {
		t.Errorf("the link: got %d %s", clip.status, clip.body)
	}
	a = f.do(t, "GET", "/kling/tasks?task_ids=404", "")
	if tasks, ok := a.json(t)["data"].([]any); !ok || len(tasks) != 0 {
		t.Errorf("an unknown job: got %s", a.body)
	}
	// The same key makes another job.
	again := f.do(t, "POST", "/kling/text-to-video/kling-3.0", `{"prompt":"a cat","options":{"external_task_id":"mine-1"}}`)
	if data, _ := again.json(t)["data"].(map[string]any); data["id"] == id {
		t.Error("the same key found the job")
	}
}

func TestKlingRefuses(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	for _, tc := range []struct {
		path, body string
		status     int
		code       int
	}{
		{"text-to-video/kling-3.0", `{}`, 400, 1201},
		{"text-to-video/kling-3.0", `{"contents":[{"type":"prompt","text":"p"}]}`, 400, 1201},
		{"text-to-video/kling-3.0", `{"prompt":"p","settings":{"duration":16}}`, 400, 1201},
		{"text-to-video/kling-2.6", `{"prompt":"p","settings":{"duration":7}}`, 400, 1201},
		{"text-to-video/kling-3.0", `{"prompt":"p","settings":{"resolution":"8k"}}`, 400, 1201},
		{"image-to-video/kling-3.0", `{"prompt":"p"}`, 400, 1201},
		{"image-to-video/kling-3.0", `{"contents":[{"type":"prompt","text":"p"},{"type":"last_frame","url":"https://h"}]}`, 400, 1201},
		{
			"image-to-video/kling-3.0", `{"contents":[{"type":"prompt","text":"p"},{"type":"first_frame","url":"data:image/png;base64,AAAA"}]}`, 400,
			1201,
		},
		{"omni-video/kling-3.0-omni", `{"contents":[{"type":"prompt","text":"p"},{"type":"refer_image","url":"https://h"}]}`, 400, 1201},
		{"omni-video/kling-3.0-omni", `{"contents":[{"type":"prompt","text":"p"},{"type":"base_video","url":"AAAA"}]}`, 400, 1201},
	} {
		a := f.do(t, "POST", "/kling/"+tc.path, tc.body)
		if a.status != tc.status {
			t.Errorf("%s %s: got %d %s", tc.path, tc.body, a.status, a.body)
			continue
		}
		wants(t, a.json(t), map[string]any{"code": tc.code})
	}
	a := f.do(t, "GET", "/kling/tasks?task_ids=1&external_task_ids=1", "")
	wants(t, a.json(t), map[string]any{"code": 1201})
	a = f.do(t, "POST", "/kling/text-to-video/kling-3.0", `{"prompt":"p"}`, "Authorization", "Bearer wrong")
	wants(t, a.json(t), map[string]any{"code": 1002})
}
