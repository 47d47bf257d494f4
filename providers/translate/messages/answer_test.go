package messages_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
	"modelrelay/providers/translate/messages"
	"modelrelay/providers/translate/translatetest"
)

// eventsOf splits a stream into the names and the data of its events.
func eventsOf(stream []byte) (events [][2][]byte) {
	for one := range bytes.SplitSeq(bytes.TrimSpace(stream), []byte("\n\n")) {
		name, data, _ := bytes.Cut(one, []byte("\n"))
		events = append(events, [2][]byte{bytes.TrimPrefix(name, []byte("event: ")), bytes.TrimPrefix(data, []byte("data: "))})
	}
	return events
}

// readStream reads a whole stream. Between its events what they point to changes.
func readStream(stream []byte, each func(*form.Event)) {
	reader := messages.NewReader()
	give := func(events []form.Event) {
		for i := range events {
			each(&events[i])
		}
	}
	for _, event := range eventsOf(stream) {
		data := bytes.Clone(event[1])
		give(reader.Event(event[0], data, nil))
		for i := range data {
			data[i] = '!'
		}
	}
	give(reader.End(nil))
}

func readDocument(document []byte, each func(*form.Event)) {
	reader := messages.NewReader()
	for _, event := range reader.Document(rawjson.Trim(document), nil) {
		each(&event)
	}
	for _, event := range reader.End(nil) {
		each(&event)
	}
}

// show writes an event as a line.
// showStreamed shows an event of a document as that of a stream, in which a text is known to be a refusal at its end alone.
func showStreamed(e *form.Event) string {
	if e.Kind == form.EventRefusal {
		text := *e
		text.Kind = form.EventText
		e = &text
	}
	return show(e)
}

func show(e *form.Event) string {
	name := []string{
		"start", "text", "thought", "refusal", "state", "begin", "args", "end", "search", "citation", "media", "stop", "counts",
		"ping", "failed", "over",
	}[e.Kind]
	line := fmt.Sprintf("%s %d", name, e.Block)
	switch e.Kind {
	case form.EventText, form.EventThought, form.EventRefusal, form.EventCallArgs:
		line += " " + string(e.Text)
	case form.EventState:
		line += fmt.Sprintf(" %c %s", e.State.Kind, e.State.Data)
	case form.EventCallBegin:
		line += " " + e.Call.ID + " " + e.Call.Name
	case form.EventStop:
		line = fmt.Sprintf("stop %d %s", e.Stop.Reason, []byte(e.Stop.Sequence))
	case form.EventCounts:
		line = fmt.Sprintf("counts %+v", *e.Counts)
	case form.EventFailed:
		line = fmt.Sprintf("failed %s blame=%d accepted=%d code=%s said=%s", e.Fault.Kind, e.Fault.Blame, e.Fault.Accepted, e.Fault.Code,
			e.Fault.UpstreamMessage)
	}
	return line
}

// joined joins the pieces of blocks, and leaves out what only a stream has and counts that others overrule.
func joined(events []string) []string {
	var all []string
	var counts string
	for _, line := range events {
		words := strings.SplitN(line, " ", 3)
		switch words[0] {
		case "ping":
			continue
		case "counts":
			counts = line
			continue
		case "text", "thought", "refusal", "args":
			if n := len(all) - 1; n >= 0 && strings.HasPrefix(all[n], words[0]+" "+words[1]+" ") {
				all[n] = strings.TrimSuffix(all[n], `"`) + words[2][1:]
				continue
			}
		}
		all = append(all, line)
	}
	return append(all, counts)
}

// TestAnswer: a streamed answer and a complete one are read as the same events.
func TestAnswer(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/answer/*.sse")
	if err != nil || len(files) == 0 {
		t.Fatal(err, "no files")
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".sse")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stream, document := content(t, file), content(t, strings.TrimSuffix(file, "sse")+"json")
			var streamed, whole []string
			readStream(stream, func(e *form.Event) { streamed = append(streamed, show(e)) })
			readDocument(document, func(e *form.Event) { whole = append(whole, show(e)) })
			golden(t, "answer/"+name+".txt", strings.Join(streamed, "\n")+"\n")
			if got, want := joined(streamed), joined(whole); !slices.Equal(got, want) {
				t.Errorf("streamed\n%s\nwhole\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}

			// What is written of either is the same for the client, and reads as it was.
			again := map[string]string{}
			for from, read := range map[string]func(each func(*form.Event)){
				"stream":   func(each func(*form.Event)) { readStream(stream, each) },
				"document": func(each func(*form.Event)) { readDocument(document, each) },
			} {
				sse, doc := rewrite(read, true), rewrite(read, false)
				translatetest.CheckMessages(t, sse)
				var a, b []string
				readStream(sse, func(e *form.Event) { a = append(a, show(e)) })
				readDocument(doc, func(e *form.Event) { b = append(b, showStreamed(e)) })
				if !slices.Equal(joined(a), joined(b)) {
					t.Errorf("of a %s: streamed\n%s\nwhole\n%s", from, strings.Join(joined(a), "\n"), strings.Join(joined(b), "\n"))
				}
				again[from] = strings.Join(joined(a), "\n")
			}
			if again["stream"] != again["document"] {
				t.Errorf("of a stream\n%s\nof a document\n%s", again["stream"], again["document"])
			}
			if want := strings.Join(joined(streamed), "\n"); again["stream"] != strings.ReplaceAll(want, "refusal 0", "text 0") {
				t.Errorf("came back as\n%s\nwas\n%s", again["stream"], want)
			}
		})
	}
}

// rewrite writes what is read for a client.
func rewrite(read func(each func(*form.Event)), stream bool) []byte {
	writer := messages.NewWriter(form.Ask{Model: "public", Stream: stream, ShowThought: true})
	var out []byte
	read(func(e *form.Event) {
		writer.Write(e)
		out = append(out, writer.Take()...)
	})
	writer.Write(&form.Event{Kind: form.EventEnd})
	return append(out, writer.Take()...)
}

func content(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// TestAnswerBreaks is how answers end badly, and what stop reasons say.
func TestAnswerBreaks(t *testing.T) {
	t.Parallel()
	const start = `{"type":"message_start","message":{"usage":{"input_tokens":1}}}`
	failure := func(kind, message string) string {
		return `{"type":"error","error":{"type":"` + kind + `","message":"` + message + `"}}`
	}
	tests := map[string]struct {
		stream []string
		want   string
	}{
		"nothing":          {nil, "failed upstream blame=2 accepted=0 code= said="},
		"an end too early": {[]string{start}, "failed upstream blame=2 accepted=0 code= said="},
		"an end behind a delta": {
			[]string{start, `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`},
			"failed upstream blame=2 accepted=0 code= said=",
		},
		"overloaded": {
			[]string{failure("overloaded_error", "Overloaded")},
			"failed overloaded blame=2 accepted=0 code=overloaded_error said=",
		},
		"limited": {
			[]string{failure("rate_limit_error", "slow")},
			"failed rate_limited blame=1 accepted=1 code=rate_limit_error said=",
		},
		"broken": {[]string{start, failure("api_error", "Internal")}, "failed upstream blame=2 accepted=0 code=api_error said="},
		"slow":   {[]string{failure("timeout_error", "x")}, "failed timeout blame=2 accepted=0 code=timeout_error said="},
		"refused": {
			[]string{failure("invalid_request_error", "messages: no")},
			"failed invalid blame=0 accepted=1 code=invalid_request_error said=messages: no",
		},
		"too large": {
			[]string{failure("request_too_large", "big")},
			"failed too_large blame=0 accepted=1 code=request_too_large said=big",
		},
		"no model": {
			[]string{failure("not_found_error", "model: x")},
			"failed model_not_found blame=0 accepted=1 code=not_found_error said=",
		},
		"not found": {[]string{failure("not_found_error", "x")}, "failed not_found blame=0 accepted=1 code=not_found_error said="},
		"key": {
			[]string{failure("authentication_error", "x")},
			"failed upstream blame=1 accepted=1 code=authentication_error said=",
		},
		"key may not": {[]string{failure("permission_error", "x")}, "failed upstream blame=1 accepted=1 code=permission_error said="},
		"money": {
			[]string{failure("invalid_request_error", "Your credit balance is too low")},
			"failed upstream blame=1 accepted=1 code=invalid_request_error said=",
		},
		"disabled": {
			[]string{failure("invalid_request_error", "This organization has been disabled.")},
			"failed upstream blame=1 accepted=1 code=invalid_request_error said=",
		},
		"bill":       {[]string{failure("billing_error", "x")}, "failed upstream blame=1 accepted=1 code=billing_error said="},
		"end_turn":   {ending("end_turn"), fmt.Sprintf("stop %d ", form.StopEnd)},
		"max_tokens": {ending("max_tokens"), fmt.Sprintf("stop %d ", form.StopMaxTokens)},
		"pause_turn": {ending("pause_turn"), fmt.Sprintf("stop %d ", form.StopPaused)},
		"full":       {ending("model_context_window_exceeded"), fmt.Sprintf("stop %d ", form.StopContextFull)},
		"refusal":    {ending("refusal"), fmt.Sprintf("stop %d ", form.StopRefusal)},
		"unknown":    {ending("bored"), fmt.Sprintf("stop %d ", form.StopOther)},
		// Xerxes-2/clewdr #153, BerriAI/litellm #36262: tool_use without a call.
		"tool_use without one": {ending("tool_use"), fmt.Sprintf("stop %d ", form.StopEnd)},
		"a call that was cut off": {
			append([]string{start, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"1","name":"f","input":{}}}`},
				ending("max_tokens")...),
			fmt.Sprintf("stop %d ", form.StopMaxTokens),
		},
		// BerriAI/litellm #34692: calls that end as end_turn.
		"a call that ends as a turn": {
			append([]string{start, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"1","name":"f","input":{"a":1}}}`}, ending("end_turn")...),
			fmt.Sprintf("stop %d ", form.StopCalls),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reader := messages.NewReader()
			var events []form.Event
			for _, data := range test.stream {
				events = reader.Event(nil, []byte(data), events)
			}
			events = reader.End(events)
			if got := show(&events[len(events)-1]); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if more := reader.Event(nil, []byte(start), nil); len(more) > 0 {
				t.Errorf("events behind the end: %v", more)
			}
		})
	}
}

func ending(reason string) []string {
	return []string{`{"type":"message_delta","delta":{"stop_reason":"` + reason + `"}}`, `{"type":"message_stop"}`}
}

// TestAnswerWholeInput: the input in the start of a block counts if no delta follows.
func TestAnswerWholeInput(t *testing.T) {
	t.Parallel()
	reader := messages.NewReader()
	var lines []string
	for _, data := range []string{
		`{"type":"content_block_start","index":7,"content_block":{"type":"tool_use","id":"1","name":"f","input":{"a":1}}}`,
		`{"type":"content_block_stop","index":7}`,
		`{"type":"content_block_start","index":9,"content_block":{"type":"text","text":"x"}}`,
	} {
		for _, event := range reader.Event(nil, []byte(data), nil) {
			lines = append(lines, show(&event))
		}
	}
	if want := []string{"start 0", "begin 0 1 f", `args 0 "{\"a\":1}"`, "end 0", `text 1 "x"`}; !slices.Equal(lines, want) {
		t.Errorf("got %q, want %q", lines, want)
	}
}

func TestDocumentBreaks(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]string{
		`{}`: "failed upstream blame=2 accepted=0 code= said=",
		`{"type":"error","error":{"type":"overloaded_error"}}`: "failed overloaded blame=2 accepted=0 code=overloaded_error said=",
		`"x"`: "failed upstream blame=2 accepted=0 code= said=",
	} {
		var got []string
		readDocument([]byte(document), func(e *form.Event) { got = append(got, show(e)) })
		if len(got) != 1 || got[0] != want {
			t.Errorf("%s: got %q, want %q", document, got, want)
		}
	}
}

// TestFaultsFallOver: after an overloaded error another channel is tried.
func TestFaultsFallOver(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]bool{
		"overloaded_error": true, "rate_limit_error": true, "api_error": true,
		"invalid_request_error": false,
	} {
		events := messages.NewReader().Event(nil, []byte(`{"type":"error","error":{"type":"`+kind+`"}}`), nil)
		if got := events[0].Fault.Retryable(); got != want {
			t.Errorf("%s: got %t", kind, got)
		}
	}
}
