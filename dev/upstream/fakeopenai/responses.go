package fakeopenai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"modelrelay/dev/upstream/chat"
	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/jobs"
	"modelrelay/dev/upstream/strict/openai"
)

func (s *api) routeResponses(v *fake.Vendor, prefix string, judge judge) {
	parse := func(x *fake.Exchange) *fake.Problem { return s.parseResponse(x, judge) }
	s.Handle("POST "+prefix+"/responses", fake.Operation{Vendor: v, Name: "responses", Parse: parse, Answer: s.answerResponse})
	s.Handle("POST "+prefix+"/responses/input_tokens",
		fake.Operation{Vendor: v, Name: "responses.input_tokens", Parse: parse, Answer: answerInputTokens})
	s.routeStored(v, prefix)
	s.Handle("POST "+prefix+"/responses/compact",
		fake.Operation{
			Vendor: v, Name: "responses.compact", Parse: func(x *fake.Exchange) *fake.Problem { return s.parseResponse(x, nil) },
			Answer: answerCompact,
		})
}

type responseRequest struct {
	Model              string          `json:"model"`
	Input              json.RawMessage `json:"input"`
	Instructions       *string         `json:"instructions"`
	MaxOutputTokens    *int            `json:"max_output_tokens"`
	Temperature        *float64        `json:"temperature"`
	TopP               *float64        `json:"top_p"`
	Stream             bool            `json:"stream"`
	Background         bool            `json:"background"`
	Store              *bool           `json:"store"`
	Include            []string        `json:"include"`
	Tools              json.RawMessage `json:"tools"`
	ToolChoice         json.RawMessage `json:"tool_choice"`
	ParallelToolCalls  *bool           `json:"parallel_tool_calls"`
	Reasoning          json.RawMessage `json:"reasoning"`
	Text               json.RawMessage `json:"text"`
	PreviousResponseID *string         `json:"previous_response_id"`
	Truncation         *string         `json:"truncation"`
	Metadata           json.RawMessage `json:"metadata"`
	items              []json.RawMessage
	talk               []responseItem
	before             int // rounds of tool results in the response before
}

// responseItem is what the fake reads of an item of the input.
type responseItem struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Output  json.RawMessage `json:"output"`
}

func (s *api) parseResponse(x *fake.Exchange, judge judge) *fake.Problem {
	q := new(responseRequest)
	if p := NeedJSON(x); p != nil {
		return p
	}
	if p := x.Decode(q); p != nil {
		return p
	}
	x.Request, x.Model = q, q.Model
	x.Prompt = chat.TextOf(q.Input)
	if json.Unmarshal(q.Input, &q.items) != nil && len(q.Input) > 0 {
		q.items = []json.RawMessage{q.Input} // a text
	}
	q.talk = make([]responseItem, len(q.items))
	for i, raw := range q.items {
		if raw[0] != '"' && json.Unmarshal(raw, &q.talk[i]) != nil {
			return invalidType(fmt.Sprintf("input[%d]", i), "an object", raw)
		}
	}
	if n := len(q.talk); n > 0 && len(q.talk[n-1].Content)+len(q.talk[n-1].Output) > 0 {
		x.Prompt = chat.TextOf(q.talk[n-1].Content) + chat.TextOf(q.talk[n-1].Output)
	}
	if p := CheckModel(x); p != nil {
		return p
	}
	if len(q.Input) == 0 && q.PreviousResponseID == nil {
		return Missing("input")
	}
	if p := judge.ask(x); p != nil {
		return p
	}
	if q.Background && !q.stores() {
		return &fake.Problem{
			Status: http.StatusBadRequest, Kind: fake.Invalid, Param: "background",
			Message: "Background mode requires 'store' to be enabled.",
		}
	}
	if q.PreviousResponseID != nil {
		before, _ := s.responses.response(*q.PreviousResponseID)
		q.before = before.rounds
	}
	return nil
}

func (q *responseRequest) question(prompt string) chat.Question {
	asked := chat.Question{Model: q.Model, Text: prompt, All: len(q.Input), Thinks: q.thinks(), Rounds: q.before}
	if q.Instructions != nil {
		asked.All += len(*q.Instructions)
	}
	if q.MaxOutputTokens != nil {
		asked.MaxTokens = *q.MaxOutputTokens
	}
	begins, before := 0, ""
	for i, item := range q.talk {
		switch {
		case item.Role == "assistant", item.Type == "function_call", item.Type == "reasoning", item.Type == "web_search_call":
			begins = i + 1
		case item.Type == "function_call_output" && before != item.Type:
			asked.Rounds++
		}
		before = item.Type
	}
	asked.Result = before == "function_call_output"
	asked.Turn = q.items[begins:]
	var tools []struct {
		Type string `json:"type"`
		Name string `json:"name"`
	}
	_ = json.Unmarshal(q.Tools, &tools) // absent, or part of a valid body
	for _, tool := range tools {
		if tool.Type == "function" {
			asked.Tools = append(asked.Tools, tool.Name)
		}
		asked.Searches = asked.Searches || chat.SearchTool(tool.Type)
	}
	asked.Offered = asked.Tools
	var format struct {
		Format struct {
			Type string `json:"type"`
		} `json:"format"`
	}
	_ = json.Unmarshal(q.Text, &format) // absent, or part of a valid body
	asked.JSON = strings.HasPrefix(format.Format.Type, "json")
	var forced struct {
		Name string `json:"name"`
	}
	switch {
	case string(q.ToolChoice) == `"none"`:
		asked.Tools, asked.Searches = nil, false
	case json.Unmarshal(q.ToolChoice, &forced) == nil && forced.Name != "":
		asked.Tools = []string{forced.Name}
	}
	return asked
}

// thinks reports whether the plain answer begins with reasoning: where the call speaks of it.
func (q *responseRequest) thinks() bool {
	var reasoning struct {
		Effort string `json:"effort"`
	}
	return len(q.Reasoning) > 0 && json.Unmarshal(q.Reasoning, &reasoning) == nil && reasoning.Effort != "none" &&
		openai.ModelOf(q.Model).Reasons()
}

type responseUsage struct {
	Input        int            `json:"input_tokens"`
	InputDetail  map[string]int `json:"input_tokens_details"`
	Output       int            `json:"output_tokens"`
	OutputDetail map[string]int `json:"output_tokens_details"`
	Total        int            `json:"total_tokens"`
}

func newResponseUsage(r *chat.Reply) *responseUsage {
	u := r.Usage
	return &responseUsage{
		Input: u.Input, InputDetail: map[string]int{"cached_tokens": u.Read, "cache_write_tokens": u.Write},
		Output: u.Output, OutputDetail: map[string]int{"reasoning_tokens": u.Reasoning}, Total: u.Input + u.Output,
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
	Error              *jobs.Fault       `json:"error"`
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
		ID: "resp_" + fake.RandomID(48), Object: "response", CreatedAt: unixNow(), Status: "in_progress", Instructions: q.Instructions,
		MaxOutputTokens: q.MaxOutputTokens, Model: q.Model, Output: []any{}, ParallelToolCalls: q.ParallelToolCalls == nil ||
			*q.ParallelToolCalls,
		PreviousResponseID: q.PreviousResponseID, Reasoning: given(q.Reasoning, map[string]any{"effort": nil, "summary": nil}),
		ServiceTier: "default",
		Store:       q.stores(), Temperature: number(q.Temperature), TopP: number(q.TopP),
		Text:       given(q.Text, map[string]any{"format": map[string]string{"type": "text"}, "verbosity": "medium"}),
		ToolChoice: given(q.ToolChoice, "auto"), Tools: given(q.Tools, []any{}), Truncation: word(q.Truncation, "disabled"),
		Metadata: given(q.Metadata, map[string]any{}),
	}
}

func (q *responseRequest) stores() bool { return q.Store == nil || *q.Store }

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

func (s *api) answerResponse(x *fake.Exchange) {
	q := fake.RequestOf[responseRequest](x)
	x.Accept()
	asked := q.question(x.Prompt)
	r := chat.ReplyTo(x, asked)
	r.Name("call_")
	o, items := q.response(), q.output(&r)
	if q.stores() {
		s.responses.keep(q, asked.Rounds, o.ID, items)
	}
	if q.Background {
		s.answerBackground(x, q, o, &r, items)
		return
	}
	if q.stores() {
		s.keepMade(x, q, o, &r, items)
	}
	w := responseStream{x: x, ok: true}
	if chat.Breaks(x, &r, q.Stream, func(p fake.Problem) { w.fail(&o, p) }) {
		return
	}
	setHeaders(x)
	limitHeaders(x)
	if q.Stream {
		x.Stream()
		if w.run(&o, &r, items); w.ok {
			x.Served(r.Made())
		}
		return
	}
	o.complete(&r, items)
	if x.JSON(http.StatusOK, o) {
		x.Served(r.Made())
	}
}

// answerCompact returns the conversation folded into one opaque item.
func answerCompact(x *fake.Exchange) {
	q := fake.RequestOf[responseRequest](x)
	x.Accept()
	asked := q.question(x.Prompt)
	r := asked.Reply()
	setHeaders(x)
	x.JSON(http.StatusOK, map[string]any{
		"id": "resp_" + fake.RandomID(48), "object": "response.compaction", "created_at": unixNow(), "usage": newResponseUsage(&r),
		"output": []any{map[string]string{
			"id": "cmp_" + fake.RandomID(48), "type": "compaction", "encrypted_content": "gAAAAA" + fake.DigestOf(q.Input),
		}},
	})
}

// answerInputTokens counts what a response would read.
func answerInputTokens(x *fake.Exchange) {
	q := fake.RequestOf[responseRequest](x)
	x.Accept()
	asked := q.question(x.Prompt)
	setHeaders(x)
	x.JSON(http.StatusOK, map[string]any{"object": "response.input_tokens", "input_tokens": chat.Tokens(asked.All)})
}
