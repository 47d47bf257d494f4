package fakeopenai

import (
	"encoding/json"
	"fmt"
	"net/http"

	"modelrelay/dev/upstream/chat"
	"modelrelay/dev/upstream/fake"
)

// chatRequest is what the fake reads of a chat completion.
type chatRequest struct {
	Model         string            `json:"model"`
	Messages      []json.RawMessage `json:"messages"`
	Stream        bool              `json:"stream"`
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	N                   *int            `json:"n"`
	MaxTokens           int             `json:"max_tokens"`
	MaxCompletionTokens int             `json:"max_completion_tokens"`
	ToolChoice          json.RawMessage `json:"tool_choice"`
	Tools               []struct {
		Type     string `json:"type"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
	ResponseFormat struct {
		Type string `json:"type"`
	} `json:"response_format"`
	WebSearch json.RawMessage `json:"web_search_options"`
	talk      []chatMessage
}

type chatMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

func parseChat(x *fake.Exchange, judge judge) *fake.Problem {
	if p := NeedJSON(x); p != nil {
		return p
	}
	q := new(chatRequest)
	if p := x.Decode(q); p != nil {
		return p
	}
	x.Request, x.Model = q, q.Model
	q.talk = make([]chatMessage, len(q.Messages))
	for i, raw := range q.Messages {
		if json.Unmarshal(raw, &q.talk[i]) != nil {
			return invalidType(fmt.Sprintf("messages[%d]", i), "an object", raw)
		}
	}
	if n := len(q.talk); n > 0 {
		x.Prompt = chat.TextOf(q.talk[n-1].Content)
	}
	if p := CheckModel(x); p != nil {
		return p
	}
	switch {
	case q.Messages == nil:
		return Missing("messages")
	case len(q.Messages) == 0:
		return &fake.Problem{
			Status: http.StatusBadRequest, Kind: fake.Invalid, Code: "empty_array", Param: "messages",
			Message: "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
		}
	case q.StreamOptions != nil && !q.Stream:
		return &fake.Problem{
			Status: http.StatusBadRequest, Kind: fake.Invalid, Param: "stream_options",
			Message: "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
		}
	}
	return judge.ask(x)
}

func (q *chatRequest) question(prompt string) chat.Question {
	last := &q.talk[len(q.talk)-1]
	out := chat.Question{
		Model: q.Model, Text: prompt, Result: last.Role == "tool", MaxTokens: max(q.MaxTokens, q.MaxCompletionTokens),
		JSON: q.ResponseFormat.Type == "json_object" || q.ResponseFormat.Type == "json_schema", Searches: len(q.WebSearch) > 0,
	}
	begins := 0
	for i := range q.talk {
		out.All += len(q.talk[i].Content)
		switch role := q.talk[i].Role; {
		case role == "assistant":
			begins = i + 1
		case role == "tool" && i > 0 && q.talk[i-1].Role != "tool":
			out.Rounds++
		}
	}
	out.Turn = q.Messages[begins:]
	for i := range q.Tools {
		if q.Tools[i].Function.Name != "" {
			out.Tools = append(out.Tools, q.Tools[i].Function.Name)
		}
	}
	out.Offered = out.Tools
	var word string
	var forced struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	switch {
	case json.Unmarshal(q.ToolChoice, &word) == nil && word == "none":
		out.Tools = nil
	case json.Unmarshal(q.ToolChoice, &forced) == nil && forced.Function.Name != "":
		out.Tools = []string{forced.Function.Name}
	}
	return out
}

func answerChat(x *fake.Exchange) {
	q := fake.RequestOf[chatRequest](x)
	x.Accept()
	r := chat.ReplyTo(x, q.question(x.Prompt))
	r.Name("call_")
	choices := 1
	if q.N != nil && *q.N > 1 {
		choices = min(*q.N, 128)
	}
	if chat.Breaks(x, &r, q.Stream, func(p fake.Problem) { x.Send(append(append([]byte("data: "), errorBody(p)...), "\n\n"...)) }) {
		return
	}
	setHeaders(x)
	limitHeaders(x)
	c := chatWriter{x: x, q: q, reply: r, choices: choices, head: chatHead(q.Model, q.Stream)}
	if q.Stream {
		c.stream()
		return
	}
	c.whole()
}

// chatHead is how every chunk of an answer, or the answer itself, begins.
func chatHead(model string, stream bool) []byte {
	object := "chat.completion"
	if stream {
		object = "chat.completion.chunk"
	}
	b := make([]byte, 0, 256)
	b = append(b, `{"id":"chatcmpl-`...)
	b = append(b, fake.RandomID(28)...)
	b = fake.AppendQuoted(append(b, `","object":`...), object)
	b = appendInt(append(b, `,"created":`...), int(unixNow()))
	b = fake.AppendQuoted(append(b, `,"model":`...), model)
	return append(b, `,"service_tier":"default","system_fingerprint":"fp_2f406b9113",`...)
}

// chatWriter writes one answer by hand: load tests ask for thousands a second.
type chatWriter struct {
	x       *fake.Exchange
	q       *chatRequest
	reply   chat.Reply
	choices int
	head    []byte
}

func (c *chatWriter) finish() string {
	switch c.reply.Stop {
	case chat.StopEnd, chat.StopSequence, chat.StopRefusal:
		return "stop"
	case chat.StopCalls:
		return "tool_calls"
	case chat.StopMaxTokens, chat.StopContextFull, chat.StopPaused:
		return "length"
	case chat.StopFiltered:
		return "content_filter"
	}
	return c.reply.Stop
}

func (c *chatWriter) appendUsage(b []byte) []byte {
	u := c.reply.Usage
	output := u.Output * c.choices
	b = appendInt(append(b, `"usage":{"prompt_tokens":`...), u.Input)
	b = appendInt(append(b, `,"completion_tokens":`...), output)
	b = appendInt(append(b, `,"total_tokens":`...), u.Input+output)
	b = appendInt(append(b, `,"prompt_tokens_details":{"cached_tokens":`...), u.Read)
	b = appendInt(append(b, `,"cache_write_tokens":`...), u.Write)
	b = appendInt(append(b, `,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":`...), u.Reasoning*c.choices)
	return append(b, `,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`...)
}

func (c *chatWriter) whole() {
	b := append(c.x.Space.Out[:0], c.head...)
	b = append(b, `"choices":[`...)
	for i := range c.choices {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendInt(append(b, `{"index":`...), i)
		b = append(c.appendMessage(append(b, `,"message":`...)), `,"logprobs":null,"finish_reason":"`...)
		b = append(append(b, c.finish()...), `"}`...)
	}
	b = append(c.appendUsage(append(b, `],`...)), "}\n"...)
	c.x.Space.Out = b
	if c.x.Bytes(http.StatusOK, "application/json", b) {
		c.served()
	}
}

func (c *chatWriter) appendMessage(b []byte) []byte {
	b = append(b, `{"role":"assistant","content":`...)
	if c.reply.Has(chat.Text) {
		b = fake.AppendQuoted(b, c.reply.Of(chat.Text))
	} else {
		b = append(b, "null"...)
	}
	if thoughts := c.reply.Of(chat.Thought); thoughts != "" {
		b = fake.AppendQuoted(append(b, `,"reasoning_content":`...), thoughts)
	}
	for n, call := range c.reply.Calls() {
		if n == 0 {
			b = append(b, `,"tool_calls":[`...)
		} else {
			b = append(b[:len(b)-1], ',')
		}
		b = append(appendChatCall(b, call, call.Arguments), "}]"...)
	}
	b = appendNullable(append(b, `,"refusal":`...), c.reply.Of(chat.Refusal))
	return append(c.appendAnnotations(append(b, `,"annotations":`...)), '}')
}

// appendAnnotations appends the pages that the text cites; its searches are in no place of the answer.
func (c *chatWriter) appendAnnotations(b []byte) []byte {
	b = append(b, '[')
	for i, cite := range c.reply.Cites() {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendInt(append(b, `{"type":"url_citation","url_citation":{"start_index":`...), cite.From)
		b = appendInt(append(b, `,"end_index":`...), cite.To)
		b = fake.AppendQuoted(append(b, `,"title":`...), cite.Title)
		b = append(fake.AppendQuoted(append(b, `,"url":`...), cite.URL), "}}"...)
	}
	return append(b, ']')
}

func (c *chatWriter) served() {
	made := c.reply.Made()
	made.Output *= c.choices
	c.x.Served(made)
}

// appendChatCall leaves the call open for its closing brace.
func appendChatCall(b []byte, call chat.ToolCall, arguments string) []byte {
	b = fake.AppendQuoted(append(b, `{"id":`...), call.ID)
	b = fake.AppendQuoted(append(b, `,"type":"function","function":{"name":`...), call.Name)
	return append(fake.AppendQuoted(append(b, `,"arguments":`...), arguments), '}')
}

func (c *chatWriter) stream() {
	c.x.Stream()
	for i := range c.choices {
		if !c.delta(i, func(b []byte) []byte { return append(b, `{"role":"assistant","content":"","refusal":null}`...) }, "") || !c.content(i) {
			return
		}
	}
	b := c.x.Space.Out[:0]
	if c.q.StreamOptions != nil && c.q.StreamOptions.IncludeUsage {
		b = append(append(b, "data: "...), c.head...)
		b = append(c.appendUsage(append(b, `"choices":[],`...)), "}\n\n"...)
	}
	if c.x.Sent(append(b, "data: [DONE]\n\n"...)) {
		c.served()
	}
}

// content streams one choice: its text by the word, its calls by a few bytes of their arguments.
func (c *chatWriter) content(choice int) bool {
	calls := 0
	for i := range c.reply.Parts {
		p := &c.reply.Parts[i]
		key := ""
		switch p.Kind {
		case chat.Text:
			key = `{"content":`
		case chat.Thought:
			key = `{"reasoning_content":`
		case chat.Refusal:
			key = `{"refusal":`
		case chat.Call:
			if !c.open(choice, calls, p.Call) || !c.reply.Interleave && !c.arguments(choice, calls, p.Call) {
				return false
			}
			calls++
			continue
		case chat.Redacted, chat.Search:
			continue
		}
		if !p.Pieces(func(piece string) bool {
			return c.x.Pause() && c.delta(choice, func(b []byte) []byte { return append(fake.AppendQuoted(append(b, key...), piece), '}') }, "")
		}) {
			return false
		}
	}
	if c.reply.Interleave && !c.interleaved(choice) {
		return false
	}
	if len(c.reply.Cites()) > 0 && !c.delta(choice,
		func(b []byte) []byte { return append(c.appendAnnotations(append(b, `{"annotations":`...)), '}') }, "") {
		return false
	}
	return c.x.Pause() && c.delta(choice, func(b []byte) []byte { return append(b, "{}"...) }, c.finish())
}

// open begins the nth call.
func (c *chatWriter) open(choice, n int, call chat.ToolCall) bool {
	return c.x.Pause() && c.delta(choice, func(b []byte) []byte {
		b = append(b, `{"tool_calls":[`...)
		b = appendInt(append(appendChatCall(b, call, ""), `,"index":`...), n)
		return append(b, "}]}"...)
	}, "")
}

func (c *chatWriter) arguments(choice, n int, call chat.ToolCall) bool {
	for _, piece := range chat.ArgumentPieces(call.Arguments) {
		if !c.argument(choice, n, piece) {
			return false
		}
	}
	return true
}

func (c *chatWriter) argument(choice, n int, piece string) bool {
	return c.x.Pause() && c.delta(choice, func(b []byte) []byte {
		b = appendInt(append(b, `{"tool_calls":[{"index":`...), n)
		return append(fake.AppendQuoted(append(b, `,"function":{"arguments":`...), piece), "}}]}"...)
	}, "")
}

// interleaved sends a piece of each call's arguments in turn, until all are sent.
func (c *chatWriter) interleaved(choice int) bool {
	calls := c.reply.Calls()
	left := make([][]string, len(calls))
	for i := range calls {
		left[i] = chat.ArgumentPieces(calls[i].Arguments)
	}
	for more := true; more; {
		more = false
		for n := range left {
			if len(left[n]) == 0 {
				continue
			}
			if !c.argument(choice, n, left[n][0]) {
				return false
			}
			left[n], more = left[n][1:], true
		}
	}
	return true
}

// delta sends one chunk.
func (c *chatWriter) delta(choice int, appendDelta func([]byte) []byte, finish string) bool {
	b := append(append(c.x.Space.Out[:0], "data: "...), c.head...)
	b = appendInt(append(b, `"choices":[{"index":`...), choice)
	b = appendDelta(append(b, `,"delta":`...))
	b = appendNullable(append(b, `,"logprobs":null,"finish_reason":`...), finish)
	b = append(b, "}]"...)
	if c.q.StreamOptions != nil && c.q.StreamOptions.IncludeUsage {
		b = append(b, `,"usage":null`...)
	}
	b = append(b, "}\n\n"...)
	c.x.Space.Out = b
	return c.x.Send(b)
}
