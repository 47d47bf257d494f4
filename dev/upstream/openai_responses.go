package upstream

import (
	"encoding/json"
	"net/http"
)

func (s *server) routeOpenAIResponses(v *vendor, prefix string) {
	s.handle("POST "+prefix+"/responses", operation{v, "responses", parseResponse, answerResponse})
	s.handle("POST "+prefix+"/responses/compact", operation{v, "responses.compact", parseResponse, answerCompact})
}

type responseRequest struct {
	Model              string          `json:"model"`
	Input              json.RawMessage `json:"input"`
	Instructions       *string         `json:"instructions"`
	MaxOutputTokens    *int            `json:"max_output_tokens"`
	Temperature        *float64        `json:"temperature"`
	TopP               *float64        `json:"top_p"`
	Stream             bool            `json:"stream"`
	Tools              json.RawMessage `json:"tools"`
	ToolChoice         json.RawMessage `json:"tool_choice"`
	Reasoning          json.RawMessage `json:"reasoning"`
	PreviousResponseID *string         `json:"previous_response_id"`
	Truncation         *string         `json:"truncation"`
	Metadata           json.RawMessage `json:"metadata"`
	result             bool            // the last item is a tool's output
}

func parseResponse(x *exchange) *problem {
	q := new(responseRequest)
	if p := needJSON(x); p != nil {
		return p
	}
	if p := x.decode(q); p != nil {
		return p
	}
	x.request, x.model = q, q.Model
	x.prompt = textOf(q.Input)
	var items []struct {
		Type    string          `json:"type"`
		Content json.RawMessage `json:"content"`
		Output  json.RawMessage `json:"output"`
	}
	if json.Unmarshal(q.Input, &items) == nil && len(items) > 0 {
		last := items[len(items)-1]
		x.prompt = textOf(last.Content)
		if q.result = last.Type == "function_call_output"; q.result {
			x.prompt = textOf(last.Output)
		}
	}
	if p := checkModel(x); p != nil {
		return p
	}
	if len(q.Input) == 0 && q.PreviousResponseID == nil {
		return missing("input")
	}
	return nil
}

func (q *responseRequest) reply(prompt string) reply {
	asked := question{model: q.Model, text: prompt, all: len(q.Input), result: q.result}
	if q.Instructions != nil {
		asked.all += len(*q.Instructions)
	}
	if q.MaxOutputTokens != nil {
		asked.maxTokens = *q.MaxOutputTokens
	}
	var tools []struct {
		Type string `json:"type"`
		Name string `json:"name"`
	}
	_ = json.Unmarshal(q.Tools, &tools) // absent, or part of a valid body
	for _, tool := range tools {
		if tool.Type == "function" {
			asked.tools = append(asked.tools, tool.Name)
		}
	}
	var forced struct {
		Name string `json:"name"`
	}
	switch {
	case string(q.ToolChoice) == `"none"`:
		asked.tools = nil
	case json.Unmarshal(q.ToolChoice, &forced) == nil && forced.Name != "":
		asked.tools = []string{forced.Name}
	}
	return asked.reply()
}

type responseUsage struct {
	Input        int            `json:"input_tokens"`
	InputDetail  map[string]int `json:"input_tokens_details"`
	Output       int            `json:"output_tokens"`
	OutputDetail map[string]int `json:"output_tokens_details"`
	Total        int            `json:"total_tokens"`
}

func newResponseUsage(r *reply) *responseUsage {
	return &responseUsage{
		Input: r.input, InputDetail: map[string]int{"cached_tokens": 0},
		Output: r.output, OutputDetail: map[string]int{"reasoning_tokens": 0}, Total: r.input + r.output,
	}
}

// response is the vendor's object; null stands where nothing is set.
type response struct {
	ID                 string            `json:"id"`
	Object             string            `json:"object"`
	CreatedAt          int64             `json:"created_at"`
	Status             string            `json:"status"`
	Background         bool              `json:"background"`
	CompletedAt        *int64            `json:"completed_at"`
	Error              *fault            `json:"error"`
	IncompleteDetails  map[string]string `json:"incomplete_details"`
	Instructions       *string           `json:"instructions"`
	MaxOutputTokens    *int              `json:"max_output_tokens"`
	Model              string            `json:"model"`
	Output             []any             `json:"output"`
	ParallelToolCalls  bool              `json:"parallel_tool_calls"`
	PreviousResponseID *string           `json:"previous_response_id"`
	Reasoning          any               `json:"reasoning"`
	ServiceTier        string            `json:"service_tier"`
	Store              bool              `json:"store"`
	Temperature        float64           `json:"temperature"`
	Text               any               `json:"text"`
	ToolChoice         any               `json:"tool_choice"`
	Tools              any               `json:"tools"`
	TopP               float64           `json:"top_p"`
	Truncation         string            `json:"truncation"`
	Usage              *responseUsage    `json:"usage"`
	User               *string           `json:"user"`
	Metadata           any               `json:"metadata"`
}

func (q *responseRequest) response() response {
	return response{
		ID: "resp_" + randomID(48), Object: "response", CreatedAt: unixNow(), Status: "in_progress", Instructions: q.Instructions,
		MaxOutputTokens: q.MaxOutputTokens, Model: q.Model, Output: []any{}, ParallelToolCalls: true, PreviousResponseID: q.PreviousResponseID,
		Reasoning: given(q.Reasoning, map[string]any{"effort": nil, "summary": nil}), ServiceTier: "default", Store: true,
		Temperature: number(q.Temperature), TopP: number(q.TopP), Text: map[string]any{"format": map[string]string{"type": "text"}, "verbosity": "medium"},
		ToolChoice: given(q.ToolChoice, "auto"), Tools: given(q.Tools, []any{}), Truncation: word(q.Truncation, "disabled"), Metadata: given(q.Metadata, map[string]any{}),
	}
}

// given returns the caller's value, or the vendor's default.
func given(raw json.RawMessage, otherwise any) any {
	if len(raw) == 0 || string(raw) == "null" {
		return otherwise
	}
	return raw
}

func number(f *float64) float64 {
	if f == nil {
		return 1
	}
	return *f
}

func word(s *string, otherwise string) string {
	if s == nil {
		return otherwise
	}
	return *s
}

type responseMessage struct {
	ID      string         `json:"id"`
	Type    string         `json:"type"`
	Status  string         `json:"status"`
	Role    string         `json:"role"`
	Content []responseText `json:"content"`
}

type responseText struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Annotations []any  `json:"annotations"`
	Logprobs    []any  `json:"logprobs"`
}

func outputText(text string) responseText {
	return responseText{Type: "output_text", Text: text, Annotations: []any{}, Logprobs: []any{}}
}

type responseCall struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Status    string `json:"status"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// items are the output of a reply, completed.
func (r *reply) items() []any {
	if len(r.calls) == 0 {
		return []any{responseMessage{"msg_" + randomID(48), "message", "completed", "assistant", []responseText{outputText(r.text)}}}
	}
	items := make([]any, 0, len(r.calls))
	for _, call := range r.calls {
		items = append(items, responseCall{"fc_" + randomID(48), "function_call", "completed", "call_" + call.id, call.name, call.arguments})
	}
	return items
}

func (o *response) complete(r *reply, items []any) {
	now := unixNow()
	o.Output, o.Usage, o.Status = items, newResponseUsage(r), "completed"
	if r.cut {
		o.Status, o.IncompleteDetails = "incomplete", map[string]string{"reason": "max_output_tokens"}
		return
	}
	o.CompletedAt = &now
}

func answerResponse(x *exchange) {
	q := requestOf[responseRequest](x)
	x.accept()
	openAIHeaders(x)
	limitHeaders(x)
	r := q.reply(x.prompt)
	o := q.response()
	items := r.items()
	if q.Stream {
		x.stream()
		w := responseStream{x: x, ok: true}
		w.run(o, &r, items)
		return
	}
	o.complete(&r, items)
	x.json(http.StatusOK, o)
}

// responseStream numbers the events of one stream. After the client went, sending does nothing.
type responseStream struct {
	x        *exchange
	sequence int
	ok       bool
}

func (w *responseStream) send(name string, fields map[string]any) {
	if !w.ok {
		return
	}
	fields["type"], fields["sequence_number"] = name, w.sequence
	w.sequence++
	w.ok = w.x.event(name, fields)
}

func (w *responseStream) run(o response, r *reply, items []any) {
	w.send("response.created", map[string]any{"response": o})
	w.send("response.in_progress", map[string]any{"response": o})
	for i, item := range items {
		switch item := item.(type) {
		case responseMessage:
			w.message(i, item)
		case responseCall:
			w.call(i, item)
		}
	}
	o.complete(r, items)
	w.send("response."+o.Status, map[string]any{"response": o})
}

func (w *responseStream) message(index int, item responseMessage) {
	text := item.Content[0].Text
	empty := item
	empty.Status, empty.Content = "in_progress", []responseText{}
	w.send("response.output_item.added", map[string]any{"output_index": index, "item": empty})
	part := func(fields map[string]any) map[string]any {
		fields["item_id"], fields["output_index"], fields["content_index"] = item.ID, index, 0
		return fields
	}
	w.send("response.content_part.added", part(map[string]any{"part": outputText("")}))
	for piece, rest := nextPiece(text); piece != "" && w.ok; piece, rest = nextPiece(rest) {
		w.ok = w.x.pause()
		w.send("response.output_text.delta", part(map[string]any{"delta": piece, "logprobs": []any{}}))
	}
	w.send("response.output_text.done", part(map[string]any{"text": text, "logprobs": []any{}}))
	w.send("response.content_part.done", part(map[string]any{"part": item.Content[0]}))
	w.send("response.output_item.done", map[string]any{"output_index": index, "item": item})
}

func (w *responseStream) call(index int, item responseCall) {
	empty := item
	empty.Status, empty.Arguments = "in_progress", ""
	w.send("response.output_item.added", map[string]any{"output_index": index, "item": empty})
	for _, piece := range argumentPieces(item.Arguments) {
		w.ok = w.ok && w.x.pause()
		w.send("response.function_call_arguments.delta", map[string]any{"item_id": item.ID, "output_index": index, "delta": piece})
	}
	w.send("response.function_call_arguments.done", map[string]any{"item_id": item.ID, "output_index": index, "name": item.Name, "arguments": item.Arguments})
	w.send("response.output_item.done", map[string]any{"output_index": index, "item": item})
}

// answerCompact returns the conversation folded into one opaque item.
func answerCompact(x *exchange) {
	q := requestOf[responseRequest](x)
	x.accept()
	r := q.reply(x.prompt)
	openAIHeaders(x)
	x.json(http.StatusOK, map[string]any{
		"id": "resp_" + randomID(48), "object": "response.compaction", "created_at": unixNow(), "usage": newResponseUsage(&r),
		"output": []any{map[string]string{
			"id": "cmp_" + randomID(48), "type": "compaction", "encrypted_content": "gAAAAA" + digestOf(q.Input),
		}},
	})
}
