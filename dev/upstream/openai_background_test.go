package upstream_test

import (
	"encoding/json"
	"strings"
	"testing"

	"modelrelay/dev/upstream"
)

// TestBackgroundResponse: a response in the background is made while its client is away, and can be streamed again, cancelled and deleted.
func TestBackgroundResponse(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	const path = "/openai/v1/responses"
	created := f.do(t, "POST", path, `{"model":"gpt-5","input":"hi","background":true}`).json(t)
	wants(t, created, map[string]any{"status": "queued", "background": true, "store": true})
	id := textAt(t, created, "id")
	wants(t, f.do(t, "GET", path+"/"+id, "").json(t),
		map[string]any{"id": id, "status": "completed", "background": true, "output.0.content.0.text": "You said: hi"})
	if a := f.do(t, "GET", path+"/"+id+"?stream=true", ""); a.status != 400 {
		t.Errorf("events of a response without stream: got %d", a.status)
	}
	wants(t, f.do(t, "POST", path+"/"+id+"/cancel", "").json(t), map[string]any{"id": id, "status": "completed"}) // it has ended
	wants(t, f.do(t, "DELETE", path+"/"+id, "").json(t), map[string]any{"id": id, "deleted": true})
	for _, request := range [][2]string{{"GET", ""}, {"DELETE", ""}, {"POST", "/cancel"}} {
		if a := f.do(t, request[0], path+"/"+id+request[1], ""); a.status != 404 {
			t.Errorf("%v after it is deleted: got %d", request, a.status)
		}
	}

	live := f.do(t, "POST", path, `{"model":"gpt-5","input":"hi","background":true,"stream":true}`)
	lines := events(t, live.body)
	var first any
	if err := json.Unmarshal([]byte(lines[0]), &first); err != nil {
		t.Fatal(err)
	}
	id = textAt(t, first, "response", "id")
	if again := f.do(t, "GET", path+"/"+id+"?stream=true", ""); string(again.body) != string(live.body) {
		t.Errorf("streamed again: got %s, want %s", again.body, live.body)
	}
	rest := f.do(t, "GET", path+"/"+id+"?stream=true&starting_after=2", "")
	if got := events(t, rest.body); strings.Join(got, "\n") != strings.Join(lines[3:], "\n") {
		t.Errorf("after the third event: got %q", got)
	}
	for i, kind := range []string{"response.created", "response.queued", "response.in_progress"} {
		if !strings.Contains(lines[i], `"type":"`+kind+`"`) {
			t.Errorf("event %d: got %s, want %s", i, lines[i], kind)
		}
	}

	slow := start(t, upstream.Options{ChunkInterval: 1 << 40})
	id = textAt(t, slow.do(t, "POST", path, `{"model":"gpt-5","input":"hi","background":true}`).json(t), "id")
	wants(t, slow.do(t, "GET", path+"/"+id, "").json(t), map[string]any{"status": "in_progress"})
	for range 2 {
		wants(t, slow.do(t, "POST", path+"/"+id+"/cancel", "").json(t), map[string]any{"status": "cancelled"})
	}
	id = textAt(t, f.do(t, "POST", path, `{"model":"gpt-5","input":"hi"}`).json(t), "id")
	if a := f.do(t, "POST", path+"/"+id+"/cancel", ""); a.status != 400 {
		t.Errorf("a synchronous response is cancelled: %d", a.status)
	}
	for body, status := range map[string]int{
		`{"model":"gpt-5","input":"hi","background":true,"store":false}`:     400,
		`{"model":"gpt-5","input":"hi","previous_response_id":"` + id + `"}`: 200,
	} {
		if a := f.do(t, "POST", path, body); a.status != status {
			t.Errorf("%s: got %d %s", body, a.status, a.body)
		}
	}
}
