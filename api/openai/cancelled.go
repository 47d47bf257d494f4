package openai

import (
	"encoding/json"

	apitasks "modelrelay/api/tasks"
)

// itemsOf collects the output of a cancelled response from the events of its stream: the complete items, and each unfinished item with the
// status incomplete and its text so far. The events are those of OpenAI's Responses API.
type itemsOf struct {
	items []apitasks.Collected
	// open maps output_index to the index of the unfinished item in items.
	open map[int]int
}

type itemEvent struct {
	Type         string
	OutputIndex  int `json:"output_index"`
	ContentIndex int `json:"content_index"`
	SummaryIndex int `json:"summary_index"`
	Item, Part   apitasks.Collected
	Delta        string
}

func (o *itemsOf) event(data []byte) {
	var event itemEvent
	if !apitasks.ReadEvent(data, &event) {
		return
	}
	at, isOpen := o.open[event.OutputIndex]
	switch event.Type {
	case "response.output_item.added", "response.output_item.done":
		if !isOpen {
			at = len(o.items)
			o.items = append(o.items, nil)
		}
		o.items[at] = event.Item
		if event.Type == "response.output_item.done" || event.Item == nil {
			delete(o.open, event.OutputIndex)
			return
		}
		if o.open == nil {
			o.open = make(map[int]int)
		}
		o.open[event.OutputIndex] = at
		return
	}
	if !isOpen {
		return
	}
	switch item := o.items[at]; event.Type {
	case "response.content_part.added":
		apitasks.AppendTo(item, "content", event.Part)
	case "response.reasoning_summary_part.added":
		apitasks.AppendTo(item, "summary", event.Part)
	case "response.output_text.delta", "response.reasoning_text.delta":
		growPart(item, "content", event.ContentIndex, "text", event.Delta)
	case "response.refusal.delta":
		growPart(item, "content", event.ContentIndex, "refusal", event.Delta)
	case "response.reasoning_summary_text.delta":
		growPart(item, "summary", event.SummaryIndex, "text", event.Delta)
	case "response.function_call_arguments.delta", "response.mcp_call_arguments.delta":
		apitasks.Grow(item, "arguments", event.Delta)
	case "response.custom_tool_call_input.delta":
		apitasks.Grow(item, "input", event.Delta)
	case "response.code_interpreter_call_code.delta":
		apitasks.Grow(item, "code", event.Delta)
	}
}

// growPart appends a delta to a text of a part in a list of an item.
func growPart(item apitasks.Collected, list string, index int, member, delta string) {
	parts, _ := item[list].([]any)
	if index < 0 || index >= len(parts) {
		return
	}
	if part, _ := parts[index].(apitasks.Collected); part != nil {
		apitasks.Grow(part, member, delta)
	}
}

func (o *itemsOf) list() ([]byte, error) {
	for _, at := range o.open {
		o.items[at]["status"] = "incomplete"
	}
	return json.Marshal(append([]apitasks.Collected{}, o.items...))
}
