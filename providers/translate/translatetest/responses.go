package translatetest

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// responseEvent has the members of a response's events: openai-node 7.55, resources/responses/responses.d.ts,
// ResponseStreamEvent.
type responseEvent struct {
	Type           string         `json:"type"`
	SequenceNumber *int           `json:"sequence_number"`
	Response       map[string]any `json:"response"`
	Item           map[string]any `json:"item"`
	ItemID         string         `json:"item_id"`
	OutputIndex    *int           `json:"output_index"`
	ContentIndex   *int           `json:"content_index"`
	SummaryIndex   *int           `json:"summary_index"`
	Part           map[string]any `json:"part"`
	Delta          *string        `json:"delta"`
	Text           *string        `json:"text"`
	Refusal        *string        `json:"refusal"`
	Arguments      *string        `json:"arguments"`
	Input          *string        `json:"input"`
	Logprobs       *[]any         `json:"logprobs"`
}

// responseStream follows the events of a response.
type responseStream struct {
	testing.TB
	number int
	id     any
	ended  string
	done   []any // items
	item   map[string]any
	itemID string
	parts  []any // of the item, done
	part   string
	text   strings.Builder // of the part, or of the call's input
	whole  bool            // the whole part, or the whole input of the call, has followed its pieces
}

// CheckResponses fails the test if OpenAI's SDKs or Codex cannot follow a stream. Events are in order, and their numbers have no gaps.
// Items and parts have a beginning, and their ends equal their pieces. The last response equals the events. An error may follow a failed
// response.
func CheckResponses(tb testing.TB, stream []byte) {
	tb.Helper()
	s := &responseStream{TB: tb}
	for block := range bytes.SplitSeq(bytes.TrimSuffix(stream, []byte("\n\n")), []byte("\n\n")) {
		if bytes.HasPrefix(block, []byte(":")) {
			continue
		}
		name, data, ok := bytes.Cut(block, []byte("\ndata: "))
		var event responseEvent
		if !ok || json.Unmarshal(data, &event) != nil || string(name) != "event: "+event.Type {
			tb.Errorf("no event: %s", block)
			return
		}
		s.take(&event)
	}
	if s.ended == "" {
		tb.Error("the response does not end")
	}
}

func (s *responseStream) take(e *responseEvent) {
	s.Helper()
	if e.SequenceNumber == nil || *e.SequenceNumber != s.number {
		s.Errorf("%s: number %v, want %d", e.Type, e.SequenceNumber, s.number)
	}
	s.number++
	if s.ended != "" {
		if s.ended != "response.failed" || e.Type != "error" {
			s.Errorf("%s behind %s", e.Type, s.ended)
		}
		return
	}
	if e.Response != nil {
		s.response(e)
		return
	}
	if e.OutputIndex == nil || *e.OutputIndex != len(s.done) {
		s.Errorf("%s: output_index %v, want %d", e.Type, e.OutputIndex, len(s.done))
	}
	if e.Item != nil {
		s.wholeItem(e)
		return
	}
	if s.item == nil || e.ItemID != s.itemID {
		s.Errorf("%s: item_id %q, while %q is open", e.Type, e.ItemID, s.itemID)
	}
	if strings.HasPrefix(e.Type, "response.function_call") || strings.HasPrefix(e.Type, "response.custom_tool_call") {
		s.input(e)
	} else {
		s.inPart(e)
	}
}

// response checks the events of the whole response.
func (s *responseStream) response(e *responseEvent) {
	s.Helper()
	for _, name := range []string{
		"id", "access_programs", "created_at", "error", "incomplete_details", "instructions", "metadata", "model", "object", "output",
		"parallel_tool_calls", "temperature", "tool_choice", "tools", "top_p", "status",
	} {
		if _, ok := e.Response[name]; !ok {
			s.Errorf("%s: the response has no %s", e.Type, name)
		}
	}
	output, _ := e.Response["output"].([]any)
	status := strings.TrimPrefix(e.Type, "response.")
	if status == "created" {
		status = "in_progress"
		s.id = e.Response["id"]
	}
	if e.Response["status"] != status || e.Response["id"] != s.id || e.Response["object"] != "response" {
		s.Errorf("%s: status %v, id %v, object %v", e.Type, e.Response["status"], e.Response["id"], e.Response["object"])
	}
	switch {
	case (s.number == 1) != (e.Type == "response.created"), (s.number == 2) != (e.Type == "response.in_progress"):
		s.Errorf("%s is event %d", e.Type, s.number-1)
	case status == "in_progress":
		if len(output) > 0 {
			s.Errorf("%s: there is output", e.Type)
		}
	case status != "completed" && status != "incomplete" && status != "failed":
		s.Errorf("%s is no event", e.Type)
	default:
		s.ended = e.Type
		s.end(e, status, output)
	}
}

func (s *responseStream) end(e *responseEvent, status string, output []any) {
	s.Helper()
	if len(output) != len(s.done) || len(output) > 0 && !reflect.DeepEqual(output, s.done) {
		s.Errorf("%s: output %v, want %v", e.Type, output, s.done)
	}
	if (e.Response["error"] != nil) != (status == "failed") || (e.Response["incomplete_details"] != nil) != (status == "incomplete") {
		s.Errorf("%s: error %v, incomplete_details %v", e.Type, e.Response["error"], e.Response["incomplete_details"])
	}
	if status == "failed" {
		return
	}
	if s.item != nil {
		s.Errorf("%s: item %s is open", e.Type, s.itemID)
	}
	usage, _ := e.Response["usage"].(map[string]any)
	for _, name := range []string{"input_tokens", "input_tokens_details", "output_tokens", "output_tokens_details", "total_tokens"} {
		if usage[name] == nil {
			s.Errorf("%s: usage has no %s", e.Type, name)
		}
	}
}

// wholeItem checks the beginning or the end of an item.
func (s *responseStream) wholeItem(e *responseEvent) {
	s.Helper()
	id, _ := e.Item["id"].(string)
	switch e.Type {
	case "response.output_item.added":
		if s.item != nil || id == "" {
			s.Errorf("item %q begins while %q is open", id, s.itemID)
		}
		for _, done := range s.done {
			if done, _ := done.(map[string]any); done["id"] == id {
				s.Errorf("item %s begins again", id)
			}
		}
		s.item, s.itemID, s.parts, s.whole = e.Item, id, nil, false
		s.text.Reset()
	case "response.output_item.done":
		for _, name := range []string{"id", "type", "call_id", "name", "namespace", "role"} {
			if s.item[name] != e.Item[name] {
				s.Errorf("item %s ends with %s %v, not %v", s.itemID, name, e.Item[name], s.item[name])
			}
		}
		s.endItem(e.Item)
		s.done = append(s.done, e.Item)
		s.item, s.itemID = nil, ""
	default:
		s.Errorf("%s has an item", e.Type)
	}
}

func (s *responseStream) endItem(item map[string]any) {
	s.Helper()
	var parts any
	switch item["type"] {
	case "message":
		parts = item["content"]
		if len(s.parts) == 0 {
			s.Errorf("message %s says nothing", s.itemID)
		}
	case "reasoning":
		parts = item["summary"]
		if sealed, _ := item["encrypted_content"].(string); len(s.parts) == 0 && sealed == "" {
			s.Errorf("thought %s says nothing", s.itemID)
		}
	case "function_call":
		s.wantText("arguments", item["arguments"])
	case "custom_tool_call":
		s.wantText("input", item["input"])
	case "compaction":
		if content, _ := item["encrypted_content"].(string); content == "" {
			s.Errorf("compaction %s is empty", s.itemID)
		}
	case "web_search_call": // whose states have passed
		if action, _ := item["action"].(map[string]any); action["type"] != "search" {
			s.Errorf("search %s has the action %v", s.itemID, item["action"])
		}
	default:
		s.Errorf("item %s is a %v", s.itemID, item["type"])
	}
	if list, _ := parts.([]any); len(list) != len(s.parts) || len(list) > 0 && !reflect.DeepEqual(list, s.parts) {
		s.Errorf("item %s ends with parts %v, want %v", s.itemID, parts, s.parts)
	}
	if s.part != "" {
		s.Errorf("item %s ends while a part is open", s.itemID)
	}
	if call, _ := item["type"].(string); strings.HasSuffix(call, "tool_call") && !s.whole || call == "function_call" && !s.whole {
		s.Errorf("item %s ends before its input", s.itemID)
	}
}

func (s *responseStream) wantText(what string, got any) {
	s.Helper()
	if got != s.text.String() {
		s.Errorf("item %s: %s %v, while the pieces say %q", s.itemID, what, got, s.text.String())
	}
}

// input checks a piece or the end of a call's input.
func (s *responseStream) input(e *responseEvent) {
	s.Helper()
	prefix, text := "response.function_call_arguments.", e.Arguments
	if s.item["type"] == "custom_tool_call" {
		prefix, text = "response.custom_tool_call_input.", e.Input
	}
	switch {
	case e.Type == prefix+"delta" && e.Delta != nil && *e.Delta != "" && !s.whole:
		s.text.WriteString(*e.Delta)
	case e.Type == prefix+"done" && text != nil && !s.whole:
		s.whole = true
		s.wantText("input", *text)
	default:
		s.Errorf("%s in a %v", e.Type, s.item["type"])
	}
}

// inPart checks the events of a part.
func (s *responseStream) inPart(e *responseEvent) {
	s.Helper()
	if strings.HasPrefix(e.Type, "response.web_search_call.") && s.item["type"] == "web_search_call" {
		return
	}
	if e.Type == "response.compaction.compacting" && s.item["type"] == "compaction" {
		return
	}
	if e.Type == "response.output_text.annotation.added" && s.part == "output_text" && !s.whole {
		return
	}
	index, opens, member, text := e.ContentIndex, "response.content_part.", "text", e.Text
	if s.item["type"] == "reasoning" {
		index, opens = e.SummaryIndex, "response.reasoning_summary_part."
	}
	if s.part == "refusal" {
		member, text = "refusal", e.Refusal
	}
	if index == nil || *index != len(s.parts) {
		s.Errorf("%s: index %v, want %d", e.Type, index, len(s.parts))
	}
	words := map[string]string{
		"output_text": "response.output_text.", "refusal": "response.refusal.", "summary_text": "response.reasoning_summary_text.",
	}[s.part]
	switch {
	case e.Type == opens+"added" && s.part == "":
		s.part, _ = e.Part["type"].(string)
		s.text.Reset()
		s.whole = false
	case e.Type == words+"delta" && !s.whole && e.Delta != nil && *e.Delta != "":
		s.text.WriteString(*e.Delta)
	case e.Type == words+"done" && !s.whole && text != nil:
		s.wantText(e.Type, *text)
		s.whole = true
	case e.Type == opens+"done" && s.whole:
		s.wantText(e.Type, e.Part[member])
		s.parts, s.part = append(s.parts, e.Part), ""
	default:
		s.Errorf("%s while part %q is open", e.Type, s.part)
	}
	if strings.HasPrefix(e.Type, "response.output_text.") && e.Logprobs == nil {
		s.Errorf("%s has no logprobs", e.Type)
	}
}
