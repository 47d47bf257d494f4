package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"modelrelay/activities"
	"modelrelay/api"
	"modelrelay/providers"
	"modelrelay/providers/relay"
	"modelrelay/providers/router"
	"modelrelay/providers/vendors"
	"modelrelay/storage/eventlog"
	"modelrelay/storage/tokens"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

const (
	interactionBody = `{"model":"flash","input":"p","background":true}`
	interactionPath = "/v1beta/interactions/" + callID
	// theirs is what the vendor calls an interaction.
	theirs = "v1_ChdSMTJ0"
)

// interactionStream is a stream of the vendor's: ai.google.dev/api/interactions-api, InteractionSseEvent.
var interactionStream = vendorEvent("interaction.created",
	`"interaction":{"id":"`+theirs+`","status":"in_progress","model":"gemini-flash","object":"interaction"}`) +
	vendorEvent("interaction.status_update", `"interaction_id":"`+theirs+`","status":"in_progress"`) +
	vendorEvent("step.start", `"index":0,"step":{"type":"thought"}`) +
	vendorEvent("step.delta", `"index":0,"delta":{"type":"thought_signature","signature":"sig"}`) +
	vendorEvent("step.start", `"index":1,"step":{"type":"model_output"}`) +
	vendorEvent("step.delta", `"index":1,"delta":{"type":"text","text":"Hel"}`) +
	vendorEvent("step.delta", `"index":1,"delta":{"type":"text","text":"lo"}`) +
	vendorEvent("step.stop", `"index":1`) +
	vendorEvent("interaction.completed", `"interaction":{"id":"`+theirs+
		`","status":"completed","object":"interaction","usage":{"total_input_tokens":3,"total_output_tokens":5}}`) +
	"event: done\ndata: [DONE]\n\n"

func vendorEvent(kind, members string) string {
	return "event: " + kind + "\ndata: {\"event_type\":\"" + kind + "\"," + members + "}\n\n"
}

// interacting is a gateway with Gemini channels, and an upstream that answers with what is set.
type interacting struct {
	*gateway

	log eventLog

	mu           sync.Mutex
	kind, answer string
	hangs        bool // after the answer
	sent         []string
	makers       *madeBy
}

// eventLog has the events of one call.
type eventLog struct{ events []string }

func (l *eventLog) Read(_ context.Context, _, _ string, after int64, each func(p eventlog.Piece) error) error {
	for n := after + 1; n < int64(len(l.events)); n++ {
		if err := each(eventlog.Piece{N: n, Data: []byte(l.events[n]), Begins: true, Ends: true}); err != nil {
			return err
		}
	}
	return nil
}

func newInteracting(t *testing.T, change func(*api.Options)) *interacting {
	t.Helper()
	i := &interacting{makers: &madeBy{ids: make(map[string]relay.Origin)}}
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		i.mu.Lock()
		i.sent = append(i.sent, r.Header.Get("X-Goog-Api-Key")+" "+r.URL.Path+" "+string(body))
		kind, answer, hangs := i.kind, i.answer, i.hangs
		i.mu.Unlock()
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, answer)
		if hangs {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}))
	t.Cleanup(upstream.Close)
	vendors := vendors.New(upstream.Client())
	channel := func(name string, keys ...providers.Secret) providers.Channel {
		return providers.Channel{
			Name: name, Vendor: "gemini", BaseURL: upstream.URL, Keys: keys, Models: map[string]string{"flash": "gemini-flash"},
			Groups: []string{"default"},
		}
	}
	first := channel("first", "key-1")
	first.Priority = 1
	channels := router.New(vendors, []providers.Channel{first, channel("second", "key-2", "key-3")}, nil)
	i.gateway = newGateway(t, nil, func(_ *gateway, o *api.Options) {
		o.Router, o.Relay, o.Events = channels, relay.New(channels, vendors, &relay.Options{Origins: i.makers}), &i.log
		if change != nil {
			change(o)
		}
	})
	return i
}

// serve serves the create's call as a worker does.
func (i *interacting) serve(t *testing.T, body string) (*httptest.ResponseRecorder, *activities.CallRun) {
	t.Helper()
	rec := httptest.NewRecorder()
	return rec, i.serveTo(t.Context(), rec, body)
}

func (i *interacting) serveTo(ctx context.Context, w http.ResponseWriter, body string) *activities.CallRun {
	run := &activities.CallRun{TaskID: callID, Created: day}
	i.serveCall(ctx, w, "/v1beta/interactions", body, run)
	return run
}

// stopping ends a call with its first events.
type stopping struct {
	*httptest.ResponseRecorder

	stop func()
}

func (s stopping) Write(p []byte) (int, error) {
	s.stop()
	return s.ResponseRecorder.Write(p)
}

// ended puts the task of an interaction with an answer.
func (i *interacting) ended(state workflows.State, stream bool, request, answer string) tasks.Task {
	i.archive["request"], i.archive["answer"] = []byte(request), []byte(answer)
	task := tasks.Task{
		ID: callID, Token: "good", Format: providers.Gemini, Operation: "POST /v1beta/interactions",
		Request: providers.VideoRequest{Model: "flash"},
		State:   state, CreatedAt: day, Stream: stream, Body: "request",
	}
	if task.Ended() {
		task.CompletedAt, task.ExpiresAt, task.Call = day.Add(time.Second), time.Now().Add(time.Hour), &activities.Answered{Status: 200}
	}
	if answer != "" {
		task.Outputs = []activities.Output{{Object: "answer", ContentType: "application/json", Size: int64(len(answer))}}
		task.Call.Events = int64(strings.Count(answer, "\n\n"))
	}
	i.tasks.put(task)
	return task
}

// TestBackgroundInteraction: the create answers at once with the interaction of a task.
func TestBackgroundInteraction(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/v1beta/interactions", "/v1/interactions"} {
		i := newInteracting(t, nil)
		rec := i.do(t, request("POST", path, interactionBody, "Prefer", "respond-async, wait=5", "Idempotency-Key", "k", "X-Webhook-Url",
			"https://client.example/hook"))
		want := `{"id":"` + callID + `","object":"interaction","model":"flash","status":"in_progress","created":"` + day.Format(time.RFC3339) + `"`
		if rec.Code != http.StatusOK || !strings.HasPrefix(rec.Body.String(), want) || rec.Header().Get("Preference-Applied") != "" ||
			rec.Header().Get("Location") != "" {
			t.Errorf("got %d %v: %s", rec.Code, rec.Header(), rec.Body)
		}
		if len(i.sent) != 0 || len(i.tasks.creates) != 1 {
			t.Fatalf("sent %q, created %d", i.sent, len(i.tasks.creates))
		}
		create := i.tasks.creates[0]
		if create.Call.Operation() != "POST "+path || create.Call.Response || create.IdempotencyKey != "k" || create.Call.WebhookURL == "" ||
			string(create.Request.Inputs[0].Data) != interactionBody {
			t.Errorf("created %+v with %+v", create, create.Call)
		}
	}
}

// TestBackgroundAgent: an agent's interaction is a task that only its vendor can run.
func TestBackgroundAgent(t *testing.T) {
	t.Parallel()
	i := newInteracting(t, nil)
	rec := i.do(t, request("POST", "/v1beta/interactions", `{"agent":"flash","input":"p","background":true}`))
	if rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), `"agent":"flash","status":"in_progress"`) || len(i.sent) != 0 ||
		len(i.tasks.creates) != 1 || !i.tasks.creates[0].Call.Hosted {
		t.Errorf("got %d %s, sent %q, created %+v", rec.Code, rec.Body, i.sent, i.tasks.creates)
	}
	if rec := i.do(t, request("POST", "/v1beta/interactions", interactionBody)); rec.Code != http.StatusOK || i.tasks.creates[1].Call.Hosted {
		t.Errorf("a model: got %d %s", rec.Code, rec.Body)
	}
}

// TestBackgroundInteractionRefused: what cannot be a task is refused and makes none, or is relayed as before.
func TestBackgroundInteractionRefused(t *testing.T) {
	t.Parallel()
	forbidding := func(o *api.Options) {
		o.Forbids = func(string) []string { return []string{providers.ForbidBackground} }
	}
	for _, tc := range []struct {
		name, body, want string
		status           int
		change           func(*api.Options)
	}{
		{"not stored", `{"model":"flash","input":"p","background":true,"store":false}`, "'store'", 400, nil},
		{
			"the vendor's webhook", `{"model":"flash","input":"p","background":true,"webhook_config":{"uris":["https://a"]}}`, "'webhook_config'",
			400, nil,
		},
		{"no such model", `{"model":"none","input":"p","background":true}`, `"status":"NOT_FOUND"`, 404, nil},
		{
			"no such interaction before", `{"model":"flash","input":"p","background":true,"previous_interaction_id":"` + callID + `"}`,
			"'previous_interaction_id'", 400, nil,
		},
		{"forbidden", interactionBody, "background", 400, forbidding},
	} {
		i := newInteracting(t, tc.change)
		rec := i.do(t, request("POST", "/v1beta/interactions", tc.body))
		if rec.Code != tc.status || !strings.Contains(rec.Body.String(), tc.want) || len(i.tasks.creates) != 0 || len(i.sent) != 0 {
			t.Errorf("%s: got %d %s", tc.name, rec.Code, rec.Body)
		}
	}
	for _, body := range []string{`{"model":"flash","input":"p"}`, `{"agent":"flash","input":"p"}`} {
		i := newInteracting(t, nil)
		i.kind, i.answer = "application/json", `{"id":"`+theirs+`","status":"in_progress"}`
		rec := i.do(t, request("POST", "/v1beta/interactions", body, "Prefer", "respond-async"))
		if rec.Code != 200 || rec.Body.String() != i.answer || len(i.tasks.creates) != 0 || len(i.sent) != 1 ||
			!strings.HasSuffix(i.sent[0], strings.Replace(body, "flash", "gemini-flash", 1)) {
			t.Errorf("%s: got %d %s, sent %q", body, rec.Code, rec.Body, i.sent)
		}
	}
}

// TestBackgroundInteractionServed: the worker sends the create without background, and what the task gets has its own id.
func TestBackgroundInteractionServed(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, kind, answer, want string
		failure, fault           string
	}{
		{
			"a document", "application/json", `{"id":"` + theirs + `","status":"requires_action","steps":[]}`,
			`{"id":"` + callID + `","status":"requires_action","steps":[]}`, "", "",
		},
		{
			"that failed", "application/json", `{"id":"` + theirs + `","status":"failed","errors":[{"code":"blocked","message":"no"}]}`,
			`"status":"failed"`, "blocked", "",
		},
		{"a stream", "text/event-stream", interactionStream, `"event_id":"8"}` + "\n\nevent: done\ndata: [DONE]\n\n", "", ""},
		{
			"a stream that ends too early", "text/event-stream",
			interactionStream[:strings.Index(interactionStream, "event: interaction.completed")],
			"event: error\ndata: {\"event_type\":\"error\",\"error\":{\"code\":\"internal\",\"message\":\"The upstream ended its answer without finishing it.\"},\"event_id\":\"8\"}\n\n", "", string(providers.Upstream),
		},
		{
			"a stream with an error", "text/event-stream",
			interactionStream[:strings.Index(interactionStream, "event: step.stop")] +
				vendorEvent("error", `"error":{"code":"gateway_timeout","message":"late"}`),
			`"error":{"code":"gateway_timeout","message":"late"},"event_id":"7"}`, "gateway_timeout", "",
		},
	} {
		i := newInteracting(t, nil)
		i.kind, i.answer = tc.kind, tc.answer
		body := interactionBody
		if strings.Contains(tc.kind, "stream") {
			body = `{"model":"flash","input":"p","stream":true,"background":true}`
		}
		rec, run := i.serve(t, body)
		if want := "key-1 /v1beta/interactions " + strings.Replace(strings.Replace(body, `,"background":true`, "", 1), "flash", "gemini-flash",
			1); len(i.sent) != 1 || i.sent[0] != want {
			t.Errorf("%s: sent %q, want %s", tc.name, i.sent, want)
		}
		if rec.Code != 200 || !strings.HasSuffix(rec.Body.String(), tc.want) && !strings.Contains(rec.Body.String(), tc.want) ||
			strings.Contains(rec.Body.String(), theirs) {
			t.Errorf("%s: got %d %s, want %s", tc.name, rec.Code, rec.Body, tc.want)
		}
		if (run.Failure == nil) != (tc.failure == "") || run.Failure != nil && run.Failure.Code != tc.failure ||
			(run.Fault == nil) != (tc.fault == "") || run.Fault != nil && string(run.Fault.Kind) != tc.fault {
			t.Errorf("%s: ended with %+v, %v", tc.name, run.Failure, run.Fault)
		}
		if run.Copy == nil || run.Copy.ID != theirs || run.Copy.Channel != "first" || run.Copy.Key != providers.Secret("key-1").Fingerprint() {
			t.Errorf("%s: the copy is %+v", tc.name, run.Copy)
		}
		for n, event := range strings.SplitAfter(rec.Body.String(), "\n\n") {
			if strings.Contains(event, `"event_type"`) && !strings.Contains(event, fmt.Sprintf(`"event_id":"%d"`, n)) {
				t.Errorf("%s: event %d is %s", tc.name, n, event)
			}
		}
	}
}

// TestBackgroundInteractionStopped: the stream of a call that is cancelled ends after the upstream's last event.
func TestBackgroundInteractionStopped(t *testing.T) {
	t.Parallel()
	i := newInteracting(t, nil)
	i.kind, i.answer, i.hangs = "text/event-stream", interactionStream[:strings.Index(interactionStream, "event: step.stop")], true
	ctx, cancel := context.WithCancel(t.Context())
	rec := httptest.NewRecorder()
	run := i.serveTo(ctx, stopping{rec, cancel}, `{"model":"flash","input":"p","stream":true,"background":true}`)
	if !strings.Contains(rec.Body.String(), "interaction.created") || run.Fault == nil || run.Failure != nil ||
		strings.Contains(rec.Body.String(), `"event_type":"error"`) || strings.Contains(rec.Body.String(), "[DONE]") {
		t.Errorf("got %s, %v, %+v", rec.Body, run.Fault, run.Failure)
	}
}

// TestBackgroundInteractionRead: an interaction in each of its states, for its own token alone.
func TestBackgroundInteractionRead(t *testing.T) {
	t.Parallel()
	const streamed = `{"model":"flash","input":"p","stream":true,"background":true}`
	worked := func(i *interacting) string {
		i.kind, i.answer = "text/event-stream", interactionStream
		rec, _ := i.serve(t, streamed)
		return rec.Body.String()
	}
	steps := `"steps":[{"signature":"sig","type":"thought"},{"content":[{"text":"Hello","type":"text"}],"type":"model_output"}]`
	for name, tc := range map[string]struct {
		put   func(i *interacting)
		query string
		want  []string
	}{
		"queued": {
			func(i *interacting) { i.ended(workflows.Queued, false, interactionBody, "") }, "",
			[]string{`"status":"in_progress"`, `"steps":[]`},
		},
		"in progress": {
			func(i *interacting) { i.ended(workflows.InProgress, false, interactionBody, "") }, "?include_input=true",
			[]string{`"status":"in_progress"`, `"input":"p"`},
		},
		"completed": {func(i *interacting) {
			i.ended(workflows.Completed, false, interactionBody, `{"id":"`+callID+`","status":"incomplete"}`)
		}, "?wait=5", []string{`{"id":"` + callID + `","status":"incomplete"}`}},
		"completed stream": {
			func(i *interacting) { i.ended(workflows.Completed, true, streamed, worked(i)) }, "?include_input=true",
			[]string{`"status":"completed"`, steps, `"total_output_tokens":5`, `"input":"p"`},
		},
		"failed": {func(i *interacting) {
			task := i.ended(workflows.Failed, false, interactionBody, "")
			task.Failure = &providers.VideoFailure{Code: "bad", Message: "no"}
			i.tasks.put(task)
		}, "", []string{`"status":"failed"`, `"errors":[{"code":"bad","message":"no"}]`, `"model":"flash"`}},
		"cancelled": {
			func(i *interacting) { i.ended(workflows.Cancelled, false, interactionBody, "") }, "",
			[]string{`"status":"cancelled"`, `"steps":[]`},
		},
		"cancelled stream": {func(i *interacting) {
			all := worked(i)
			i.ended(workflows.Cancelled, true, streamed, all[:strings.Index(all, "event: step.stop")])
		}, "", []string{`"status":"cancelled"`, steps, `"model":"flash"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInteracting(t, nil)
			tc.put(i)
			for _, path := range []string{interactionPath, "/v1/interactions/" + callID} {
				rec := i.do(t, request("GET", path+tc.query, ""))
				for _, want := range tc.want {
					if rec.Code != 200 || !strings.Contains(rec.Body.String(), want) || !json.Valid(rec.Body.Bytes()) {
						t.Errorf("got %d %s, want %s", rec.Code, rec.Body, want)
					}
				}
			}
			if rec := i.do(t, request("GET", interactionPath, "", "Authorization", "Bearer "+otherKey)); rec.Code != 404 {
				t.Errorf("another token: got %d %s", rec.Code, rec.Body)
			}
		})
	}
	i := newInteracting(t, nil)
	i.tokens["sk-video"] = &tokens.Token{ID: "good", Group: "default", Operations: []string{"video"}}
	task := i.ended(workflows.InProgress, false, interactionBody, "")
	if rec := i.do(t, request("GET", interactionPath, "", "Authorization", "Bearer sk-video")); rec.Code != 404 {
		t.Errorf("a token for videos alone: got %d %s", rec.Code, rec.Body)
	}
	if rec := i.do(t, request("GET", interactionPath+"?wait=61", "")); rec.Code != 400 {
		t.Errorf("too long a wait: got %d %s", rec.Code, rec.Body)
	}
	task.Operation = "POST /v1/chat/completions"
	i.tasks.put(task)
	if rec := i.do(t, request("GET", interactionPath, "")); rec.Code != 404 {
		t.Errorf("a chat: got %d %s", rec.Code, rec.Body)
	}
}

// TestBackgroundInteractionEnds: it is cancelled and deleted below both prefixes.
func TestBackgroundInteractionEnds(t *testing.T) {
	t.Parallel()
	i := newInteracting(t, nil)
	i.ended(workflows.InProgress, false, interactionBody, "")
	if rec := i.do(t, request("POST", "/v1/interactions/"+callID+"/cancel", "")); rec.Code != 200 ||
		!strings.Contains(rec.Body.String(), `"id":"`+callID+`"`) || strings.Contains(rec.Body.String(), "in_progress") {
		t.Errorf("cancel: got %d %s", rec.Code, rec.Body)
	}
	if rec := i.do(t, request("DELETE", interactionPath, "")); rec.Code != 200 || strings.TrimSpace(rec.Body.String()) != "{}" {
		t.Errorf("delete: got %d %s", rec.Code, rec.Body)
	}
	for _, way := range []struct{ method, path string }{{"GET", ""}, {"POST", "/cancel"}, {"DELETE", ""}} {
		if rec := i.do(t, request(way.method, interactionPath+way.path, "")); rec.Code != 404 {
			t.Errorf("%s after the delete: got %d %s", way.method, rec.Code, rec.Body)
		}
	}
}

// TestBackgroundInteractionStream: the create and later readers get the same events, from any of them on.
func TestBackgroundInteractionStream(t *testing.T) {
	t.Parallel()
	const streamed = `{"model":"flash","input":"p","stream":true,"background":true}`
	i := newInteracting(t, nil)
	i.kind, i.answer = "text/event-stream", interactionStream
	served, _ := i.serve(t, streamed)
	all := strings.SplitAfter(served.Body.String(), "\n\n")
	all = all[:len(all)-1]
	i.ended(workflows.Completed, true, streamed, served.Body.String())
	i.log.events = all
	for _, tc := range []struct {
		query string
		from  int
	}{{"", 0}, {"&last_event_id=0", 1}, {"&last_event_id=1", 2}, {"&last_event_id=5", 6}, {"&last_event_id=8", 9}, {"&last_event_id=9", 10}} {
		rec := i.do(t, request("GET", interactionPath+"?stream=true"+tc.query, ""))
		if rec.Code != 200 || rec.Header().Get("Content-Type") != "text/event-stream" || rec.Body.String() != strings.Join(all[tc.from:], "") {
			t.Errorf("%s: got %d %s, want the events from %d on", tc.query, rec.Code, rec.Body, tc.from)
		}
	}
	for _, query := range []string{"&last_event_id=x", "&last_event_id=-1", "&last_event_id=1.5"} {
		if rec := i.do(t, request("GET", interactionPath+"?stream=true"+query, "")); rec.Code != 400 ||
			!strings.Contains(rec.Body.String(), "last_event_id") {
			t.Errorf("%s: got %d %s", query, rec.Code, rec.Body)
		}
	}
	rec := i.do(t, request("POST", "/v1beta/interactions", streamed))
	if rec.Code != 200 || !strings.HasPrefix(rec.Body.String(), all[0]+all[1]) {
		t.Errorf("the create: got %d %s", rec.Code, rec.Body)
	}
	i.ended(workflows.InProgress, false, interactionBody, "")
	if rec := i.do(t, request("GET", interactionPath+"?stream=true", "")); rec.Code != 400 || !strings.Contains(rec.Body.String(), "stream") {
		t.Errorf("one without events: got %d %s", rec.Code, rec.Body)
	}
}

// TestBackgroundInteractionFailsFirst: a stream that failed before its upstream's first event ends with the error event, once.
func TestBackgroundInteractionFailsFirst(t *testing.T) {
	t.Parallel()
	const streamed = `{"model":"flash","input":"p","stream":true,"background":true}`
	i := newInteracting(t, func(o *api.Options) { o.Events = blockingLog{} })
	task := i.ended(workflows.Failed, true, streamed, "")
	task.Failure = &providers.VideoFailure{Code: "upstream_error", Message: "no"}
	i.tasks.put(task)
	for last, want := range map[string]int{"": 3, "&last_event_id=0": 2, "&last_event_id=1": 1, "&last_event_id=2": 0} {
		rec := i.do(t, request("GET", interactionPath+"?stream=true"+last, ""))
		if got := strings.Count(rec.Body.String(), "\n\n"); got != want ||
			strings.Contains(rec.Body.String(), `"event_type":"error"`) != (want > 0) {
			t.Errorf("after %q: got %s, want %d events", last, rec.Body, want)
		}
	}
}

// blockingLog has no events, and does not know that there will be none.
type blockingLog struct{}

func (blockingLog) Read(ctx context.Context, _, _ string, _ int64, _ func(p eventlog.Piece) error) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// TestInteractionContinuesTask: a call that continues from an interaction in the background goes to the channel and key that made it, under
// its vendor's id, and its answer has the client's.
func TestInteractionContinuesTask(t *testing.T) {
	t.Parallel()
	const continued = `{"model":"flash","input":"q","previous_interaction_id":"` + callID + `"}`
	made := func(i *interacting, channel string, key providers.Secret) {
		task := i.ended(workflows.Completed, false, interactionBody, `{"id":"`+callID+`","status":"completed"}`)
		task.Call.Copy = &activities.CallTicket{ID: theirs, Channel: channel, Key: key.Fingerprint()}
		i.tasks.put(task)
	}
	for _, key := range []providers.Secret{"key-2", "key-3"} {
		i := newInteracting(t, nil)
		made(i, "second", key)
		i.kind, i.answer = "application/json", `{"id":"v1_next","status":"completed","previous_interaction_id": "`+theirs+`"}`
		want := string(key) + ` /v1beta/interactions {"model":"gemini-flash","input":"q","previous_interaction_id":"` + theirs + `"}`
		rec := i.do(t, request("POST", "/v1beta/interactions", continued))
		if rec.Code != 200 || rec.Body.String() != `{"id":"v1_next","status":"completed","previous_interaction_id": "`+callID+`"}` ||
			len(i.sent) != 1 || i.sent[0] != want {
			t.Errorf("got %d %s, sent %q, want %s", rec.Code, rec.Body, i.sent, want)
		}
		rec, run := i.serve(t, strings.Replace(continued, "{", `{"background":true,`, 1))
		if run.Fault != nil || len(i.sent) != 2 || i.sent[1] != want || strings.Contains(rec.Body.String(), theirs) ||
			!strings.Contains(rec.Body.String(), `"previous_interaction_id": "`+callID+`"`) {
			t.Errorf("in the background: got %s, %v, sent %q", rec.Body, run.Fault, i.sent)
		}
	}
	for name, put := range map[string]func(i *interacting){
		"of a channel that is gone": func(i *interacting) { made(i, "third", "key-2") },
		"of a key that is gone":     func(i *interacting) { made(i, "second", "key-1") },
		"without a copy":            func(i *interacting) { i.ended(workflows.Completed, false, interactionBody, "{}") },
		"in progress":               func(i *interacting) { i.ended(workflows.InProgress, false, interactionBody, "") },
		"cancelled":                 func(i *interacting) { i.ended(workflows.Cancelled, false, interactionBody, "") },
		"unknown":                   func(*interacting) {},
		"another token's": func(i *interacting) {
			task := i.ended(workflows.Completed, false, interactionBody, "{}")
			task.Token = "other"
			i.tasks.put(task)
		},
	} {
		for _, body := range []string{continued, strings.Replace(continued, "{", `{"background":true,`, 1)} {
			i := newInteracting(t, nil)
			put(i)
			rec := i.do(t, request("POST", "/v1beta/interactions", body))
			if rec.Code != 400 || !strings.Contains(rec.Body.String(), "'previous_interaction_id'") || len(i.sent) != 0 ||
				len(i.tasks.creates) != 0 {
				t.Errorf("%s: got %d %s, sent %q", name, rec.Code, rec.Body, i.sent)
			}
		}
	}
}
