package relay_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"modelrelay/providers"
	"modelrelay/providers/relay"
	"modelrelay/providers/router"
)

// memory is a Makers of this process alone.
type memory struct {
	mu   sync.Mutex
	made map[string]relay.Origin
}

func (m *memory) Remember(answer string, by relay.Origin) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.made == nil {
		m.made = make(map[string]relay.Origin)
	}
	if _, known := m.made[answer]; !known {
		m.made[answer] = by
	}
}

func (m *memory) Find(_ context.Context, answers ...string) (makers []relay.Origin) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, answer := range answers {
		makers = append(makers, m.made[answer])
	}
	return makers
}

func responsesCall(previous string, stream bool) *providers.Call {
	return &providers.Call{
		Stream:   stream,
		Endpoint: providers.Endpoint{Format: providers.OpenAI, Operation: providers.Responses}, Model: "m",
		ContinuesFrom: []providers.Created{{ID: previous, Param: "previous_response_id"}}, Token: "anna",
		Content: providers.Content{ContentType: "application/json", Body: []byte(`{"model":"m","input":"hi"}`)},
	}
}

// shapes are what the vendor sends, in the order of its members and in another, of a document and of a stream.
func shapes(id string) map[string]string {
	document := fmt.Sprintf(`{"id":%q,"object":"response","output":[{"id":"msg_1"}],"usage":{"input_tokens":1,"output_tokens":2}}`, id)
	return map[string]string{
		"document":      document,
		"another order": fmt.Sprintf(`{"object":"response","output":[{"type":"message","id":"msg_1","content":[{"text":"\"id\":\"resp_0\""}]}],"usage":{"input_tokens":1,"output_tokens":2},"id":%q}`, id),
		"stream": "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":" + document + "}\n\n" +
			"event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"item\":{\"id\":\"msg_1\"}}\n\n" +
			"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":" + strings.Replace(document, id, "resp_late", 1) +
			"}\n\n",
	}
}

// TestOrigins: a call continues at the channel that made the answer before it, whatever that answer looked like and however
// small the pieces were it came in.
func TestOrigins(t *testing.T) {
	t.Parallel()
	for name, body := range shapes("resp_1") {
		for _, piece := range []int{1, 7, 4096} {
			t.Run(fmt.Sprint(name, " in pieces of ", piece), func(t *testing.T) {
				t.Parallel()
				serve := answers(body)
				stream := name == "stream"
				if stream {
					serve = streams(body)
				}
				b := newBench(t, &relay.Options{Origins: new(memory)}, status(http.StatusBadGateway), serve, serve)
				answer, err := b.Do(t.Context(), "default", responsesCall("", stream))
				if err != nil {
					t.Fatal(err)
				}
				first := answer.Channel // "b" or "c": "a" is broken and cools down
				buf := make([]byte, piece)
				for err == nil {
					_, err = answer.Body.Read(buf)
				}
				if !errors.Is(err, io.EOF) {
					t.Fatal(err)
				}
				if usage, ok := answer.Usage(); !ok || usage.Output != 2 {
					t.Errorf("got usage %+v, %v", usage, ok)
				}
				// The origin channel cools down, the others do not.
				to, _ := b.router.Resolve(first, providers.Secret("hush-"+first).Fingerprint(), "m")
				for range failures {
					b.router.Report(to.For("anna", false), &providers.Fault{Kind: providers.Upstream, Blame: providers.BlameChannel})
				}
				for _, previous := range []string{"resp_2", "resp_0", "resp_late", "msg_1", "resp_1"} {
					want := "c"
					if previous == "resp_1" || previous == "msg_1" {
						want = first
					}
					again, err := b.Do(t.Context(), "default", responsesCall(previous, stream))
					if err != nil {
						t.Fatal(err)
					}
					if again.Channel != want {
						t.Errorf("after %s: got channel %s, want %s", previous, again.Channel, want)
					}
					_ = again.Body.Close()
				}
			})
		}
	}
}

// TestOriginFails: if the origin channel fails and no other channel has the answer, the client receives the origin's failure. It
// may then try again. "Not found" would mean that the conversation is lost.
func TestOriginFails(t *testing.T) {
	t.Parallel()
	unknown := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":{"message":"Previous response with id 'resp_1' not found.","type":"invalid_request_error","param":"previous_response_id","code":"previous_response_not_found"}}`)
	}
	made := new(memory)
	b := newBench(t, &relay.Options{Origins: made}, unknown, status(http.StatusServiceUnavailable))
	made.Remember("resp_1", relay.Origin{KeyRef: providers.KeyRef{Channel: "b", Fingerprint: providers.Secret("hush-b").Fingerprint()}})
	if got := b.fault(t.Context(), t, responsesCall("resp_1", false)); got.Kind != providers.Overloaded {
		t.Errorf("got %v, want the fault of the origin channel", got)
	}
	if got := b.fault(t.Context(), t, responsesCall("resp_2", false)); got.Code != "previous_response_not_found" {
		t.Errorf("got %v, want the upstream's own refusal", got)
	}
	b = newBench(t, &relay.Options{Origins: made}, streams("event: response.created\ndata: {}\n\n"), status(http.StatusServiceUnavailable))
	call := responsesCall("resp_1", true)
	call.Gather = func(_ context.Context, answer io.ReadCloser, _ int) io.ReadCloser {
		_ = answer.Close()
		return io.NopCloser(iotest.ErrReader(&providers.Fault{Kind: providers.Internal}))
	}
	if got := b.fault(t.Context(), t, call); got.Kind != providers.Internal {
		t.Errorf("got %v, want the failure of the gateway to hold the other channel's answer", got)
	}
}

// TestMadeForAnotherToken: an id that an upstream made for one token does not exist for other tokens. An id without a record is
// passed on for any token.
func TestMadeForAnotherToken(t *testing.T) {
	t.Parallel()
	document := `{"id":"resp_1","output":[{"type":"code_interpreter_call","container_id" : "cntr_1", "id":"ci_1","outputs":[[{"id":"no_1"}]]},[],{"type":"mcp_list_tools","tools":[{"input_schema":{"id":"no_2","container_id":"no_3","output":[{"id":"no_4"}]}}]},{"content":[{"text":"\"container_id\":\"cntr_0\"",` +
		`"annotations":[{"container_id":"cntr_2"},{"container_id":null},{"container_id":"cntr_3"}]}]}],"metadata":{"id":"no_5","container_id":"no_6"},"tools":[{"output":[{"id":"no_7"}]}],"usage":{"input_tokens":1,"output_tokens":2}}`
	for name, body := range map[string]string{
		"document": document,
		"stream": "data: {\"response\":{\"id\":\"resp_1\"}}\n\ndata: {\"item\":{\"container_id\":\"cntr_1\"}}\n\n" +
			"data: {\"type\":\"response.completed\",\"response\":" + document + "}\n\n",
	} {
		for _, piece := range []int{1, 13, 4096} {
			t.Run(fmt.Sprint(name, " in pieces of ", piece), func(t *testing.T) {
				t.Parallel()
				serve := answers(body)
				if name == "stream" {
					serve = streams(body)
				}
				made := new(memory)
				b := newBench(t, &relay.Options{Origins: made}, serve)
				call := responsesCall("resp_0", name == "stream")
				call.ContinuesFrom = append(call.ContinuesFrom, providers.Created{ID: "cntr_3", Param: "tools"})
				answer, err := b.Do(t.Context(), "default", call)
				if err != nil {
					t.Fatal(err)
				}
				buf := make([]byte, piece)
				for err == nil {
					_, err = answer.Body.Read(buf)
				}
				_ = answer.Body.Close()
				for id, taken := range map[string]bool{
					"resp_1": true, "cntr_1": true, "cntr_2": true, "ci_1": true, // made for anna
					"no_1": false, "no_2": false, "no_3": false, "no_4": false, "no_5": false, "no_6": false, "no_7": false, // not named by the vendor
					"cntr_3": false, // named by her: it was there before
					"cntr_0": false, "resp_0": false, "resp_9": false,
				} {
					for _, token := range []string{"anna", "berta"} {
						call := responsesCall("", name == "stream")
						call.ContinuesFrom, call.Token = []providers.Created{{ID: "resp_0"}, {ID: id, Param: "the field"}}, token
						answer, err := b.Do(t.Context(), "default", call)
						if err == nil {
							_ = answer.Body.Close()
						}
						fault := providers.AsFault(err)
						if refused := fault != nil && fault.Kind == providers.NotFound &&
							fault.Param == "the field"; refused != (taken && token == "berta") || !refused && err != nil {
							t.Errorf("%s for %s: got %v", id, token, err)
						}
					}
				}
			})
		}
	}
}

// TestLinked: a call that continues from a stored response names it by its upstream's id where that upstream takes the call, and has its
// items anywhere else.
func TestLinked(t *testing.T) {
	t.Parallel()
	const items, linked = `{"model":"m","previous_response_id":null,"input":["one","two"]}`,
		`{"model":"m","previous_response_id":"resp_up","input":["two"]}`
	lost := `{"error":{"message":"Previous response with id 'resp_up' not found.","code":"previous_response_not_found"}}`
	for name, test := range map[string]struct {
		origin string
		answer func(w http.ResponseWriter, body string) // of channel b
		sent   []string
	}{
		"the origin":              {origin: "b", sent: []string{"b " + linked}},
		"the origin is not known": {sent: []string{"a " + items}},
		"the origin is gone":      {origin: "z", sent: []string{"a " + items}},
		"the origin fails": {
			origin: "b", sent: []string{"b " + linked, "a " + items},
			answer: func(w http.ResponseWriter, _ string) { w.WriteHeader(http.StatusInternalServerError) },
		},
		"the origin has it no longer": {
			origin: "b", sent: []string{"b " + linked, "b " + items},
			answer: func(w http.ResponseWriter, body string) {
				w.Header().Set("Content-Type", "application/json")
				if body == linked {
					w.WriteHeader(http.StatusBadRequest)
					_, _ = io.WriteString(w, lost)
					return
				}
				_, _ = io.WriteString(w, `{"id":"resp_2"}`)
			},
		},
		"the origin refuses the call": {origin: "b", sent: []string{"b " + linked}, answer: func(w http.ResponseWriter, _ string) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"message":"too long","code":"context_length_exceeded"}}`)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var sent []string
			serve := func(channel string, answer func(w http.ResponseWriter, body string)) http.HandlerFunc {
				return func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					mu.Lock()
					sent = append(sent, channel+" "+string(body))
					mu.Unlock()
					if answer != nil {
						answer(w, string(body))
						return
					}
					w.Header().Set("Content-Type", "application/json")
					_, _ = io.WriteString(w, `{"id":"resp_2"}`)
				}
			}
			made := new(memory)
			b := newBench(t, &relay.Options{Origins: made}, serve("a", nil), serve("b", test.answer))
			if test.origin != "" {
				made.Remember("resp_up", relay.Origin{KeyRef: providers.KeyRef{
					Channel:     test.origin,
					Fingerprint: providers.Secret("hush-" + test.origin).Fingerprint(),
				}, Token: "anna"})
			}
			call := responsesCall("resp_up", false)
			call.Body = []byte(items)
			call.Chain = providers.Chain{
				Previous: "resp_0", Earlier: 1, Upstream: "resp_up",
				Linked: &providers.Content{ContentType: "application/json", Body: []byte(linked)},
			}
			answer, err := b.Do(t.Context(), "default", call)
			if err == nil {
				if answer.Key != providers.Secret("hush-"+answer.Channel).Fingerprint() {
					t.Errorf("the answer has the key %q", answer.Key)
				}
				_ = answer.Body.Close()
			}
			mu.Lock()
			defer mu.Unlock()
			if fmt.Sprint(sent) != fmt.Sprint(test.sent) {
				t.Errorf("sent %q, want %q (%v)", sent, test.sent, err)
			}
		})
	}
}

// TestTicketed: a channel whose vendor runs background calls receives them so, and a call that runs already is read there alone.
func TestTicketed(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var sent []string
	serve := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		sent = append(sent, r.Method+" "+r.URL.Path+" "+string(body))
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"resp_up","status":"queued"}`)
	}
	server := httptest.NewServer(http.HandlerFunc(serve))
	t.Cleanup(server.Close)
	key := providers.Secret("hush-a")
	channel := providers.Channel{
		Name: "a", Vendor: "openai", BaseURL: server.URL, Keys: []providers.Secret{key}, Models: map[string]string{"m": "up"},
		Groups: []string{"default"},
	}
	for name, test := range map[string]struct {
		runs, background bool
		at               providers.KeyRef
		followed         string // what Follow gets
		sent             string
	}{
		"the vendor runs it": {
			runs: true, background: true, followed: "the create",
			sent: `POST /responses {"background":true,"model":"up","input":"hi"}`,
		},
		"the gateway runs it":       {background: true, sent: `POST /responses {"model":"up","input":"hi"}`},
		"a call in the foreground":  {runs: true, sent: `POST /responses {"model":"up","input":"hi"}`},
		"it runs already":           {background: true, at: providers.KeyRef{Channel: "a", Fingerprint: key.Fingerprint()}, followed: "nothing"},
		"it runs at a channel gone": {runs: true, background: true, at: providers.KeyRef{Channel: "z"}},
	} {
		mu.Lock()
		sent = nil
		mu.Unlock()
		channel.RunsBackground = test.runs
		b := benchOf(t, nil, []providers.Channel{channel})
		call, followed := responsesCall("", false), ""
		call.Body = []byte(`{"model":"m","input":"hi"}`)
		call.ModelAt = providers.Span{From: 9, To: 12}
		call.ContinuesFrom = nil
		call.Begin = func(context.Context, string) error {
			if test.at != (providers.KeyRef{}) {
				t.Errorf("%s: it is sent again", name)
			}
			return nil
		}
		if test.background {
			call.Ticketing = &providers.Ticketing{
				At: test.at,
				Follow: func(_ context.Context, to providers.Target, by providers.Ticketer, created *http.Response) (*http.Response, error) {
					followed = "nothing"
					if created != nil {
						followed = "the create"
						_ = created.Body.Close()
					}
					if to.Ref() != (providers.KeyRef{Channel: "a", Fingerprint: key.Fingerprint()}) || by == nil {
						t.Errorf("%s: followed at %+v", name, to.Ref())
					}
					return &http.Response{
						StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
						Body: io.NopCloser(strings.NewReader(`{"id":"resp_up","status":"completed"}`)),
					}, nil
				},
			}
		}
		answer, err := b.Do(t.Context(), "default", call)
		if gone := test.at.Channel == "z"; gone != errors.Is(err, router.ErrChannelGone) || !gone && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			if body, _ := io.ReadAll(answer.Body); test.followed != "" && !strings.Contains(string(body), "completed") {
				t.Errorf("%s: got %s", name, body)
			}
			_ = answer.Body.Close()
		}
		mu.Lock()
		if followed != test.followed || strings.Join(sent, ", ") != test.sent {
			t.Errorf("%s: Follow got %q, want %q; sent %q, want %q", name, followed, test.followed, sent, test.sent)
		}
		mu.Unlock()
	}
}
