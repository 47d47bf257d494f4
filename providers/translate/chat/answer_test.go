package chat_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/chat"
	"modelrelay/providers/translate/form"
	"modelrelay/providers/translate/translatetest"
)

// stream gives each event that a stream's lines of data say.
func stream(reader form.AnswerReader, sse string, give func(form.Event)) {
	events := make([]form.Event, 0, 8)
	for line := range strings.Lines(sse) {
		if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data:"); ok {
			events = reader.Event(nil, []byte(strings.TrimSpace(data)), events[:0])
			for _, event := range events {
				give(event)
			}
		}
	}
	for _, event := range reader.End(events[:0]) {
		give(event)
	}
}

// whole gives each event of a document.
func whole(reader form.AnswerReader, document string, give func(form.Event)) {
	for _, event := range reader.Document(rawjson.Trim([]byte(document)), nil) {
		give(event)
	}
}

// into writes events, and returns what was sent.
func into(writer form.AnswerWriter, events func(give func(form.Event))) string {
	var sent strings.Builder
	failed := false
	events(func(event form.Event) {
		writer.Write(&event)
		failed = failed || event.Kind == form.EventFailed
		sent.Write(writer.Take())
	})
	if !failed {
		writer.Write(&form.Event{Kind: form.EventEnd})
		sent.Write(writer.Take())
	}
	return sent.String()
}

var kinds = map[form.EventKind]string{
	form.EventStart: "start", form.EventText: "text", form.EventThought: "thought", form.EventRefusal: "refusal", form.EventState: "state",
	form.EventCallBegin: "begin", form.EventCallArgs: "args", form.EventCallEnd: "end", form.EventMedia: "media", form.EventStop: "stop",
	form.EventCounts: "counts", form.EventPing: "ping", form.EventFailed: "failed",
}

// say shows an event in a line.
func say(event form.Event) string {
	line := fmt.Sprintf("%s %d.%d", kinds[event.Kind], event.Choice, event.Block)
	switch event.Kind {
	case form.EventText, form.EventThought, form.EventRefusal, form.EventCallArgs:
		line += " " + string([]byte(event.Text))
		if event.Logprobs != nil {
			line += " " + string(event.Logprobs)
		}
	case form.EventState:
		line += fmt.Sprintf(" %c %s", event.State.Kind, event.State.Data)
	case form.EventCallBegin:
		line += " " + event.Call.ID + " " + event.Call.Name
	case form.EventStop:
		line += fmt.Sprint(" ", event.Stop.Reason)
	case form.EventCounts:
		line += fmt.Sprintf(" %+v", *event.Counts)
	case form.EventFailed:
		line += fmt.Sprintf(" %s, said %q", event.Fault, event.Fault.UpstreamMessage)
	}
	return regexp.MustCompile(`call_[0-9A-Za-z]{22}`).ReplaceAllString(line, "call_NEW")
}

// TestAnswer reads the answers of testdata/answer. The client receives the same from a document as from its stream.
func TestAnswer(t *testing.T) {
	t.Parallel()
	golden(t, "answer", func(t *testing.T, sections map[string]string) string {
		t.Helper()
		var out strings.Builder
		read := func(give func(form.Event)) { stream(chat.NewReader(), sections["stream"], give) }
		if sections["stream"] == "" {
			read = func(give func(form.Event)) { whole(chat.NewReader(), sections["document"], give) }
		}
		read(func(event form.Event) { out.WriteString(say(event) + "\n") })
		if strings.Contains(out.String(), "failed") {
			return out.String()
		}

		streamed := into(chat.NewWriter(form.Ask{Model: "public", Stream: true, WantsUsage: true}), read)
		document := into(chat.NewWriter(form.Ask{Model: "public"}), read)
		same(t, "streamed and whole", foldStream(t, streamed), foldDocument(t, document))
		if sections["document"] != "" {
			fromDocument := into(chat.NewWriter(form.Ask{Model: "public"}),
				func(give func(form.Event)) { whole(chat.NewReader(), sections["document"], give) })
			same(t, "of stream and document", foldDocument(t, document), foldDocument(t, fromDocument))
		}
		again := into(chat.NewWriter(form.Ask{Model: "public"}), func(give func(form.Event)) { stream(chat.NewReader(), streamed, give) })
		same(t, "read again from the stream", foldDocument(t, again), foldDocument(t, document))
		again = into(chat.NewWriter(form.Ask{Model: "public"}), func(give func(form.Event)) { whole(chat.NewReader(), document, give) })
		same(t, "read again from the document", foldDocument(t, again), foldDocument(t, document))
		return out.String()
	})
}

// answered is an answer without what is new in each.
type answered struct {
	Choices map[int]*translatetest.ChatAnswer
	Usage   any
}

func foldStream(t *testing.T, sent string) answered {
	t.Helper()
	choices, raw := translatetest.FoldChat(t, []byte(sent))
	var usage any
	if err := json.Unmarshal(raw, &usage); err != nil {
		t.Fatal(err)
	}
	return masked(choices, usage)
}

func foldDocument(t *testing.T, document string) answered {
	t.Helper()
	var completion struct {
		ID, Object, Model string
		Created           int64
		Choices           []struct {
			Index   int
			Message struct {
				Role             string
				Content, Refusal *string
				Thought          string `json:"reasoning_content"`
				ToolCalls        []struct {
					ID, Type string
					Function struct{ Name, Arguments string }
					Extra    struct {
						Google struct {
							Signature string `json:"thought_signature"`
						}
					} `json:"extra_content"`
				} `json:"tool_calls"`
			}
			Logprobs     struct{ Content []json.RawMessage }
			FinishReason string `json:"finish_reason"`
		}
		Usage any
	}
	if err := json.Unmarshal([]byte(document), &completion); err != nil {
		t.Fatalf("%s: %v", document, err)
	}
	if !regexp.MustCompile(`^chatcmpl-[0-9A-Za-z]{24}$`).MatchString(completion.ID) || completion.Object != "chat.completion" ||
		completion.Created == 0 || completion.Model != "public" {
		t.Errorf("the head of %s", document)
	}
	choices := make(map[int]*translatetest.ChatAnswer)
	for _, choice := range completion.Choices {
		answer := &translatetest.ChatAnswer{Thought: choice.Message.Thought, Finish: choice.FinishReason, Logprobs: choice.Logprobs.Content}
		if choice.Message.Content != nil {
			answer.Content = *choice.Message.Content
		}
		if choice.Message.Refusal != nil {
			answer.Refusal = *choice.Message.Refusal
		}
		for _, call := range choice.Message.ToolCalls {
			answer.Calls = append(answer.Calls, translatetest.ChatCall{
				ID: call.ID, Name: call.Function.Name, Input: call.Function.Arguments, Signature: call.Extra.Google.Signature,
			})
		}
		if choice.Message.Role != "assistant" || (choice.Message.Content == nil) != (answer.Content == "" &&
			(len(answer.Calls) > 0 || answer.Refusal != "")) {
			t.Errorf("role or content of %s", document)
		}
		choices[choice.Index] = answer
	}
	return masked(choices, completion.Usage)
}

func masked(choices map[int]*translatetest.ChatAnswer, usage any) answered {
	for _, answer := range choices {
		for i := range answer.Calls {
			if len(answer.Calls[i].ID) == len("call_")+22 {
				answer.Calls[i].ID = "call_NEW"
			}
		}
	}
	return answered{choices, usage}
}

func same(t *testing.T, what string, a, b answered) {
	t.Helper()
	if !reflect.DeepEqual(a, b) {
		left, _ := json.Marshal(a)
		right, _ := json.Marshal(b)
		t.Errorf("%s: %s\nand %s", what, left, right)
	}
}

// TestWriter writes events of other dialects' answers; see testdata/write.
func TestWriter(t *testing.T) {
	t.Parallel()
	golden(t, "write", func(t *testing.T, sections map[string]string) string {
		t.Helper()
		var ask form.Ask
		if err := json.Unmarshal([]byte(sections["ask"]), &ask); err != nil {
			t.Fatal(err)
		}
		events := func(give func(form.Event)) {
			for line := range strings.Lines(sections["events"]) {
				give(event(t, strings.TrimSpace(line)))
			}
		}
		sent := into(chat.NewWriter(ask), events)
		if ask.Stream && !strings.Contains(sections["events"], "failed") {
			translatetest.CheckChat(t, []byte(sent))
		} else if !ask.Stream && sent != "" && !json.Valid([]byte(sent)) {
			t.Errorf("no JSON: %s", sent)
		}
		sent = regexp.MustCompile(`chatcmpl-[0-9A-Za-z]{24}`).ReplaceAllString(sent, "ID")
		return regexp.MustCompile(`"created":\d+`).ReplaceAllString(sent, `"created":0`)
	})
}

// event reads what say shows.
func event(t *testing.T, line string) form.Event {
	t.Helper()
	word, rest, _ := strings.Cut(line, " ")
	var e form.Event
	for kind, name := range kinds {
		if name == word {
			e.Kind = kind
		}
	}
	place, rest, _ := strings.Cut(rest, " ")
	if n, err := fmt.Sscanf(place, "%d.%d", &e.Choice, &e.Block); n != 2 || err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	first, second, _ := strings.Cut(rest, " ")
	switch e.Kind {
	case form.EventText, form.EventThought, form.EventRefusal, form.EventCallArgs:
		e.Text = rawjson.Text(rest)
	case form.EventState:
		e.State = form.State{Kind: form.StateKind(first[0]), Data: []byte(second)}
	case form.EventCallBegin:
		e.Call = form.Call{ID: first, Name: second}
	case form.EventStop:
		if _, err := fmt.Sscan(rest, &e.Stop.Reason); err != nil {
			t.Fatal(err)
		}
	case form.EventCounts:
		e.Counts = new(form.Counts)
		if err := json.Unmarshal([]byte(rest), e.Counts); err != nil {
			t.Fatal(err)
		}
	case form.EventFailed:
		e.Fault = form.BrokenOff()
	}
	return e
}

// TestStreamAllocations relays pieces of text without allocating anything.
func TestStreamAllocations(t *testing.T) {
	reader, writer := chat.NewReader(), chat.NewWriter(form.Ask{Model: "public", Stream: true})
	data := []byte(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"hello"},"logprobs":null,"finish_reason":null}],"usage":null}`)
	var events []form.Event
	relay := func() {
		events = reader.Event(nil, data, events[:0])
		for i := range events {
			writer.Write(&events[i])
		}
		writer.Take()
	}
	relay()
	if n := testing.AllocsPerRun(100, relay); n > 0 {
		t.Errorf("%g allocations for a piece of text", n)
	}
}

func BenchmarkStream(b *testing.B) {
	reader, writer := chat.NewReader(), chat.NewWriter(form.Ask{Model: "public", Stream: true})
	data := []byte(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"hello"},"logprobs":null,"finish_reason":null}],"usage":null}`)
	var events []form.Event
	b.ReportAllocs()
	for b.Loop() {
		events = reader.Event(nil, data, events[:0])
		for i := range events {
			writer.Write(&events[i])
		}
		writer.Take()
	}
}

// TestWriterGivesUp holds no more than its bound of calls that are given at their end.
func TestWriterGivesUp(t *testing.T) {
	t.Parallel()
	writer := chat.NewWriter(form.Ask{Stream: true, Custom: map[string]bool{"sh": true}})
	writer.Write(&form.Event{Kind: form.EventStart})
	writer.Write(&form.Event{Kind: form.EventCallBegin, Call: form.Call{ID: "1", Name: "sh"}})
	piece := rawjson.Quote(strings.Repeat("x", 1<<20))
	for range 17 {
		writer.Write(&form.Event{Kind: form.EventCallArgs, Text: piece})
	}
	fault := writer.Fault()
	if fault == nil || fault.Kind != providers.Upstream {
		t.Fatalf("got %v", fault)
	}
	writer.Take()
	if writer.Write(&form.Event{Kind: form.EventEnd}); writer.Take() != nil {
		t.Error("something follows")
	}
}

// FuzzAnswer reads any stream and any document. Nothing panics, each answer ends once, and a stream of ours comes of it.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		"", "data: [DONE]", "data: {}\ndata: [DONE]", `{"choices":[{"message":{"content":"a"}}]}`, `{"error":{"message":"m"}}`,
		`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"1","function":{"name":"f","arguments":"{"}}]}}]}` + "\n" +
			`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]},"finish_reason":"stop"}]}`,
		`data: {"choices":[1,{"index":-1},{"index":1e9,"delta":{"content":[{"text":"a"}]}}]}`,
		`data: {"choices":[{"delta":{"function_call":{"name":"f","arguments":{}},"audio":{"id":"1"}}}]}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, input string) {
		for line := range strings.Lines(input) {
			if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data:"); ok && strings.TrimSpace(data) != "[DONE]" &&
				!rawjson.Valid([]byte(data)) {
				return
			}
		}
		check := func(read func(give func(form.Event))) {
			ends, failed := 0, false
			read(func(event form.Event) {
				if failed {
					t.Errorf("%s behind a failure", say(event))
				}
				failed = event.Kind == form.EventFailed
				if failed || event.Kind == form.EventStop {
					ends++
				}
			})
			if ends == 0 {
				t.Error("the answer does not end")
			}
			for line := range strings.Lines(into(chat.NewWriter(form.Ask{Stream: true}), read)) {
				if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok && data != "[DONE]" && !rawjson.Valid([]byte(data)) {
					t.Errorf("no JSON: %s", data)
				}
			}
			if sent := into(chat.NewWriter(form.Ask{}), read); sent != "" && !rawjson.Valid([]byte(sent)) {
				t.Errorf("no JSON: %s", sent)
			}
		}
		check(func(give func(form.Event)) { stream(chat.NewReader(), input, give) })
		if rawjson.Valid([]byte(input)) {
			check(func(give func(form.Event)) { whole(chat.NewReader(), input, give) })
		}
	})
}
