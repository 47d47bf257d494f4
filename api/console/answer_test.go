package console

import (
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"testing"

	"modelrelay/activities"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// TestAnswersOfCalls: the text and the pictures of every format, once; anything else as it is, and never more than the bound.
func TestAnswersOfCalls(t *testing.T) {
	t.Parallel()
	png := base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n0123456789"))
	page := base64.StdEncoding.EncodeToString([]byte("<html><script>alert(1)</script>"))
	const stream = "text/event-stream"
	for name, test := range map[string]struct {
		kind, body, text string
		images, links    int
	}{
		"chat":             {"application/json", `{"choices":[{"message":{"role":"assistant","content":"Hello"}}]}`, "Hello", 0, 0},
		"chat stream":      {stream, "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"lo\"}}]}\n\ndata: [DONE]\n\n", "Hello", 0, 0},
		"responses":        {"application/json", `{"instructions":"x","output":[{"type":"message","content":[{"type":"output_text","text":"Hello"}]}]}`, "Hello", 0, 0},
		"responses stream": {stream, "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"Hello\"}\n\ndata: {\"type\":\"response.completed\",\"response\":{\"output\":[{\"content\":[{\"text\":\"Hello\"}]}]}}\n\n", "Hello", 0, 0},
		"messages":         {"application/json", `{"content":[{"type":"text","text":"Hello"}]}`, "Hello", 0, 0},
		"messages stream":  {stream, "data: {\"type\":\"message_start\",\"message\":{\"content\":[]}}\n\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"Hello\"}}\n\n", "Hello", 0, 0},
		"gemini":           {"application/json", `{"candidates":[{"content":{"parts":[{"text":"Hel"},{"text":"lo"},{"inlineData":{"mimeType":"image/png","data":"` + png + `"}}]}}]}`, "Hello", 1, 0},
		"interaction":      {"application/json", `{"steps":[{"type":"thought","signature":"x"},{"type":"model_output","content":[{"type":"text","text":"Hello"},{"type":"image","data":"` + png + `"}]}]}`, "Hello", 1, 0},
		"its stream":       {stream, "event: step.delta\ndata: {\"event_type\":\"step.delta\",\"delta\":{\"type\":\"text\",\"text\":\"Hello\"}}\n\nevent: interaction.completed\ndata: {\"event_type\":\"interaction.completed\",\"interaction\":{\"id\":\"call_0\"}}\n\nevent: done\ndata: [DONE]\n\n", "Hello", 0, 0},
		"image": {"application/json", `{"data":[{"b64_json":"` + png +
			`"},{"url":"https://cdn.test/a.png"},{"url":"javascript:alert(1)"}]}`, "", 1, 1},
		"no image": {
			"application/json", `{"data":[{"b64_json":"` + page + `"}]}`,
			"{\n  \"data\": [\n    {\n      \"b64_json\": \"" + page + "\"\n    }\n  ]\n}", 0, 0,
		},
		"its events":    {stream, "data: {\"type\":\"transcript.text.delta\",\"delta\":\"Hel\"}\n\ndata: {\"type\":\"transcript.text.delta\",\"delta\":\"lo\"}\n\ndata: {\"type\":\"transcript.text.done\",\"text\":\"Hello\"}\n\n", "Hello", 0, 0},
		"transcription": {"application/json", `{"text":"Hello","segments":[{"text":"Hello"}]}`, "Hello", 0, 0},
		"plain":         {"text/plain", "Hello", "Hello", 0, 0},
		"error":         {"application/json", `{"error":{"code":1}}`, "{\n  \"error\": {\n    \"code\": 1\n  }\n}", 0, 0},
	} {
		answer := &callAnswer{Type: test.kind}
		answer.show([]byte(test.body))
		if answer.Text != test.text || len(answer.Images) != test.images || len(answer.Links) != test.links || answer.Cut {
			t.Errorf("%s: got %+v", name, answer)
		}
	}
	long := &callAnswer{Type: "text/plain"}
	if long.show([]byte(strings.Repeat("x", 2*answerText))); len(long.Text) != answerText || !long.Cut {
		t.Errorf("a long answer: %d bytes, cut %t", len(long.Text), long.Cut)
	}
}

// TestCancelledCall: a cancelled stream has no result, but the text that came.
func TestCancelledCall(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(http.ResponseWriter, *http.Request) { t.Error("the API is asked for its result") })
	for events, want := range map[int64]bool{0: false, 3: true} {
		h.own = []tasks.Task{{
			ID: "call_x", State: workflows.Cancelled, Stream: true, Operation: "POST /v1/responses",
			Ending: workflows.Ending{
				Outputs: []activities.Output{{ContentType: "text/event-stream"}},
				Call:    &activities.Answered{Status: 200, Events: events},
			},
		}}
		page := h.as(t, "app").get("/console/tasks/call_x").Body.String()
		if strings.Contains(page, "<live-text") != want || strings.Contains(page, "download=1") {
			t.Errorf("%d events: %s", events, page)
		}
		if list := h.as(t, "app").get("/console/tasks").Body.String(); strings.Count(list, ">cancelled<") > 1 {
			t.Errorf("the list says it twice: %s", list)
		}
	}
}

// TestTaskText: the text of a call's answer comes with its events, to its token, to operators, and to viewers without a right to change.
func TestTaskText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", answerText/2)
	h := newHouse(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/tasks/call_x/events" {
			refuse(w, http.StatusNotFound, "No task.")
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range []string{
			":\n\n", `id: call_x-0` + "\n" + `data: {"choices":[{"delta":{"role":"assistant","content":"Hel"}}]}` + "\n\n",
			`id: call_x-1` + "\n" + `data: {"choices":[{"delta":{"content":"lo"}}]}` + "\n\n",
			`data: {"choices":[{"delta":{"content":"` + long + `"}}]}` + "\n\n", `data: {"choices":[{"delta":{"content":"` + long + `"}}]}` + "\n\n",
		} {
			if _, err := io.WriteString(w, event); err != nil {
				return
			}
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
		}
	})
	h.stories = map[string]tasks.Details{"call_x": {Listed: tasks.Listed{Token: "tok_app"}}}
	for _, test := range []struct {
		user, id, text, noted string
		status                int
		looks                 bool
	}{
		{"app", "call_x", "Hello" + long, "", http.StatusOK, false},
		{"anna", "call_x", "Hello" + long, watchWord + " call_x", http.StatusOK, true},
		{"vera", "call_x", "Hello" + long, watchWord + " call_x", http.StatusOK, true},
		{"app", "call_y", "", "", http.StatusNotFound, false},
	} {
		b := h.as(t, test.user)
		h.entries, h.asked = nil, nil
		rec := b.get("/console/tasks/" + test.id + "/text")
		noted := ""
		for _, entry := range h.entries {
			noted += entry.What + " " + entry.Subject
		}
		if rec.Code != test.status || rec.Body.String() != test.text || noted != test.noted ||
			rec.Header().Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("%s %s: got %d, %d bytes, noted %q", test.user, test.id, rec.Code, rec.Body.Len(), noted)
		}
		if last := h.asked[len(h.asked)-1]; last.user.Owner != "tok_app" || last.looks != test.looks {
			t.Errorf("%s: the API was asked as %+v", test.user, last)
		}
	}
}
