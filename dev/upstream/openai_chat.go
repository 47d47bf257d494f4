package upstream

import (
	"encoding/json"
	"fmt"
	"net/http"
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
	talk []chatMessage
}

type chatMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

func parseChat(x *exchange, judge judge) *problem {
	if p := needJSON(x); p != nil {
		return p
	}
	q := new(chatRequest)
	if p := x.decode(q); p != nil {
		return p
	}
	x.request, x.model = q, q.Model
	q.talk = make([]chatMessage, len(q.Messages))
	for i, raw := range q.Messages {
		if json.Unmarshal(raw, &q.talk[i]) != nil {
			return invalidType(fmt.Sprintf("messages[%d]", i), "an object", raw)
		}
	}
	if n := len(q.talk); n > 0 {
		x.prompt = textOf(q.talk[n-1].Content)
	}
	if p := checkModel(x); p != nil {
		return p
	}
	switch {
	case q.Messages == nil:
		return missing("messages")
	case len(q.Messages) == 0:
		return &problem{
			status: http.StatusBadRequest, kind: kindInvalid, code: "empty_array", param: "messages",
			message: "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
		}
	case q.StreamOptions != nil && !q.Stream:
		return &problem{
			status: http.StatusBadRequest, kind: kindInvalid, param: "stream_options",
			message: "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
		}
	}
	return judge.ask(x)
}

func (q *chatRequest) question(prompt string) question {
	last := &q.talk[len(q.talk)-1]
	out := question{
		model: q.Model, text: prompt, result: last.Role == "tool", maxTokens: max(q.MaxTokens, q.MaxCompletionTokens),
		json: q.ResponseFormat.Type == "json_object" || q.ResponseFormat.Type == "json_schema",
	}
	begins := 0
	for i := range q.talk {
		out.all += len(q.talk[i].Content)
		switch role := q.talk[i].Role; {
		case role == "assistant":
			begins = i + 1
		case role == "tool" && i > 0 && q.talk[i-1].Role != "tool":
			out.rounds++
		}
	}
	out.turn = q.Messages[begins:]
	for i := range q.Tools {
		if q.Tools[i].Function.Name != "" {
			out.tools = append(out.tools, q.Tools[i].Function.Name)
		}
	}
	out.offered = out.tools
	var word string
	var forced struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	switch {
	case json.Unmarshal(q.ToolChoice, &word) == nil && word == "none":
		out.tools = nil
	case json.Unmarshal(q.ToolChoice, &forced) == nil && forced.Function.Name != "":
		out.tools = []string{forced.Function.Name}
	}
	return out
}

func answerChat(x *exchange) {
	q := requestOf[chatRequest](x)
	x.accept()
	r := x.reply(q.question(x.prompt))
	r.name("call_")
	choices := 1
	if q.N != nil && *q.N > 1 {
		choices = min(*q.N, 128)
	}
	if x.breaks(&r, q.Stream, func(p problem) { x.send(append(append([]byte("data: "), openAIError(p)...), "\n\n"...)) }) {
		return
	}
	openAIHeaders(x)
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
	b = append(b, randomID(28)...)
	b = appendQuoted(append(b, `","object":`...), object)
	b = appendInt(append(b, `,"created":`...), int(unixNow()))
	b = appendQuoted(append(b, `,"model":`...), model)
	return append(b, `,"service_tier":"default","system_fingerprint":"fp_2f406b9113",`...)
}

// chatWriter writes one answer by hand: load tests ask for thousands a second.
type chatWriter struct {
	x       *exchange
	q       *chatRequest
	reply   reply
	choices int
	head    []byte
}

func (c *chatWriter) finish() string {
	switch c.reply.stop {
	case stopEnd, stopSequence, stopRefusal:
		return "stop"
	case stopCalls:
		return "tool_calls"
	case stopMaxTokens, stopContextFull, stopPaused:
		return "length"
	case stopFiltered:
		return "content_filter"
	}
	return c.reply.stop
}

func (c *chatWriter) appendUsage(b []byte) []byte {
	u := c.reply.usage
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
	b := append(c.x.space.out[:0], c.head...)
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
	c.x.space.out = b
	if c.x.written(http.StatusOK, "application/json", b) {
		c.served()
	}
}

func (c *chatWriter) appendMessage(b []byte) []byte {
	b = append(b, `{"role":"assistant","content":`...)
	if c.reply.has(partText) {
		b = appendQuoted(b, c.reply.of(partText))
	} else {
		b = append(b, "null"...)
	}
	if thoughts := c.reply.of(partThought); thoughts != "" {
		b = appendQuoted(append(b, `,"reasoning_content":`...), thoughts)
	}
	for n, call := range c.reply.calls() {
		if n == 0 {
			b = append(b, `,"tool_calls":[`...)
		} else {
			b = append(b[:len(b)-1], ',')
		}
		b = append(appendChatCall(b, call, call.arguments), "}]"...)
	}
	b = appendNullable(append(b, `,"refusal":`...), c.reply.of(partRefusal))
	return append(b, `,"annotations":[]}`...)
}

func (c *chatWriter) served() { c.x.served(c.reply.usage.Input, c.reply.usage.Output*c.choices) }

// appendChatCall leaves the call open for its closing brace.
func appendChatCall(b []byte, call toolCall, arguments string) []byte {
	b = appendQuoted(append(b, `{"id":`...), call.id)
	b = appendQuoted(append(b, `,"type":"function","function":{"name":`...), call.name)
	return append(appendQuoted(append(b, `,"arguments":`...), arguments), '}')
}

func (c *chatWriter) stream() {
	c.x.stream()
	for i := range c.choices {
		if !c.delta(i, func(b []byte) []byte { return append(b, `{"role":"assistant","content":"","refusal":null}`...) }, "") || !c.content(i) {
			return
		}
	}
	b := c.x.space.out[:0]
	if c.q.StreamOptions != nil && c.q.StreamOptions.IncludeUsage {
		b = append(append(b, "data: "...), c.head...)
		b = append(c.appendUsage(append(b, `"choices":[],`...)), "}\n\n"...)
	}
	if c.x.sent(append(b, "data: [DONE]\n\n"...)) {
		c.served()
	}
}

// content streams one choice: its text by the word, its calls by a few bytes of their arguments.
func (c *chatWriter) content(choice int) bool {
	calls := 0
	for i := range c.reply.parts {
		p := &c.reply.parts[i]
		key := ""
		switch p.kind {
		case partText:
			key = `{"content":`
		case partThought:
			key = `{"reasoning_content":`
		case partRefusal:
			key = `{"refusal":`
		case partCall:
			if !c.open(choice, calls, p.call) || !c.reply.interleave && !c.arguments(choice, calls, p.call) {
				return false
			}
			calls++
			continue
		case partRedacted:
			continue
		}
		if !p.pieces(func(piece string) bool {
			return c.x.pause() && c.delta(choice, func(b []byte) []byte { return append(appendQuoted(append(b, key...), piece), '}') }, "")
		}) {
			return false
		}
	}
	if c.reply.interleave && !c.interleaved(choice) {
		return false
	}
	return c.x.pause() && c.delta(choice, func(b []byte) []byte { return append(b, "{}"...) }, c.finish())
}

// open begins the nth call.
func (c *chatWriter) open(choice, n int, call toolCall) bool {
	return c.x.pause() && c.delta(choice, func(b []byte) []byte {
		b = append(b, `{"tool_calls":[`...)
		b = appendInt(append(appendChatCall(b, call, ""), `,"index":`...), n)
		return append(b, "}]}"...)
	}, "")
}

func (c *chatWriter) arguments(choice, n int, call toolCall) bool {
	for _, piece := range argumentPieces(call.arguments) {
		if !c.argument(choice, n, piece) {
			return false
		}
	}
	return true
}

func (c *chatWriter) argument(choice, n int, piece string) bool {
	return c.x.pause() && c.delta(choice, func(b []byte) []byte {
		b = appendInt(append(b, `{"tool_calls":[{"index":`...), n)
		return append(appendQuoted(append(b, `,"function":{"arguments":`...), piece), "}}]}"...)
	}, "")
}

// interleaved sends a piece of each call's arguments in turn, until all are sent.
func (c *chatWriter) interleaved(choice int) bool {
	calls := c.reply.calls()
	left := make([][]string, len(calls))
	for i := range calls {
		left[i] = argumentPieces(calls[i].arguments)
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
	b := append(append(c.x.space.out[:0], "data: "...), c.head...)
	b = appendInt(append(b, `"choices":[{"index":`...), choice)
	b = appendDelta(append(b, `,"delta":`...))
	b = appendNullable(append(b, `,"logprobs":null,"finish_reason":`...), finish)
	b = append(b, "}]"...)
	if c.q.StreamOptions != nil && c.q.StreamOptions.IncludeUsage {
		b = append(b, `,"usage":null`...)
	}
	b = append(b, "}\n\n"...)
	c.x.space.out = b
	return c.x.send(b)
}
