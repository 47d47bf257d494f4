package e2e_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"modelrelay/dev/e2e/stack"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/sse"
	"modelrelay/storage/testwait"
)

// requestsTo returns the requests of an operation that the upstream has received.
func requestsTo(s *stack.Stack, operation string) []seen {
	var answer struct {
		Requests []seen `json:"requests"`
	}
	s.Control.Do(http.MethodGet, "/requests?"+url.Values{"operation": {operation}}.Encode(), nil, &answer)
	return answer.Requests
}

// newUpstreamSplit is newCallSplit with a channel whose vendor runs background calls.
func newUpstreamSplit(on *stack.Stack) *stack.Split {
	return splitOf(on, stack.GatewayOptions{
		Channels: on.Channel("main", "sk-upstream-main", "    background: upstream\n"),
		Relay:    "grace: 1s",
	})
}

// TestKillWorkerDuringTicket: the vendor makes the response. After the death of the worker another one reads it to its end, and nothing is
// sent again. A call that continues from it names it by the vendor's id, and its deletion deletes the vendor's copy.
func TestKillWorkerDuringTicket(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ stream, stopped bool }{
		"stream": {stream: true}, "stream, stopped": {stream: true, stopped: true}, "document": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stream := test.stream
			s := newUpstreamSplit(stack.Shared(t))
			rule := map[string]any{"operation": "responses.get", "action": "hang"}
			if stream {
				rule = map[string]any{"operation": "responses", "action": "stall", "chunks": 5, "times": 1}
			}
			s.Control.AddRule(rule)
			create := stack.Request{Method: http.MethodPost, Path: "/v1/responses", Body: map[string]any{
				"model": "gpt-4o", "input": "a lighthouse, a harbour and a boat", "background": true, "stream": stream,
			}}
			answer := make(chan *stack.Answer, 1)
			go func() {
				got, err := s.Front.Send(t.Context(), create)
				if err != nil {
					t.Error(err)
				}
				answer <- got
			}()
			testwait.Eventually(t, "the ticket is in the archive", stack.TaskTimeout, func() bool {
				for _, err := range s.Archive().List(t.Context(), "tickets/") {
					return err == nil
				}
				return false
			})
			if !stream {
				s.Control.Await("responses.get", "", "", 1)
			}
			if test.stopped {
				s.Worker.Stop(t)
			} else {
				s.Worker.Kill()
			}
			s.Control.Clear()
			s.RestartWorker()
			id, text := "", ""
			if got := <-answer; stream {
				number := int64(0)
				if err := sse.Each(bytes.NewReader(got.Body), func(event sse.Event) {
					data := rawjson.Trim(event.Data)
					if n, ok := data.Get("sequence_number").Int(); event.Data != nil && (!ok || n != number) {
						t.Errorf("event %d: got %s", number, event.Data)
					}
					if event.Data != nil {
						number++
					}
					if response := data.Get("response"); response.IsObject() {
						id, text = response.Get("id").Text().String(), string(response)
					}
				}); err != nil {
					t.Error(err)
				}
			} else {
				id = rawjson.Trim(got.Body).Get("id").Text().String()
			}
			if ended := awaitBackground(t, s.Front, "", id); ended.Status != "completed" || ended.Attempts != 1 {
				t.Fatalf("ended as %+v with %+v", ended, ended.Error)
			}
			if read := s.Front.Call(t, stack.Request{Path: "/v1/responses/" + id}); stream && string(read.Body) != text ||
				!strings.Contains(string(read.Body), "You said: a lighthouse") {
				t.Errorf("read %s, the stream ended with %s", read.Body, text)
			}
			if sent := requestsTo(s.Stack, "responses"); len(sent) != 1 || !bytes.Contains(sent[0].Head, []byte(`"background":true`)) {
				t.Errorf("the upstream received %d creates: %+v", len(sent), sent)
			}
			if read := requestsTo(s.Stack, "responses.get"); len(read) == 0 {
				t.Error("the response was not read at its vendor")
			}
			follow := s.Front.Call(t, stack.Request{
				Method: http.MethodPost, Path: "/v1/responses",
				Body: map[string]any{"model": "gpt-4o", "input": "and then?", "previous_response_id": id},
			})
			var shown struct {
				Previous string `json:"previous_response_id"`
			}
			if err := json.Unmarshal(follow.Body, &shown); err != nil || shown.Previous != id {
				t.Errorf("the following call: %d %s", follow.Status, follow.Body)
			}
			if sent := requestsTo(s.Stack, "responses"); len(sent) != 2 || bytes.Contains(sent[1].Head, []byte("lighthouse")) ||
				!bytes.Contains(sent[1].Head, []byte(`"previous_response_id":"resp_`)) {
				t.Errorf("the upstream received for the following call: %+v", sent)
			}
			if deleted := s.Front.Call(t, stack.Request{Method: http.MethodDelete, Path: "/v1/responses/" + id}); deleted.Status != http.StatusOK {
				t.Errorf("delete: %d %s", deleted.Status, deleted.Body)
			}
			testwait.Eventually(t, "the vendor's copy is deleted", stack.TaskTimeout,
				func() bool { return len(requestsTo(s.Stack, "responses.delete")) == 1 })
		})
	}
}

// TestCancelTicket: a cancel reaches the vendor that makes the response.
func TestCancelTicket(t *testing.T) {
	t.Parallel()
	s := newUpstreamSplit(stack.Shared(t))
	s.Control.AddRule(map[string]any{"operation": "responses.get", "action": "hang"})
	created := s.Front.Call(t, stack.Request{
		Method: http.MethodPost, Path: "/v1/responses",
		Body: map[string]any{"model": "gpt-4o", "input": "unwanted", "background": true},
	})
	id := rawjson.Trim(created.Body).Get("id").Text().String()
	s.Control.Await("responses.get", "", "", 1)
	if cancelled := s.Front.Call(t, stack.Request{
		Method: http.MethodPost,
		Path:   "/v1/responses/" + id + "/cancel",
	}); cancelled.Status != http.StatusOK {
		t.Errorf("cancel: %d %s", cancelled.Status, cancelled.Body)
	}
	if ended := awaitBackground(t, s.Front, "", id); ended.Status != "cancelled" {
		t.Errorf("ended as %+v", ended)
	}
	if sent := requestsTo(s.Stack, "responses.cancel"); len(sent) != 1 {
		t.Errorf("the vendor received %d cancels", len(sent))
	}
}
