package relay_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"modelrelay/providers"
	"modelrelay/providers/relay"
	"modelrelay/providers/router"
	"modelrelay/providers/translate"
	"modelrelay/providers/upstream"
	"modelrelay/providers/vendors"
)

// scripted is a channel of a vendor whose upstream is in memory.
type scripted struct {
	vendor string
	answer relayFunc
	change func(*providers.Channel)
}

// translating is a relay over channels "a", "b", … of one priority in this order of weight; what an upstream was sent is
// noted.
func translating(tb testing.TB, opts *relay.Options, channels ...scripted) (*relay.Relay, *router.Router, *[]request) {
	tb.Helper()
	var all []providers.Channel
	sent := new([]request)
	vendors := vendors.New(upstream.NewClient(nil))
	for i, script := range channels {
		name := string(rune('a' + i))
		vendor := vendors[script.vendor]
		vendor.Relay = relayFunc(func(ctx context.Context, to providers.Target, call *providers.Call) (*http.Response, error) {
			body, err := io.ReadAll(call.Payload(to.Model).Reader())
			if err != nil {
				tb.Error(err)
			}
			*sent = append(*sent, request{name, call.Endpoint, string(body), call.Stream})
			return script.answer(ctx, to, call)
		})
		vendors[name] = vendor
		channel := providers.Channel{
			Name: name, Vendor: name, Keys: []providers.Secret{"hush"}, Models: map[string]string{"m": "up"}, Groups: []string{"default"},
			Priority: -i,
		}
		if script.change != nil {
			script.change(&channel)
		}
		all = append(all, channel)
	}
	routes := router.New(vendors, all, &router.Options{Reaches: translate.Reaches})
	return relay.New(routes, vendors, opts), routes, sent
}

type request struct {
	channel  string
	endpoint providers.Endpoint
	body     string
	stream   bool
}

var (
	toMessages = providers.Endpoint{Format: providers.Anthropic, Operation: providers.Messages}
	toGemini   = providers.Endpoint{Format: providers.Gemini, Operation: providers.StreamContent}
)

// sayHi is a call of Anthropic's format.
func sayHi(change ...func(*providers.Call)) *providers.Call {
	call := &providers.Call{
		Endpoint: toMessages, Model: "m", Content: providers.Content{
			ContentType: "application/json",
			Body:        []byte(`{"model":"m","max_tokens":64,"messages":[{"role":"user","content":"my private prompt"}],"service_tier":"standard_only"}`),
		},
		Token: "t",
	}
	for _, f := range change {
		f(call)
	}
	return call
}

// Streams of a vendor each, as its SDK's documentation has them.
const (
	geminiHi = `data: {"candidates":[{"content":{"parts":[{"text":"Hi"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":7,"totalTokenCount":7},"modelVersion":"up","responseId":"r"}` + "\n\n" +
		`data: {"candidates":[{"content":{"parts":[{"text":" you"}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":2,"totalTokenCount":9},"modelVersion":"up","responseId":"r"}` + "\n\n"
	messagesHi = "event: message_start\n" + `data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"up","stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":1}}}` + "\n\n" +
		"event: content_block_start\n" + `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n" +
		"event: content_block_delta\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}` + "\n\n" +
		messagesEnd
	messagesEnd = "event: content_block_stop\n" + `data: {"type":"content_block_stop","index":0}` + "\n\n" +
		"event: message_delta\n" + `data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":2}}` + "\n\n" +
		"event: message_stop\n" + `data: {"type":"message_stop"}` + "\n\n"
	messagesOverloaded = "event: error\n" + `data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}` + "\n\n"
)

func events(stream string) relayFunc { return says("text/event-stream", strings.NewReader(stream)) }

// refuses answers as vendors do that refuse a request, with its own words.
func refuses(status int, body string) relayFunc {
	return func(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
		fault := upstream.Refusal(status, http.Header{})
		fault.Upstream = &providers.Reply{Status: status, Body: []byte(body), Format: providers.Gemini}
		fault.Param = "theirs"
		return nil, fault
	}
}

// readAll reads an answer to its end.
func readAll(t *testing.T, answer *relay.Answer) (string, error) {
	t.Helper()
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return string(body), err
}

// TestTranslated: a call reaches a channel of another format, the answer comes in the client's, and the usage is what the
// upstream reports.
func TestTranslated(t *testing.T) {
	t.Parallel()
	r, _, sent := translating(t, nil, scripted{vendor: "gemini", answer: events(geminiHi)})
	answer, err := r.Do(t.Context(), "default", sayHi(streamed))
	if err != nil {
		t.Fatal(err)
	}
	body, err := readAll(t, answer)
	if err != nil || !strings.HasPrefix(body, "event: message_start\n") || !strings.HasSuffix(body, `data: {"type":"message_stop"}`+"\n\n") ||
		strings.Count(body, "text_delta") != 2 || !strings.Contains(body, `"model":"m"`) {
		t.Errorf("got %v, %s", err, body)
	}
	usage, counted := answer.Usage()
	if want := (providers.Usage{Input: 7, Output: 2}); !counted || usage != want {
		t.Errorf("got usage %+v, want %+v", usage, want)
	}
	if answer.Translated != toGemini || !answer.Stream || answer.Attempts != 1 || !answer.Settled() {
		t.Errorf("got %+v", answer)
	}
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream", "X-Relay-Translated": "gemini.stream_content", "X-Relay-Dropped": "service_tier",
		"X-Relay-Changed": "",
		"Content-Length":  "",
	} {
		if got := answer.Header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if len(*sent) != 1 || (*sent)[0].endpoint != toGemini || !(*sent)[0].stream || !strings.Contains((*sent)[0].body, `"contents":[`) ||
		strings.Contains((*sent)[0].body, `"messages"`) {
		t.Errorf("sent %+v", *sent)
	}
}

// TestGathers: an answer of which the gateway holds each event, or the document, waits for room in the process if its call asks for that.
func TestGathers(t *testing.T) {
	t.Parallel()
	document := strings.TrimSuffix(strings.TrimPrefix(geminiHi[strings.Index(geminiHi, "\n\n")+2:], "data: "), "\n\n")
	for name, test := range map[string]struct {
		vendor string
		answer relayFunc
		want   []int // the bounds of documents
	}{
		"translated events":     {"gemini", events(geminiHi), []int{0}},
		"a translated document": {"gemini", says("application/json", strings.NewReader(document)), []int{translate.MaxDocument}},
		"events":                {"anthropic", events(messagesHi), []int{0}},
		"a document":            {"anthropic", says("application/json", strings.NewReader(`{"type":"message"}`)), nil},
	} {
		r, _, _ := translating(t, nil, scripted{vendor: test.vendor, answer: test.answer})
		var got []int
		answer, err := r.Do(t.Context(), "default", sayHi(func(call *providers.Call) {
			call.Stream = slices.Equal(test.want, []int{0})
			call.Gather = func(_ context.Context, answer io.ReadCloser, document int) io.ReadCloser {
				got = append(got, document)
				return answer
			}
		}))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if body, err := readAll(t, answer); err != nil || body == "" || !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, %q, bounds %d, want %d", name, err, body, got, test.want)
		}
	}
}

// TestGatherFails: an answer that the gateway cannot hold is the gateway's own failure. It blames no channel, and no other one is asked.
func TestGatherFails(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	fault := &providers.Fault{Kind: providers.Internal, Message: "The answer could not be archived.", Err: away}
	for name, stream := range map[string]string{"gemini": geminiHi, "anthropic": messagesHi} {
		for when, begins := range map[string]bool{"at its begin": false, "later": true} {
			r, routes, sent := translating(t, nil, scripted{vendor: name, answer: events(stream)},
				scripted{vendor: "anthropic", answer: events(messagesHi)})
			answer, err := r.Do(t.Context(), "default", sayHi(func(call *providers.Call) {
				call.Stream = true
				call.Gather = func(_ context.Context, answer io.ReadCloser, _ int) io.ReadCloser {
					passes := io.Reader(strings.NewReader(""))
					if begins {
						passes = io.LimitReader(answer, int64(strings.Index(stream, "\n\n")+2))
					}
					return io.NopCloser(io.MultiReader(passes, iotest.ErrReader(fault)))
				}
			}))
			if (err == nil) != begins {
				t.Errorf("%s, %s: %v", name, when, err)
				continue
			}
			if begins {
				_, err = readAll(t, answer)
			}
			if got := providers.AsFault(err); got == nil || got.Kind != providers.Internal || !errors.Is(err, away) {
				t.Errorf("%s, %s: got %v", name, when, err)
			}
			if state := routes.Health.States()[0]; state.LastFault != nil || coolsDown(routes, "a") || len(*sent) != 1 {
				t.Errorf("%s, %s: blamed for %+v after %d requests", name, when, state.LastFault, len(*sent))
			}
		}
	}
}

// TestFallsOverBetweenFormats: from a channel of the client's own format to one of another and back, each with its own call.
func TestFallsOverBetweenFormats(t *testing.T) {
	t.Parallel()
	down := refuses(http.StatusServiceUnavailable, `{"error":{"message":"down"}}`)
	r, _, sent := translating(t, nil, scripted{vendor: "anthropic", answer: down}, scripted{vendor: "gemini", answer: down},
		scripted{vendor: "anthropic", answer: events(messagesHi)})
	answer, err := r.Do(t.Context(), "default", sayHi(streamed))
	if err != nil {
		t.Fatal(err)
	}
	body, err := readAll(t, answer)
	if err != nil || body != messagesHi || answer.Attempts != 3 || answer.Translated != (providers.Endpoint{}) ||
		answer.Header.Get("X-Relay-Translated") != "" {
		t.Errorf("got %v, %d attempts, %v: %s", err, answer.Attempts, answer.Header, body)
	}
	if len(*sent) != 3 || (*sent)[0].body != (*sent)[2].body ||
		(*sent)[0].body != strings.Replace(string(sayHi().Body), `"model":"m"`, `"model":"up"`, 1) && (*sent)[0].body != string(sayHi().Body) ||
		!strings.Contains((*sent)[1].body, "contents") {
		t.Errorf("sent %+v", *sent)
	}
}

// TestErrorBeforeContent: an error event before any content is the attempt's fault, whose kind reports whether another channel is
// asked; behind content it ends the client's stream.
func TestErrorBeforeContent(t *testing.T) {
	t.Parallel()
	start, _, _ := strings.Cut(messagesHi, "event: content_block_start")
	gemini := &providers.Call{
		Endpoint: toGemini, Model: "m", Stream: true,
		Content: providers.Content{Body: []byte(`{"contents":[{"role":"user","parts":[{"text":"Hi"}]}]}`)},
	}
	for name, tc := range map[string]struct {
		stream   string
		attempts int
		kind     providers.Kind
		begins   bool
	}{
		"at once":          {messagesOverloaded, 2, "", false},
		"behind the start": {start + messagesOverloaded, 2, "", false},
		"about the request": {
			start + "event: error\n" + `data: {"type":"error","error":{"type":"invalid_request_error","message":"their words about hush"}}` + "\n\n",
			1, providers.Invalid, false,
		},
		"nothing at all":      {"", 2, "", false},
		"cut off":             {start, 2, "", false},
		"no JSON":             {start + "data: {\n\n", 2, "", false},
		"behind content":      {strings.TrimSuffix(messagesHi, messagesEnd) + messagesOverloaded, 1, providers.Overloaded, true},
		"cut off in content":  {strings.TrimSuffix(messagesHi, messagesEnd), 1, providers.Upstream, true},
		"no JSON in content":  {strings.TrimSuffix(messagesHi, messagesEnd) + "data: {\n\n", 1, providers.Upstream, true},
		"behind its own stop": {messagesHi + messagesOverloaded, 1, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _, sent := translating(t, nil, scripted{vendor: "anthropic", answer: events(tc.stream)},
				scripted{vendor: "gemini", answer: events(geminiHi)})
			answer, err := r.Do(t.Context(), "default", gemini)
			if len(*sent) != tc.attempts {
				t.Errorf("got %d attempts, want %d", len(*sent), tc.attempts)
			}
			var body string
			if err == nil {
				body, err = readAll(t, answer)
			}
			switch fault := providers.AsFault(err); {
			case tc.kind == "" && err != nil:
				t.Errorf("got %v", err)
			case tc.kind == "":
				if want := map[int]string{1: `"Hi"`, 2: geminiHi}[tc.attempts]; !strings.Contains(body, want) {
					t.Errorf("got %s", body)
				}
			case fault == nil || fault.Kind != tc.kind:
				t.Errorf("got %v, want %s", err, tc.kind)
			case tc.begins != strings.Contains(body, `"Hi"`):
				t.Errorf("got %q before %v", body, fault)
			case tc.kind == providers.Invalid && (fault.UpstreamMessage != "their words about ***" &&
				!strings.HasPrefix(fault.UpstreamMessage, "their words about ") || strings.Contains(fault.UpstreamMessage, "hush")):
				t.Errorf("got %q", fault.UpstreamMessage)
			}
		})
	}
}

// TestUnfit: a channel that cannot take the call in its format counts as none. Where no other is left the client learns why of
// the first, by its own field, and nothing was sent.
func TestUnfit(t *testing.T) {
	t.Parallel()
	unfit := func(c *providers.Call) {
		c.Body = []byte(`{"model":"m","max_tokens":64,"messages":[{"role":"user","content":"x"}],"container":"c","stream":true}`)
	}
	r, routes, sent := translating(t, nil, scripted{vendor: "gemini", answer: events(geminiHi)},
		scripted{vendor: "gemini", answer: events(geminiHi)})
	_, err := r.Do(t.Context(), "default", sayHi(streamed, unfit))
	fault := providers.AsFault(err)
	if fault == nil || fault.Kind != providers.Invalid || fault.Param != "container" || fault.Blame != providers.BlameNone || len(*sent) != 0 {
		t.Errorf("got %+v, sent %v", fault, *sent)
	}
	for _, state := range routes.Health.States() {
		if state.CallsPerMinute != 0 || state.FaultsPerMinute != 0 {
			t.Errorf("%s: got %d calls, %d faults", state.Name, state.CallsPerMinute, state.FaultsPerMinute)
		}
	}

	r, _, sent = translating(t, &relay.Options{MaxAttempts: 1}, scripted{vendor: "gemini", answer: events(geminiHi)},
		scripted{vendor: "anthropic", answer: events(messagesHi)})
	answer, err := r.Do(t.Context(), "default", sayHi(streamed, unfit))
	if err != nil || answer.Channel != "b" || answer.Attempts != 1 || len(*sent) != 1 {
		t.Fatalf("got %v, sent %v, want the channel that can", err, *sent)
	}
	answer.Body.Close()
}

// TestRefusedByUpstream: the refusal of an upstream of another format keeps its status and its message. A field that it names is
// none of the client's.
func TestRefusedByUpstream(t *testing.T) {
	t.Parallel()
	words := `{"error":{"code":400,"message":"The words about hush.","status":"INVALID_ARGUMENT"}}`
	for _, tc := range []struct {
		status int
		body   string
		kind   providers.Kind
		said   string
	}{
		{http.StatusBadRequest, words, providers.Invalid, "The words about ***."},
		{http.StatusUnprocessableEntity, words, providers.Invalid, "The words about ***."},
		{http.StatusRequestEntityTooLarge, `<html>`, providers.TooLarge, ""},
		{http.StatusUnauthorized, words, providers.Upstream, ""},
		{http.StatusTooManyRequests, words, providers.RateLimited, ""},
		{http.StatusInternalServerError, words, providers.Upstream, ""},
	} {
		r, routes, _ := translating(t, nil, scripted{vendor: "gemini", answer: refuses(tc.status, tc.body)})
		_, err := r.Do(t.Context(), "default", sayHi())
		fault := providers.AsFault(err)
		if fault == nil || fault.Kind != tc.kind || fault.Param != "" && tc.status < 500 || fault.Upstream.Status != tc.status ||
			fault.Upstream.Format != "" {
			t.Errorf("%d: got %+v", tc.status, fault)
			continue
		}
		if got := strings.ReplaceAll(fault.UpstreamMessage, providers.Secret("hush").String(), "***"); got != tc.said {
			t.Errorf("%d: got %q, want %q", tc.status, got, tc.said)
		}
		if tc.kind == providers.Invalid && coolsDown(routes, "a") {
			t.Errorf("%d: the channel cools down", tc.status)
		}
	}
}

// TestAnswersAsTheyCome: an upstream that answers a stream with a document, or a document with a stream, is taken at its word.
func TestAnswersAsTheyCome(t *testing.T) {
	t.Parallel()
	document := `{"candidates":[{"content":{"parts":[{"text":"Hi you"}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":2},"responseId":"r"}`
	whole := says("application/json", strings.NewReader(document))
	var texts []string
	for _, tc := range []struct {
		change func(*providers.Call)
		answer relayFunc
	}{
		{streamed, whole},
		{func(*providers.Call) {}, events(geminiHi)},
		{func(*providers.Call) {}, says("application/json", strings.NewReader(document))},
	} {
		r, _, _ := translating(t, nil, scripted{vendor: "gemini", answer: tc.answer})
		call := sayHi(tc.change)
		answer, err := r.Do(t.Context(), "default", call)
		if err != nil {
			t.Fatal(err)
		}
		body, err := readAll(t, answer)
		usage, counted := answer.Usage()
		if err != nil || answer.Stream != call.Stream || !counted || usage.Output != 2 || strings.HasPrefix(body, "event: ") != call.Stream {
			t.Errorf("stream %v: got %v, %+v, %s", call.Stream, err, usage, body)
		}
		if !call.Stream {
			_, text, _ := strings.Cut(body, `"content":`)
			texts = append(texts, text)
		}
	}
	if len(texts) != 2 || texts[0] != texts[1] {
		t.Errorf("got %q of one answer in two forms", texts)
	}
	for name, answer := range map[string]relayFunc{
		"no JSON": says("application/json", strings.NewReader("<html>")), "nothing": says("application/json", strings.NewReader("")),
		"half": says("application/json", strings.NewReader(document[:50])), "null": says("application/json", strings.NewReader("null")),
		"encoded": func(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
			return &http.Response{
				StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {"br"}},
				Body: io.NopCloser(strings.NewReader(document)),
			}, nil
		},
	} {
		r, _, sent := translating(t, nil, scripted{vendor: "gemini", answer: answer},
			scripted{vendor: "anthropic", answer: says("application/json", strings.NewReader("{}"))})
		answer, err := r.Do(t.Context(), "default", sayHi())
		if err != nil {
			t.Errorf("%s: got %v", name, err)
			continue
		}
		answer.Body.Close()
		if len(*sent) != 2 {
			t.Errorf("%s: %d attempts, want another channel asked", name, len(*sent))
		}
	}
}

// recollections remembers in memory.
type recollections struct {
	kept map[string][]byte
	by   translate.Caller
}

func (m *recollections) Store(caller translate.Caller, name string, entry []byte) {
	m.by, m.kept[name] = caller, entry
}

func (m *recollections) Find(_ context.Context, caller translate.Caller, names []string) map[string][]byte {
	found := make(map[string][]byte)
	for _, name := range names {
		if entry, known := m.kept[name]; known && caller == m.by {
			found[name] = entry
		}
	}
	return found
}

// TestRemembers: what a model signed before its call of a tool stands before that call again when a chat client comes back with
// the tool's result, and not for another token.
func TestRemembers(t *testing.T) {
	t.Parallel()
	const thinking = `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"up","stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":1}}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"The user \"asks\" "}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"for rain."}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2lnbmVk"}}

data: {"type":"content_block_stop","index":0}

data: {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"c2VjcmV0"}}

data: {"type":"content_block_stop","index":1}

data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"weather","input":{}}}

data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{}"}}

data: {"type":"content_block_stop","index":2}

data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":2}}

data: {"type":"message_stop"}

`
	kept := &recollections{kept: make(map[string][]byte)}
	// A model of this name thinks by a budget, so it must receive its signed thoughts again.
	named := func(c *providers.Channel) { c.Models = map[string]string{"m": "claude-sonnet-4-5"} }
	r, _, sent := translating(t, &relay.Options{Translator: &translate.Translator{Signatures: kept}},
		scripted{vendor: "anthropic", answer: func(ctx context.Context, to providers.Target, call *providers.Call) (*http.Response, error) {
			return events(thinking)(ctx, to, call)
		}, change: named})
	ask := func(token, rest string) string {
		call := chatCall(streamed, func(c *providers.Call) {
			c.Token, c.Key = token, providers.Secret("sk-"+token)
			c.Body = []byte(`{"model":"m","reasoning_effort":"high","messages":[{"role":"user","content":"Rain?"}` + rest +
				`],"tools":[{"type":"function","function":{"name":"weather"}}]}`)
		})
		answer, err := r.Do(t.Context(), "default", call)
		if err != nil {
			t.Fatal(err)
		}
		body, err := readAll(t, answer)
		if err != nil || strings.Contains(body, "toolu_1") != (rest == "") || !strings.Contains(body, "tool_calls") ||
			strings.Contains(body, "mr1.") {
			t.Errorf("got %v, %s", err, body)
		}
		return (*sent)[len(*sent)-1].body
	}
	ask("a", "")
	history := `,{"role":"assistant","content":null,"reasoning_content":"The user asks","tool_calls":[{"id":"toolu_1","type":"function","function":{"name":"weather","arguments":"{}"}}]},{"role":"tool","tool_call_id":"toolu_1","content":"rain"}`
	want := `{"type":"thinking","thinking":"The user \"asks\" for rain.","signature":"c2lnbmVk"},{"type":"redacted_thinking","data":"c2VjcmV0"},{"type":"tool_use","id":"toolu_1"`
	if got := ask("a", history); !strings.Contains(got, want) {
		t.Errorf("sent %s, want %s", got, want)
	}
	if got := ask("b", history); strings.Contains(got, "c2lnbmVk") {
		t.Errorf("another token's call has the state: %s", got)
	}
}
