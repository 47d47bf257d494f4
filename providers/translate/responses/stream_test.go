package responses_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
	"modelrelay/providers/translate/responses"
	"modelrelay/providers/translate/translatetest"
)

// written writes an answer: all that its writer gives.
func written(ask form.Ask, events ...form.Event) []byte {
	w := responses.NewWriter(ask)
	var all []byte
	for _, event := range events {
		w.Write(&event)
		all = append(all, w.Take()...)
	}
	return all
}

var made = regexp.MustCompile(`"(id|item_id)":"(resp|msg|rs|fc|ctc)_[0-9A-Za-z]{24,26}"|"(created_at|completed_at)":\d+`)

// steady takes what differs from one answer to the next out of it.
func steady(answer []byte) string {
	return made.ReplaceAllStringFunc(string(answer), func(member string) string {
		name, value, _ := strings.Cut(member, ":")
		if prefix, _, ok := strings.Cut(value, "_"); ok {
			return name + ":" + prefix + `_"`
		}
		return name + ":0"
	})
}

// outline is the names of a stream's events and what their pieces say.
func outline(stream []byte) string {
	var lines []string
	for line := range strings.SplitSeq(string(stream), "\n") {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			if strings.HasPrefix(line, ":") {
				lines = append(lines, line)
			}
			continue
		}
		var event struct {
			Type  string
			Delta *string
		}
		if json.Unmarshal([]byte(data), &event) != nil {
			return "no JSON: " + data
		}
		event.Type = strings.TrimPrefix(event.Type, "response.")
		if event.Delta != nil {
			event.Type += " " + *event.Delta
		}
		lines = append(lines, event.Type)
	}
	return strings.Join(lines, "\n")
}

// output is that of a response, without its brackets, and without ids that were made.
func output(t *testing.T, response []byte) string {
	t.Helper()
	var parsed struct{ Output json.RawMessage }
	if err := json.Unmarshal(response, &parsed); err != nil {
		t.Fatalf("%v: %s", err, response)
	}
	text := steady(bytes.Trim(parsed.Output, "[]"))
	return regexp.MustCompile(`"id":"[a-z]+_",?`).ReplaceAllString(text, "")
}

// lastResponse is that of the last event of a stream which has one.
func lastResponse(t *testing.T, stream []byte) []byte {
	t.Helper()
	for _, line := range slices.Backward(strings.Split(string(stream), "\n")) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			var event struct{ Response json.RawMessage }
			if json.Unmarshal([]byte(data), &event) == nil && event.Response != nil {
				return event.Response
			}
		}
	}
	t.Fatal("there is no response")
	return nil
}

func text(block int, s string) form.Event {
	return form.Event{Kind: form.EventText, Block: block, Text: rawjson.Quote(s)}
}

func thought(block int, s string) form.Event {
	return form.Event{Kind: form.EventThought, Block: block, Text: rawjson.Quote(s)}
}

func state(block int, kind form.StateKind, data string) form.Event {
	return form.Event{Kind: form.EventState, Block: block, State: form.State{Kind: kind, Data: []byte(data)}}
}

func call(block int, id, name string, arguments ...string) []form.Event {
	events := []form.Event{{Kind: form.EventCallBegin, Block: block, Call: form.Call{ID: id, Name: name}}}
	for _, piece := range arguments {
		events = append(events, form.Event{Kind: form.EventCallArgs, Block: block, Text: rawjson.Quote(piece)})
	}
	return append(events, form.Event{Kind: form.EventCallEnd, Block: block})
}

// answer makes the events of a whole answer of events or lists of them.
func answer(reason form.StopReason, parts ...any) []form.Event {
	events := []form.Event{{Kind: form.EventStart}}
	for _, part := range parts {
		switch part := part.(type) {
		case form.Event:
			events = append(events, part)
		case []form.Event:
			events = append(events, part...)
		default:
			panic(fmt.Sprintf("no event: %v", part))
		}
	}
	counts := &form.Counts{Input: 10, Read: 4, Write: 3, Output: 7, Reasoning: 2}
	return append(events, form.Event{Kind: form.EventStop, Stop: form.Stop{Reason: reason}},
		form.Event{Kind: form.EventCounts, Counts: counts}, form.Event{Kind: form.EventEnd})
}

func TestWriter(t *testing.T) {
	t.Parallel()
	sealed := func(kind form.StateKind, data string) string {
		return form.State{Kind: kind, Data: []byte(data)}.Envelope()
	}
	const texts = `"role":"assistant","content":[`
	for name, test := range map[string]struct {
		events  []form.Event
		outline string // between response.in_progress and the last event
		output  string
		ends    string
	}{
		"a text": {
			events:  answer(form.StopEnd, text(0, "a\n"), text(0, ""), text(0, "b")),
			outline: "output_item.added\ncontent_part.added\noutput_text.delta a\n\noutput_text.delta b\noutput_text.done\ncontent_part.done\noutput_item.done",
			output:  `{"type":"message",` + texts + `{"type":"output_text","annotations":[],"text":"a\nb","logprobs":[]}],"status":"completed"}`,
		},
		"nothing": {events: answer(form.StopEnd)},
		"texts of two blocks are parts of a message": {
			events:  answer(form.StopSequence, text(0, "a"), text(1, "b")),
			outline: "output_item.added\ncontent_part.added\noutput_text.delta a\noutput_text.done\ncontent_part.done\ncontent_part.added\noutput_text.delta b\noutput_text.done\ncontent_part.done\noutput_item.done",
			output:  `{"type":"message",` + texts + `{"type":"output_text","annotations":[],"text":"a","logprobs":[]},{"type":"output_text","annotations":[],"text":"b","logprobs":[]}],"status":"completed"}`,
		},
		"a refusal": {
			events:  answer(form.StopRefusal, form.Event{Kind: form.EventRefusal, Text: rawjson.Text(`"no"`)}),
			outline: "output_item.added\ncontent_part.added\nrefusal.delta no\nrefusal.done\ncontent_part.done\noutput_item.done",
			output:  `{"type":"message",` + texts + `{"type":"refusal","refusal":"no"}],"status":"incomplete"}`,
			ends:    "incomplete content_filter",
		},
		"cut off": {
			events:  answer(form.StopMaxTokens, text(0, "a")),
			outline: "output_item.added\ncontent_part.added\noutput_text.delta a\noutput_text.done\ncontent_part.done\noutput_item.done",
			output:  `{"type":"message",` + texts + `{"type":"output_text","annotations":[],"text":"a","logprobs":[]}],"status":"incomplete"}`,
			ends:    "incomplete max_output_tokens",
		},
		// QuantumNous/new-api #5229: calls are numbered apart from blocks.
		"calls behind a text": {
			events: answer(form.StopCalls, text(0, "a"), call(1, "c1", "f", `{"x"`, `:1}`), call(2, "c2", "g")),
			outline: "output_item.added\ncontent_part.added\noutput_text.delta a\noutput_text.done\ncontent_part.done\noutput_item.done\n" +
				"output_item.added\nfunction_call_arguments.delta {\"x\"\nfunction_call_arguments.delta :1}\nfunction_call_arguments.done\noutput_item.done\n" +
				"output_item.added\nfunction_call_arguments.delta {}\nfunction_call_arguments.done\noutput_item.done",
			output: `{"type":"message",` + texts + `{"type":"output_text","annotations":[],"text":"a","logprobs":[]}],"status":"completed"},` +
				`{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"x\":1}","status":"completed"},` +
				`{"type":"function_call","call_id":"c2","name":"g","arguments":"{}","status":"completed"}`,
		},
		"a call that is cut off": {
			events:  answer(form.StopMaxTokens, call(0, "c1", "f", `{"x"`)),
			outline: "output_item.added\nfunction_call_arguments.delta {\"x\"\nfunction_call_arguments.done\noutput_item.done",
			output:  `{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"x\"","status":"incomplete"}`,
			ends:    "incomplete max_output_tokens",
		},
		"a call of a custom tool": {
			events:  answer(form.StopCalls, call(0, "c1", "patch", `{"inp`, `ut":"a\n\"b\""}`)),
			outline: "output_item.added\ncustom_tool_call_input.delta a\n\"b\"\ncustom_tool_call_input.done\noutput_item.done",
			output:  `{"type":"custom_tool_call","call_id":"c1","name":"patch","input":"a\n\"b\"","status":"completed"}`,
		},
		"a call of a custom tool that is cut off": {
			events:  answer(form.StopMaxTokens, call(0, "c1", "patch", `{"inp`)),
			outline: "output_item.added\ncustom_tool_call_input.done\noutput_item.done",
			output:  `{"type":"custom_tool_call","call_id":"c1","name":"patch","input":"","status":"incomplete"}`,
			ends:    "incomplete max_output_tokens",
		},
		"a call in a namespace": {
			events:  answer(form.StopCalls, call(0, "c1", "files__read", `{}`)),
			outline: "output_item.added\nfunction_call_arguments.delta {}\nfunction_call_arguments.done\noutput_item.done",
			output:  `{"type":"function_call","call_id":"c1","namespace":"files","name":"read","arguments":"{}","status":"completed"}`,
		},
		// BerriAI/litellm #11302: reasoning lost between chat and responses.
		"a thought": {
			events: answer(form.StopEnd, thought(0, "h"), thought(0, "m"), text(1, "a")),
			outline: "output_item.added\nreasoning_summary_part.added\nreasoning_summary_text.delta h\nreasoning_summary_text.delta m\nreasoning_summary_text.done\nreasoning_summary_part.done\noutput_item.done\n" +
				"output_item.added\ncontent_part.added\noutput_text.delta a\noutput_text.done\ncontent_part.done\noutput_item.done",
			output: `{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"mr1.n."},{"type":"message",` + texts +
				`{"type":"output_text","annotations":[],"text":"a","logprobs":[]}],"status":"completed"}`,
		},
		"a signed thought, one that is only signed, and one that is redacted": {
			events: answer(form.StopEnd, thought(0, "hm"), state(0, form.StateAnthropic, "s0"), state(1, form.StateAnthropic, "s1"),
				state(2, form.StateRedacted, "r")),
			outline: "output_item.added\nreasoning_summary_part.added\nreasoning_summary_text.delta hm\nreasoning_summary_text.done\nreasoning_summary_part.done\noutput_item.done\n" +
				"output_item.added\noutput_item.done\noutput_item.added\noutput_item.done",
			output: `{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"` + sealed('a', "s0") + `"},` +
				`{"type":"reasoning","summary":[],"encrypted_content":"` + sealed('a', "s1") +
				`"},{"type":"reasoning","summary":[],"encrypted_content":"` + sealed('r', "r") + `"}`,
		},
		// Portkey-AI/gateway #1442: the signature of a call.
		"signatures of what follows and of the text before": {
			events: answer(form.StopCalls, state(0, form.StateGemini, "g"), call(0, "c1", "f", "{}"), text(1, "a"),
				state(1, form.StateGeminiBefore, "p")),
			outline: "output_item.added\noutput_item.done\noutput_item.added\nfunction_call_arguments.delta {}\nfunction_call_arguments.done\noutput_item.done\n" +
				"output_item.added\ncontent_part.added\noutput_text.delta a\noutput_text.done\ncontent_part.done\noutput_item.done\noutput_item.added\noutput_item.done",
			output: `{"type":"reasoning","summary":[],"encrypted_content":"` + sealed('g', "g") +
				`"},{"type":"function_call","call_id":"c1","name":"f","arguments":"{}","status":"completed"},` +
				`{"type":"message",` + texts + `{"type":"output_text","annotations":[],"text":"a","logprobs":[]}],"status":"completed"},{"type":"reasoning","summary":[],"encrypted_content":"` + sealed('p', "p") + `"}`,
		},
		// BerriAI/litellm #15315: inputs of parallel calls in turns.
		"calls in turns": {
			events: answer(form.StopCalls, call(0, "c1", "f")[:1], call(1, "c2", "g")[:1], call(0, "", "", `{"x"`)[1:2], call(1, "", "", `{}`)[1:2],
				call(0, "", "", `:1}`)[1:2]),
			outline: "output_item.added\nfunction_call_arguments.delta {\"x\"\nfunction_call_arguments.delta :1}\nfunction_call_arguments.done\noutput_item.done\n" +
				"output_item.added\nfunction_call_arguments.delta {}\nfunction_call_arguments.done\noutput_item.done",
			output: `{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"x\":1}","status":"completed"},{"type":"function_call","call_id":"c2","name":"g","arguments":"{}","status":"completed"}`,
		},
		"signs of life and logprobs": {
			events: answer(form.StopEnd, form.Event{Kind: form.EventPing},
				form.Event{Kind: form.EventText, Text: rawjson.Text(`"a"`), Logprobs: rawjson.Value(`[{"token":"a"}]`)},
				form.Event{Kind: form.EventText, Text: rawjson.Text(`"b"`), Logprobs: rawjson.Value(`[ {"token":"b"} ]`)}),
			outline: ": ping\noutput_item.added\ncontent_part.added\noutput_text.delta a\noutput_text.delta b\noutput_text.done\ncontent_part.done\noutput_item.done",
			output:  `{"type":"message",` + texts + `{"type":"output_text","annotations":[],"text":"ab","logprobs":[{"token":"a"},{"token":"b"}]}],"status":"completed"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ask := form.Ask{
				Model: "claude", Stream: true, ShowThought: true, Echo: echoOf(t, `{"temperature":0.5}`), Custom: map[string]bool{"patch": true},
				Spaces: map[string]form.Space{"files__read": {Namespace: "files", Name: "read"}},
			}
			stream := written(ask, test.events...)
			translatetest.CheckResponses(t, stream)
			ends := test.ends
			if ends == "" {
				ends = "completed "
			}
			status, reason, _ := strings.Cut(ends, " ")
			want := "created\nin_progress\n" + test.outline + "\n" + status
			if test.outline == "" {
				want = "created\nin_progress\n" + status
			}
			if got := outline(stream); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			last := lastResponse(t, stream)
			if got := output(t, last); got != test.output {
				t.Errorf("output\n%s\nwant\n%s", got, test.output)
			}
			if want := fmt.Sprintf(`"incomplete_details":{"reason":%q}`, reason); reason != "" && !strings.Contains(string(last), want) {
				t.Errorf("the response %s has no %s", last, want)
			}
			ask.Stream = false
			if document := written(ask, test.events...); steady(document) != steady(last) {
				t.Errorf("the document\n%s\nis another than the stream's\n%s", steady(document), steady(last))
			}
		})
	}
}

// echoOf is what a call's answer repeats.
func echoOf(t *testing.T, body string) []byte {
	t.Helper()
	_, ask, fault := responses.Read(&providers.Call{Content: providers.Content{Body: []byte(body)}}, new(form.Loss))
	if fault != nil {
		t.Fatal(fault)
	}
	return ask.Echo
}

// The members are those that openai-node 7.55 requires of a Response, with what OpenAI writes next to them.
func TestWriterResponse(t *testing.T) {
	t.Parallel()
	ask := form.Ask{Model: "claude", Echo: echoOf(t,
		`{"model":"claude","instructions":"be","temperature":0.5,"metadata":{"a":"b"},"tools":[{"type":"function","name":"f"}]}`)}
	got := steady(written(ask, answer(form.StopEnd)...))
	want := `{"id":"resp_","object":"response","created_at":0,"status":"completed","completed_at":0,"error":null,"incomplete_details":null,"model":"claude",` +
		`"instructions":"be","max_output_tokens":null,"max_tool_calls":null,"metadata":{"a":"b"},"parallel_tool_calls":true,"prompt_cache_key":null,` +
		`"reasoning":{"effort":null,"summary":null},"safety_identifier":null,"temperature":0.5,"text":{"format":{"type":"text"}},"tool_choice":"auto",` +
		`"tools":[{"type":"function","name":"f"}],"top_logprobs":null,"top_p":null,"truncation":"disabled","user":null,` +
		`"background":false,"previous_response_id":null,"access_programs":null,"store":false,"output":[],` +
		`"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":3},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":17}}`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWriterFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault   providers.Fault
		code    string
		message string
	}{
		"limited": {providers.Fault{Kind: providers.RateLimited, Message: "m"}, "rate_limit_exceeded", "m"},
		"a bad call": {
			providers.Fault{Kind: providers.Invalid, Message: "m", UpstreamMessage: "the image is broken"},
			"invalid_prompt",
			"the image is broken",
		},
		"broken": {providers.Fault{Kind: providers.Upstream, Message: "m"}, "server_error", "m"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// A tool call that broke off gets no output_item.done: Codex would run it.
			events := []form.Event{{Kind: form.EventStart}, text(0, "a")}
			events = append(append(events, call(1, "c", "f", `{"x"`)[:2]...), form.Event{Kind: form.EventFailed, Fault: &test.fault}, text(2, "b"))
			stream := written(form.Ask{Stream: true, Echo: echoOf(t, `{}`)}, events...)
			translatetest.CheckResponses(t, stream)
			if want := fmt.Sprintf(`"error":{"code":%q,"message":%q}`, test.code, test.message); !bytes.Contains(stream, []byte(want)) {
				t.Errorf("%s\nhas no %s", stream, want)
			}
			if strings.Count(outline(stream), "output_item.done") != 1 || !strings.HasSuffix(outline(stream), "\nfailed") {
				t.Errorf("got\n%s", outline(stream))
			}
			if got := written(form.Ask{}, events...); got != nil {
				t.Errorf("a document that failed: %s", got)
			}
			if got := written(form.Ask{Stream: true}, form.Event{Kind: form.EventFailed, Fault: &test.fault}); got != nil {
				t.Errorf("a failure before the start: %s", got)
			}
		})
	}
}

func TestWriterGivesUp(t *testing.T) {
	t.Parallel()
	const mebibyte = 1 << 20
	piece := text(0, strings.Repeat("x", mebibyte))
	w := responses.NewWriter(form.Ask{Stream: true, Echo: echoOf(t, `{}`)})
	w.Write(&form.Event{Kind: form.EventStart})
	first := slices.Clone(w.Take())
	for range 15 {
		w.Write(&piece)
		w.Take()
	}
	if w.Fault() != nil {
		t.Fatalf("gave up early: %v", w.Fault())
	}
	w.Write(&piece)
	if w.Fault() == nil || !bytes.Contains(w.Take(), []byte("event: response.failed\n")) {
		t.Errorf("fault %v", w.Fault())
	}
	w.Write(&piece)
	if got := w.Take(); got != nil || first == nil {
		t.Errorf("more was written: %.100s", got)
	}
}

func TestWriterAllocatesNothing(t *testing.T) {
	for name, event := range map[string]form.Event{"text": text(0, "some text"), "thought": thought(0, "hm"), "ping": {Kind: form.EventPing}} {
		w := responses.NewWriter(form.Ask{Stream: true})
		w.Write(&form.Event{Kind: form.EventStart})
		for range 1000 { // the memory of what is kept grows
			w.Write(&event)
			w.Take()
		}
		if n := testing.AllocsPerRun(10, func() { w.Write(&event); w.Take() }); n > 0 {
			t.Errorf("%v allocations for a %s", n, name)
		}
	}
}

// TestThoughtsThatAreNotShown: a client that asked for no summary sees none, and still brings back what its upstream wants.
func TestThoughtsThatAreNotShown(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		body := written(form.Ask{Model: "m", Stream: stream, Echo: echoOf(t, `{}`)},
			answer(form.StopEnd, thought(0, "h"), thought(0, "m"), text(1, "a"))...)
		if strings.Contains(string(body), "reasoning_summary") || strings.Contains(string(body), `"hm`) {
			t.Errorf("stream %t: the thought is shown: %s", stream, body)
		}
		response := rawjson.Value(body)
		if stream {
			translatetest.CheckResponses(t, body)
			response = lastResponse(t, body)
		}
		items := response.Get("output")
		if items.Len() != 2 {
			t.Fatalf("stream %t: got %s", stream, items)
		}
		call := &providers.Call{Content: providers.Content{Body: []byte(`{"input":` + strings.TrimSuffix(string(items), "]") +
			`,{"role":"user","content":"go on"}]}`)}}
		prompt, _, fault := responses.Read(call, new(form.Loss))
		if fault != nil {
			t.Fatal(fault)
		}
		blocks := prompt.Turns[0].Blocks
		if blocks[0].Kind != form.BlockThought || !blocks[0].Text.Is("hm") || len(blocks[0].State) != 0 {
			t.Errorf("stream %t: got back %+v of %s", stream, blocks[0], items)
		}
	}
}
