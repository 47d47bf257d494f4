package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"modelrelay/api/openai"
)

const ownID = "resp_a1j52ju9a73ose0pg4qq27jm00"

func created() time.Time { return time.Unix(1795000000, 0) }

// TestWorkerDocument: a whole answer has the id of the task, and its errors stay as they are.
func TestWorkerDocument(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		code         int
		answer, want string
		status       string
	}{
		"completed": {
			200, `{"id":"resp_up","object":"response","status":"completed","output":[],"background":false,"previous_response_id":null}`,
			`{"id":"` + ownID + `","object":"response","status":"completed","output":[],"background":true,"previous_response_id":"resp_0","store":true}`, "completed",
		},
		"refused": {400, `{"error":{"message":"no"}}`, `{"error":{"message":"no"}}`, ""},
	} {
		rec := httptest.NewRecorder()
		w := openai.NewWorker(rec, ownID, created(), []byte(`{"model":"m","background":true,"previous_response_id":"resp_0"}`))
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(tc.code)
		for _, piece := range []string{tc.answer[:7], tc.answer[7:]} {
			if _, err := w.Write([]byte(piece)); err != nil {
				t.Fatal(err)
			}
		}
		status := w.End()
		if made := map[int]string{200: "resp_up"}[tc.code]; w.Made() != made {
			t.Errorf("%s: its upstream stores it as %q, want %q", name, w.Made(), made)
		}
		if rec.Code != tc.code || rec.Body.String() != tc.want || status != tc.status {
			t.Errorf("%s: got %d %s (%s), want %s", name, rec.Code, rec.Body, status, tc.want)
		}
	}
}

// TestWorkerStream: the events of a stream begin with those of the task, are numbered without gaps, and have its id.
func TestWorkerStream(t *testing.T) {
	t.Parallel()
	rec := httptest.NewRecorder()
	w := openai.NewWorker(rec, ownID, created(), []byte(`{"model":"m","background":true,"stream":true,"tools":[{"type":"function","name":"f"}]}`))
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	event := func(kind string, n int, rest string) string {
		return fmt.Sprintf("event: %s\ndata: {\"type\":%q,\"sequence_number\":%d%s}\n\n", kind, kind, n, rest)
	}
	for _, piece := range []string{
		event("response.created", 0, `,"response":{"id":"resp_up","status":"in_progress"}`) +
			event("response.in_progress", 1, `,"response":{"id":"resp_up"}`),
		event("response.output_text.delta", 2, `,"delta":"a"`),
		event("response.completed", 3, `,"response":{"id":"resp_up","status":"incomplete","output":[]}`),
	} {
		if _, err := w.Write([]byte(piece)); err != nil {
			t.Fatal(err)
		}
	}
	status := w.End()
	final := w.Final()
	kinds := regexp.MustCompile(`(?m)^event: (.*)$`).FindAllString(rec.Body.String(), -1)
	want := "event: response.created event: response.queued event: response.in_progress event: response.output_text.delta event: response.completed"
	if got := strings.Join(kinds, " "); got != want {
		t.Errorf("got %s", got)
	}
	for i, number := range regexp.MustCompile(`"sequence_number":(\d+)`).FindAllStringSubmatch(rec.Body.String(), -1) {
		if number[1] != fmt.Sprint(i) {
			t.Errorf("event %d has the number %s", i, number[1])
		}
	}
	if strings.Contains(rec.Body.String(), "resp_up") || strings.Count(rec.Body.String(), ownID) != 4 || status != "incomplete" {
		t.Errorf("got %s (%s)", rec.Body, status)
	}
	var response struct {
		ID         string
		Background bool
	}
	if err := json.Unmarshal(final, &response); err != nil || response.ID != ownID || !response.Background {
		t.Errorf("got %s: %v", final, err)
	}
}

// adding records what a worker adds to an answer.
type adding struct {
	*httptest.ResponseRecorder

	added int
}

func (a *adding) Add(n int) { a.added += n }

// TestWorkerRepeats: the gateway's own events repeat of a request what fits, and are no part of the upstream's answer.
func TestWorkerRepeats(t *testing.T) {
	t.Parallel()
	rec := &adding{ResponseRecorder: httptest.NewRecorder()}
	request := `{"instructions":"` + strings.Repeat("x", 1<<20) +
		`","model":"m","input":[],"metadata":{"a":"b"},"previous_response_id":"resp_0"}`
	w := openai.NewWorker(rec, ownID, created(), []byte(request))
	w.Header().Set("Content-Type", "text/event-stream")
	const upstream = "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\n"
	if _, err := w.Write([]byte(upstream)); err != nil {
		t.Fatal(err)
	}
	got := rec.Body.String()
	delta := strings.Index(got, "event: response.output_text.delta")
	if delta != rec.added || delta > 8<<10 {
		t.Errorf("%d bytes are before the upstream's event, of which %d are reported", delta, rec.added)
	}
	for _, repeated := range []string{`"metadata":{"a":"b"}`, `"previous_response_id":"resp_0"`, `"instructions":null`} {
		if strings.Count(got, repeated) != 3 {
			t.Errorf("%s is not in all of %s", repeated, got[:min(len(got), 2<<10)])
		}
	}
}

// FuzzWorker: whatever an upstream sends, the events that readers get are whole.
func FuzzWorker(f *testing.F) {
	f.Add([]byte("event: a\ndata: {\"type\":\"a\",\"response\":{}}\n\n"), []byte(`{"model":"m"}`))
	f.Add([]byte("data: [DONE]\n\n"), []byte(`[`))
	f.Fuzz(func(t *testing.T, events, request []byte) {
		rec := httptest.NewRecorder()
		w := openai.NewWorker(rec, ownID, created(), openai.Request(request))
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(events)
		_ = w.End()
		if body := rec.Body.String(); body != "" && !strings.HasSuffix(body, "\n\n") {
			t.Errorf("got %q", body)
		}
	})
}

// TestCancelledItems: a cancelled response has its complete items, and the unfinished ones as far as their events go.
func TestCancelledItems(t *testing.T) {
	t.Parallel()
	var stream strings.Builder
	for _, data := range []string{
		`{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}`,
		`{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}`,
		`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"th"}`,
		`{"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"thought"}]}}`,
		`{"type":"response.output_item.added","output_index":1,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}`,
		`{"type":"response.content_part.added","output_index":1,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}`,
		`{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"Hi "}`,
		`{"type":"response.output_item.added","output_index":2,"item":{"id":"fc_1","type":"function_call","status":"in_progress","arguments":"","name":"f"}}`,
		`{"type":"response.function_call_arguments.delta","output_index":2,"delta":"{\"a\""}`,
		`{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"th\u00e9re"}`,
		`{"type":"response.output_text.delta","output_index":1,"content_index":7,"delta":"no such part"}`,
		`{"type":"response.output_text.delta","output_index":9,"content_index":0,"delta":"no such item"}`,
	} {
		fmt.Fprintf(&stream, "event: x\ndata: %s\n\n", data)
	}
	want := `[{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"thought"}]},` +
		`{"id":"msg_1","type":"message","status":"incomplete","role":"assistant","content":[{"type":"output_text","text":"Hi thére","annotations":[]}]},` +
		`{"id":"fc_1","type":"function_call","status":"incomplete","arguments":"{\"a\"","name":"f"}]`
	if got, err := openai.CancelledItems(stream.String()); !sameJSON(got, want) || err != nil {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
}

func sameJSON(a, b string) bool {
	var first, second any
	return json.Unmarshal([]byte(a), &first) == nil && json.Unmarshal([]byte(b), &second) == nil && reflect.DeepEqual(first, second)
}
