package responses_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
	"modelrelay/providers/translate/responses"
	"modelrelay/providers/translate/translatetest"
)

// eventLines returns one line for each event. If joined is set, the pieces of one block are in one line.
func eventLines(events []form.Event, joined bool) string {
	var lines []string
	last := ""
	for i := range events {
		e := &events[i]
		head, text := "", ""
		switch e.Kind {
		case form.EventStart:
			head = "start"
		case form.EventText, form.EventThought, form.EventRefusal, form.EventCallArgs:
			head = fmt.Sprintf("%s %d: ", map[form.EventKind]string{
				form.EventText: "text", form.EventThought: "thought", form.EventRefusal: "refusal", form.EventCallArgs: "input",
			}[e.Kind], e.Block)
			text = e.Text.String()
			if e.Logprobs != nil {
				text += " " + string(e.Logprobs)
			}
			if joined && head == last {
				lines[len(lines)-1] += text
				continue
			}
		case form.EventState:
			head = fmt.Sprintf("state %d: %c %s %s", e.Block, e.State.Kind, e.State.Data, e.State.ID)
		case form.EventCallBegin:
			head = fmt.Sprintf("call %d: %s %s custom %v", e.Block, e.Call.ID, e.Call.Name, e.Call.Custom)
		case form.EventCallEnd:
			head = fmt.Sprintf("call %d ends", e.Block)
		case form.EventStop:
			head = fmt.Sprintf("stop %d", e.Stop.Reason)
		case form.EventCounts:
			head = fmt.Sprintf("counts %+v", *e.Counts)
		case form.EventPing:
			head = "ping"
		case form.EventMedia:
			head = "media"
		case form.EventFailed:
			head = fmt.Sprintf("failed %s: %s%s", e.Fault.Kind, e.Fault.Message, e.Fault.UpstreamMessage)
		case form.EventEnd:
			head = "end"
		}
		last = head
		lines = append(lines, head+text)
	}
	return strings.Join(lines, "\n")
}

// stream reads the data of events, one a line.
func stream(lines string, joined bool) string {
	reader := responses.NewReader()
	var all []string
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		data := []byte(line)
		if events := eventLines(reader.Event(nil, data, nil), joined); events != "" {
			all = append(all, events)
		}
		clear(data) // what an event points to is not kept
	}
	if events := eventLines(reader.End(nil), joined); events != "" {
		all = append(all, events)
	}
	return strings.Join(all, "\n")
}

const usage = `"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":2},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":3},"total_tokens":16}`

const counted = "counts {Input:9 Read:4 Write:2 Write1h:0 Output:7 Reasoning:3 AudioIn:0 AudioOut:0}"

func TestReaderStreams(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ stream, want string }{
		// https://platform.openai.com/docs/api-reference/responses/create, the example of a stream.
		"a text": {
			`{"type":"response.created","response":{"id":"resp_67c9","object":"response","created_at":1741290958,"status":"in_progress","error":null,"output":[]}}
			{"type":"response.in_progress","response":{"id":"resp_67c9","status":"in_progress","output":[]}}
			{"type":"response.output_item.added","output_index":0,"item":{"id":"msg_67c9","type":"message","status":"in_progress","role":"assistant","content":[]}}
			{"type":"response.content_part.added","item_id":"msg_67c9","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}
			{"type":"response.output_text.delta","item_id":"msg_67c9","output_index":0,"content_index":0,"delta":"Hi","logprobs":[],"obfuscation":"x"}
			{"type":"response.output_text.delta","item_id":"msg_67c9","output_index":0,"content_index":0,"delta":" there\n","logprobs":[{"token":"x"}]}
			{"type":"response.output_text.done","item_id":"msg_67c9","output_index":0,"content_index":0,"text":"Hi there\n"}
			{"type":"response.content_part.done","item_id":"msg_67c9","output_index":0,"content_index":0,"part":{"type":"output_text","text":"Hi there\n","annotations":[]}}
			{"type":"response.output_item.done","output_index":0,"item":{"id":"msg_67c9","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hi there\n","annotations":[]}]}}
			{"type":"response.completed","response":{"id":"resp_67c9","status":"completed","output":[{"id":"msg_67c9","type":"message","content":[{"type":"output_text","text":"Hi there\n","annotations":[]}]}],` + usage + `}}`,
			"start\ntext 0: Hi\ntext 0:  there\n [{\"token\":\"x\"}]\n" + counted + "\nstop 0",
		},
		// The same page, a stream with a function; https://platform.openai.com/docs/guides/reasoning for the sealed thought.
		"a thought and calls": {
			`{"type":"response.created","response":{"status":"in_progress"}}
			{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAA0"}}
			{"type":"response.reasoning_summary_part.added","item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}
			{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"h"}
			{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"m"}
			{"type":"response.reasoning_summary_text.done","item_id":"rs_1","output_index":0,"summary_index":0,"text":"hm"}
			{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":1,"delta":"so"}
			{"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"hm"},{"type":"summary_text","text":"so"}],"encrypted_content":"gAAA1"}}
			{"type":"response.output_item.added","output_index":1,"item":{"id":"fc_1","type":"function_call","status":"in_progress","call_id":"call_1","name":"f","arguments":""}}
			{"type":"response.output_item.added","output_index":2,"item":{"id":"fc_2","type":"function_call","status":"in_progress","call_id":"call_2","name":"g","arguments":""}}
			{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":1,"delta":"{\"x\""}
			{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":1,"delta":":1}"}
			{"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":1,"arguments":"{\"x\":1}"}
			{"type":"response.output_item.done","output_index":1,"item":{"id":"fc_1","type":"function_call","call_id":"call_1","name":"f","arguments":"{\"x\":1}"}}
			{"type":"response.output_item.done","output_index":2,"item":{"id":"fc_2","type":"function_call","call_id":"call_2","name":"g","arguments":"{\"y\":2}"}}
			{"type":"response.completed","response":{"status":"completed","output":[],` + usage + `}}`,
			"start\nthought 0: h\nthought 0: m\nthought 0: \n\n\nthought 0: so\nstate 0: o gAAA1 rs_1\ncall 1: call_1 f custom false\ncall 2: call_2 g custom false\n" +
				"input 1: {\"x\"\ninput 1: :1}\ncall 1 ends\ninput 2: {\"y\":2}\ncall 2 ends\n" + counted + "\nstop 3",
		},
		"what only the end has": {
			`{"type":"response.created","response":{"status":"in_progress"}}
			{"type":"response.output_item.done","output_index":0,"item":{"id":"msg_1","type":"message","content":[{"type":"output_text","text":"a"},{"type":"refusal","refusal":"b"}]}}
			{"type":"response.completed","response":{"status":"completed","output":[{"id":"msg_1","type":"message","content":[{"type":"output_text","text":"a"}]},
			{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gA"},{"id":"fc_1","type":"function_call","call_id":"c","name":"f","arguments":"{}"}]}}`,
			"start\ntext 0: a\nrefusal 1: b\nstate 2: o gA rs_1\ncall 3: c f custom false\ninput 3: {}\ncall 3 ends\nstop 4",
		},
		"a custom tool's call": {
			`{"type":"response.output_item.added","output_index":0,"item":{"id":"ctc_1","type":"custom_tool_call","call_id":"c","name":"patch","input":""}}
			{"type":"response.custom_tool_call_input.delta","item_id":"ctc_1","output_index":0,"delta":"a\n\"b"}
			{"type":"response.custom_tool_call_input.delta","item_id":"ctc_1","output_index":0,"delta":"\""}
			{"type":"response.output_item.done","output_index":0,"item":{"id":"ctc_1","type":"custom_tool_call","call_id":"c","name":"patch","input":"a\n\"b\""}}
			{"type":"response.output_item.done","output_index":1,"item":{"id":"ctc_2","type":"custom_tool_call","call_id":"d","name":"patch","input":""}}
			{"type":"response.completed","response":{"status":"completed"}}`,
			"start\ncall 0: c patch custom true\ninput 0: {\"input\":\"\ninput 0: a\\n\\\"b\ninput 0: \\\"\ninput 0: \"}\ncall 0 ends\n" +
				"call 1: d patch custom true\ninput 1: {\"input\":\"\ninput 1: \"}\ncall 1 ends\nstop 3",
		},
		"a thought in the open": {
			`{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}
			{"type":"response.reasoning_text.delta","item_id":"rs_1","output_index":0,"content_index":0,"delta":"hm"}
			{"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}}
			{"type":"response.completed","response":{"status":"completed"}}`,
			"start\nthought 0: hm\nstop 0",
		},
		"an upstream that numbers nothing": {
			`{"type":"response.output_text.delta","delta":"4"}
			{"type":"response.output_text.delta","delta":"2"}
			{"type":"response.completed","response":{"status":"completed","output":[]}}`,
			"start\ntext 0: 4\ntext 0: 2\nstop 0",
		},
		"an upstream whose ids are others each time": {
			`{"type":"response.output_item.added","output_index":0,"item":{"id":"a","type":"function_call","call_id":"c","name":"f","arguments":""}}
			{"type":"response.function_call_arguments.delta","item_id":"b","output_index":0,"delta":"{}"}
			{"type":"response.output_item.done","output_index":0,"item":{"id":"d","type":"function_call","call_id":"c","name":"f","arguments":"{}"}}
			{"type":"response.completed","response":{"status":"completed","output":[{"id":"e","type":"function_call","call_id":"c","name":"f","arguments":"{}"}]}}`,
			"start\ncall 0: c f custom false\ninput 0: {}\ncall 0 ends\nstop 3",
		},
		"cut off": {`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"function_call","call_id":"c","name":"f","arguments":"{"}]}}`, "start\ncall 0: c f custom false\ninput 0: {\ncall 0 ends\nstop 2"},
		"filtered": {
			`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}}`,
			"start\nstop 5",
		},
		"refused": {`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[{"type":"message","content":[{"type":"refusal","refusal":"no"}]}]}}`, "start\nrefusal 0: no\nstop 4"},
		"stopped": {
			`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"steered"}}}`,
			"start\nstop 8",
		},
		"failed": {
			`{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"secret"}}}`,
			"start\nfailed upstream: The upstream failed.",
		},
		"an error": {
			`{"type":"error","code":"rate_limit_exceeded","message":"slow","param":null,"sequence_number":1}`,
			"failed rate_limited: The upstream limits the rate of requests.",
		},
		"a nested error": {
			`{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"too long"}}`,
			"failed invalid: The upstream refused the request.too long",
		},
		"broken off": {
			`{"type":"response.output_text.delta","delta":"4"}`,
			"start\ntext 0: 4\nfailed upstream: The upstream ended its answer early.",
		},
		"nothing": {``, "failed upstream: The upstream ended its answer early."},
		"unknown events": {
			`{"type":"response.new.thing","x":1}
			[DONE]
			{"type":"keepalive"}
			{"type":"response.output_item.added","output_index":0,"item":{"type":"image_generation_call","id":"ig"}}
			{"type":"response.completed","response":{"status":"completed"}}
			{"type":"response.output_text.delta","delta":"late"}`,
			"ping\nstart\nmedia\nstop 0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lines := strings.ReplaceAll(test.stream, "]},\n\t\t\t{\"id\"", "]},{\"id\"")
			if got := stream(lines, false); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

func TestReaderDocuments(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ document, want string }{
		"all there is": {
			`{"id":"resp_1","object":"response","status":"completed","error":null,"incomplete_details":null,"output":[
				{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"hm"},{"type":"summary_text","text":"so"}],"encrypted_content":"gA","status":null},
				{"id":"msg_1","type":"message","content":[{"type":"output_text","text":"a","annotations":[],"logprobs":[{"token":"a"}]},{"type":"output_text","text":"b"}]},
				{"id":"fc_1","type":"function_call","call_id":"c","name":"f","arguments":"{\"x\":1}"},
				{"id":"ctc_1","type":"custom_tool_call","call_id":"d","name":"p","input":"i"}],` + usage + `}`,
			"start\nthought 0: hm\n\nso\nstate 0: o gA rs_1\ntext 1: a [{\"token\":\"a\"}]\ntext 2: b\ncall 3: c f custom false\ninput 3: {\"x\":1}\ncall 3 ends\n" +
				"call 4: d p custom true\ninput 4: {\"input\":\"i\"}\ncall 4 ends\n" + counted + "\nstop 3",
		},
		"failed": {
			`{"status":"failed","error":{"code":"invalid_prompt","message":"bad"},"output":[]}`,
			"start\nfailed invalid: The upstream refused the request.bad",
		},
		"in the background": {`{"status":"queued","output":[]}`, "start\nfailed upstream: The upstream ended its answer early."},
		"an error":          {`{"error":{"code":"server_is_overloaded","message":"x"}}`, "failed overloaded: The upstream is overloaded."},
		"another document":  {`{"choices":[]}`, "failed upstream: The upstream ended its answer early."},
		"no object":         {`[1]`, "failed upstream: The upstream ended its answer early."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reader := responses.NewReader()
			if got := eventLines(reader.End(reader.Document(rawjson.Trim([]byte(test.document)), nil)), true); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// TestReaderReadsWriter: the reader reads the writer's output, streamed or complete, as the same events.
func TestReaderReadsWriter(t *testing.T) {
	t.Parallel()
	ask := form.Ask{Model: "m", Stream: true, ShowThought: true, Custom: map[string]bool{"patch": true}}
	events := answer(form.StopCalls, thought(0, "h"), thought(0, "m"), text(1, "a"), text(1, "b"), text(2, "c\n"),
		form.Event{Kind: form.EventRefusal, Block: 3, Text: rawjson.Text(`"no"`)}, call(4, "c1", "f", `{"x"`, `:1}`),
		call(5, "c2", "patch", `{"input":"`, `i\"j`, `"}`), call(6, "c3", "g", "{}"))
	written1, whole := written(ask, events...), written(form.Ask{Model: "m", ShowThought: true, Custom: ask.Custom}, events...)
	var lines strings.Builder
	for line := range strings.Lines(string(written1)) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			lines.WriteString(data)
		}
	}
	want := "start\nthought 0: hm\ntext 1: ab\ntext 2: c\n\nrefusal 3: no\ncall 4: c1 f custom false\ninput 4: {\"x\":1}\ncall 4 ends\n" +
		"call 5: c2 patch custom true\ninput 5: {\"input\":\"i\\\"j\"}\ncall 5 ends\ncall 6: c3 g custom false\ninput 6: {}\ncall 6 ends\n" +
		"counts {Input:10 Read:4 Write:3 Write1h:0 Output:7 Reasoning:2 AudioIn:0 AudioOut:0}\nstop 4"
	reader := responses.NewReader()
	var streamed []form.Event
	for line := range strings.Lines(lines.String()) {
		streamed = reader.Event(nil, []byte(line), streamed)
	}
	if got := eventLines(streamed, true); got != want {
		t.Errorf("the stream has\n%s\nwant\n%s", got, want)
	}
	if got := eventLines(responses.NewReader().Document(rawjson.Value(whole), nil), true); got != want {
		t.Errorf("the document has\n%s\nwant\n%s", got, want)
	}
}

func TestReaderAllocatesNothing(t *testing.T) {
	reader, events := responses.NewReader(), make([]form.Event, 0, 4)
	delta := []byte(`{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"some text","logprobs":[],"sequence_number":4}`)
	events = reader.Event(nil, []byte(`{"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message"}}`), events)
	events = reader.Event(nil, delta, events[:0])
	if n := testing.AllocsPerRun(100, func() { events = reader.Event(nil, delta, events[:0]) }); n > 0 || len(events) != 1 {
		t.Errorf("%v allocations for %d events", n, len(events))
	}
}

// FuzzAnswer: the reader never panics, and ends each call and answer that it begins.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"c","name":"f"}}` + "\n" +
			`{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{"}` + "\n" +
			`{"type":"response.completed","response":{"output":[{"type":"custom_tool_call","input":"x"}]}}`,
		`{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"a"}]},{"type":"reasoning","content":[{"type":"reasoning_text","text":"b"}]}],"usage":{"input_tokens":1e3}}`,
		`{"type":"response.reasoning_summary_text.delta","delta":"x","summary_index":-1}` + "\n" + `{"type":"error"}`,
		`{"type":"response.output_item.done","item":[]}` + "\n" + `[1]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		reader := responses.NewReader()
		var events []form.Event
		for line := range strings.Lines(string(wire)) {
			if data := []byte(line); rawjson.Valid(data) {
				events = reader.Event(nil, data, events)
			}
		}
		checkEvents(t, reader.End(events))
		if rawjson.Valid(wire) {
			reader = responses.NewReader()
			checkEvents(t, reader.End(reader.Document(rawjson.Trim(wire), nil)))
		}
	})
}

func checkEvents(t *testing.T, events []form.Event) {
	t.Helper()
	ends := 0
	w := responses.NewWriter(form.Ask{Stream: true, Custom: map[string]bool{"f": true}, Echo: echoOf(t, `{}`)})
	var wire []byte
	for i := range events {
		if e := &events[i]; e.Kind == form.EventStop || e.Kind == form.EventFailed {
			ends++
			if e.Fault != nil && e.Fault.Kind == providers.Kind("") {
				t.Error("a fault of no kind")
			}
		} else if ends > 0 {
			t.Errorf("event %d behind the end", e.Kind)
		}
		w.Write(&events[i])
		wire = append(wire, w.Take()...)
	}
	w.Write(&form.Event{Kind: form.EventEnd})
	if wire = append(wire, w.Take()...); ends != 1 {
		t.Errorf("%d ends", ends)
	}
	// Halves of surrogates come together in the end, which the pieces alone do not.
	if len(wire) > 0 && utf8.Valid(wire) && !bytes.Contains(wire, []byte(`\u`)) {
		translatetest.CheckResponses(t, wire)
	}
}
