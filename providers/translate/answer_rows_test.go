package translate_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/sse"
	"modelrelay/providers/translate"
)

// begun is a translation of the first call of a conversation: streamed, for the latest model of the upstream.
func begun(t *testing.T, client, upstream peer, stream bool) *translate.Translation {
	t.Helper()
	begin := begins()[client.name]
	tr, fault := ask(t, new(translate.Translator), client, upstream, upstream.models[len(upstream.models)-1], begin[0]+begin[1], stream)
	if fault != nil {
		t.Fatal(fault)
	}
	return tr
}

const (
	messagesStart = `data: {"type":"message_start","message":{"usage":{"input_tokens":1}}}` + "\n\n" +
		`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hi"}}` + "\n\n"
	messagesEnd = `data: {"type":"content_block_stop","index":0}` + "\n\n" +
		`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}` + "\n\n" +
		`data: {"type":"message_stop"}` + "\n\n"
)

// TestAnswersThatBreak: a line of data that is no JSON, an event beyond all bounds, and an answer that the client's format cannot hold
// end the answer where they come, whatever follows. https://html.spec.whatwg.org/multipage/server-sent-events.html has no such
// bounds; they are the gateway's own.
func TestAnswersThatBreak(t *testing.T) {
	t.Parallel()
	piece := `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + strings.Repeat("x", 1<<20) + `"}}` +
		"\n\n"
	for name, test := range map[string]struct {
		client  peer
		stream  string
		odd     bool // the answer made no sense
		because error
	}{
		"no JSON":      {peers()[0], messagesStart + "data: {\n\n" + messagesEnd, true, nil},
		"too long":     {peers()[0], messagesStart + "data: " + strings.Repeat(" ", 17<<20) + "\n\n" + messagesEnd, true, sse.ErrTooLong},
		"held in full": {peers()[1], messagesStart + strings.Repeat(piece, 17) + messagesEnd, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := begun(t, test.client, peers()[2], true).Answer(strings.NewReader(test.stream), true, 0)
			if fault := answer.Begin(); fault != nil {
				t.Fatal(fault)
			}
			out, err := io.ReadAll(answer)
			fault := new(providers.Fault)
			if !errors.As(err, &fault) || fault.Kind != providers.Upstream || fault.Malformed != test.odd || test.because != nil &&
				!errors.Is(err, test.because) {
				t.Errorf("got %v", err)
			}
			if answer.Ended() || bytes.Contains(out, []byte("[DONE]")) || bytes.Contains(out, []byte("response.completed")) {
				t.Errorf("the answer ends as if it were whole: …%s", out[max(0, len(out)-200):])
			}
		})
	}
}

// TestDoneWithoutABlankLine: [DONE] counts without the blank line after it. If no chunk had a finish reason, as with some
// OpenAI-compatible servers, [DONE] means a normal end.
func TestDoneWithoutABlankLine(t *testing.T) {
	t.Parallel()
	const stream = `data: {"choices":[{"index":0,"delta":{"content":"Hi"}}]}` + "\n\ndata: [DONE]"
	for _, end := range []string{"", "\n", "\n\n"} {
		if got := read(t, begun(t, peers()[2], peers()[0], true), stream+end, true); !strings.Contains(got, `"stop_reason":"end_turn"`) ||
			!strings.Contains(got, "message_stop") {
			t.Errorf("end %q: got %s", end, got)
		}
	}
}

// TestEventsGoOnTogether: one Read returns all events that arrived in one piece, so that they are flushed once.
func TestEventsGoOnTogether(t *testing.T) {
	t.Parallel()
	piece := strings.Repeat(`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}`+"\n\n", 5)
	answer := begun(t, peers()[0], peers()[2], true).Answer(io.MultiReader(strings.NewReader(messagesStart), strings.NewReader(piece),
		strings.NewReader(messagesEnd)), true, 0)
	if fault := answer.Begin(); fault != nil {
		t.Fatal(fault)
	}
	buf := make([]byte, 32<<10)
	var got []int
	for {
		n, err := answer.Read(buf)
		if err != nil {
			break
		}
		got = append(got, strings.Count(string(buf[:n]), `"content":"x"`))
	}
	if len(got) != 3 || got[1] != 5 {
		t.Errorf("got %v pieces of text in the reads, want 5 in the second of 3", got)
	}
}

// TestMediaInAnswers: an answer of a picture alone is none that another format can show; next to a text it is left out.
// https://ai.google.dev/gemini-api/docs/image-generation has both.
func TestMediaInAnswers(t *testing.T) {
	t.Parallel()
	const picture = `{"inlineData":{"mimeType":"image/png","data":"QUJD"}}`
	document := func(parts string) string {
		return `{"candidates":[{"content":{"parts":[` + parts + `],"role":"model"},"finishReason":"STOP","index":0}]}`
	}
	for _, client := range peers()[:3] {
		answer := begun(t, client, peers()[3], false).Answer(strings.NewReader(document(picture)), false, 0)
		if fault := answer.Begin(); fault == nil || fault.Kind != providers.Upstream || fault.Blame != providers.BlameNone {
			t.Errorf("%s: got %+v of a picture", client.name, fault)
		}
		if got := read(t, begun(t, client, peers()[3], false), document(picture+`,{"text":"A cat."}`), false); !strings.Contains(got, "A cat.") ||
			strings.Contains(got, "QUJD") {
			t.Errorf("%s: got %s", client.name, got)
		}
	}
}

// TestDocumentBreaksOff: a document that breaks off is not asked for again, because its upstream charges for it.
func TestDocumentBreaksOff(t *testing.T) {
	t.Parallel()
	gone := &providers.Fault{Kind: providers.Upstream, Message: "gone"}
	answer := begun(t, peers()[0], peers()[2], false).Answer(io.MultiReader(strings.NewReader(`{"content":[`), iotest.ErrReader(gone)), false, 0)
	if fault := answer.Begin(); fault != nil {
		t.Errorf("another upstream is asked: %v", fault)
	}
	if out, err := io.ReadAll(answer); !errors.Is(err, gone) || len(out) > 0 {
		t.Errorf("got %v behind %s", err, out)
	}
}

// TestNamesComeBack: the answer contains the client's own names of tools. A prefix "default_api" of Gemini is removed from a known
// name, as many of its clients do. Other names stay unchanged.
func TestNamesComeBack(t *testing.T) {
	t.Parallel()
	const body = `{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"1st"}},{"type":"function","function":{"name":"default_api.g"}},{"type":"function","function":{"name":"g"}}]}`
	tr, fault := ask(t, new(translate.Translator), peers()[0], peers()[3], "gemini-2.5-flash", body, false)
	if fault != nil {
		t.Fatal(fault)
	}
	sent := rawjson.Value(bytes.Join(tr.Call.Pieces, nil))
	var renamed string
	for _, tool := range sent.Get("tools").Items() {
		for _, declared := range tool.Get("functionDeclarations").Items() {
			if name := declared.Get("name").Text().String(); strings.Contains(name, "st_") {
				renamed = name
			}
		}
	}
	if renamed == "" {
		t.Fatalf("no name is changed: %s", sent)
	}
	for given, want := range map[string]string{
		"f": "f", "default_api:f": "f", "default_api.f": "f", renamed: "1st", "default_api:" + renamed: "1st", "default_api.g": "default_api.g",
		"default_api:unknown": "default_api:unknown", "F": "F",
	} {
		document := `{"candidates":[{"content":{"parts":[{"functionCall":{"id":"c","name":"` + given + `","args":{}}}]},"finishReason":"STOP"}]}`
		if got := read(t, tr, document, false); !strings.Contains(got, `"name":"`+want+`"`) {
			t.Errorf("%s: want %s in %s", given, want, got)
		}
	}
}

// TestAnswerHeaders is what describes a translated answer in place of the upstream's header: the array of a Gemini client without
// alt=sse is no event stream.
func TestAnswerHeaders(t *testing.T) {
	t.Parallel()
	upstream := http.Header{
		"Content-Type": {"text/event-stream"}, "Content-Length": {"5"}, "Content-Encoding": {"identity"},
		"Content-Disposition": {"inline"},
	}
	gemini := &providers.Call{
		Endpoint: providers.Endpoint{Format: providers.Gemini, Operation: providers.StreamContent}, Model: "m",
		Content: providers.Content{Body: []byte(`{"contents":[{"parts":[{"text":"x"}]}]}`)},
	}
	for name, test := range map[string]struct {
		sse  bool
		want string
	}{"an array": {false, "application/json"}, "events": {true, "text/event-stream"}} {
		call := gemini
		call.Stream = test.sse
		tr, fault := new(translate.Translator).Translate(t.Context(), call, providers.Target{Model: "claude-sonnet-4-5"}, vendorOf(peers()[2].takes...))
		if fault != nil {
			t.Fatal(fault)
		}
		header := upstream.Clone()
		tr.Header(header)
		if got := header.Get("Content-Type"); got != test.want || tr.Stream() != test.sse {
			t.Errorf("%s: got %s, a stream %t", name, got, tr.Stream())
		}
		for _, gone := range []string{"Content-Length", "Content-Encoding", "Content-Disposition"} {
			if got := header.Get(gone); got != "" {
				t.Errorf("%s: %s is still %s", name, gone, got)
			}
		}
	}
}

// TestUpstreamsWordsAreBounded: an upstream's message about a call reaches the client, whatever its format, up to 2 KiB.
func TestUpstreamsWordsAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 5000)
	others(func(client, upstream peer) {
		tr := begun(t, client, upstream, false)
		fault := &providers.Fault{
			Kind:     providers.Invalid,
			Upstream: &providers.Reply{Status: http.StatusBadRequest, Body: []byte(`{"type":"error","error":{"message":"` + long + `"}}`)},
		}
		if tr.Fault(fault); len(fault.UpstreamMessage) < 1<<10 || len(fault.UpstreamMessage) > 2<<10+len("…") {
			t.Errorf("%s from %s: %d bytes", client.name, upstream.name, len(fault.UpstreamMessage))
		}
	})
}
