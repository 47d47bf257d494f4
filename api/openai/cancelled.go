package openai

import (
	"bytes"
	"slices"
	"strings"

	"modelrelay/api/body"
	"modelrelay/providers/rawjson"
)

// itemsOf collects the output of a cancelled response from the events of its stream: the complete items, and each unfinished item with the
// status incomplete and its text so far. The events are those of OpenAI's Responses API.
type itemsOf struct {
	items []*outputItem
	// open maps output_index to the unfinished item.
	open map[int64]*outputItem
}

// outputItem is an item of a response. A complete item has neither parts nor texts.
type outputItem struct {
	members rawjson.Value
	parts   map[string][]outputPart // of the lists content and summary
	texts   texts
	done    bool
}

type outputPart struct {
	members rawjson.Value
	texts   texts
}

// texts are the texts of members to which events append.
type texts map[string]*strings.Builder

// growth is the member to which an event appends: of the item, or of a part of the list. index is the event's member with the index of the
// part.
type growth struct{ member, list, index string }

// grows returns the member to which an event of the type appends; false for any other event.
func grows(kind string) (growth, bool) {
	switch kind {
	case "response.output_text.delta", "response.reasoning_text.delta":
		return growth{"text", "content", "content_index"}, true
	case "response.refusal.delta":
		return growth{"refusal", "content", "content_index"}, true
	case "response.reasoning_summary_text.delta":
		return growth{"text", "summary", "summary_index"}, true
	case "response.function_call_arguments.delta", "response.mcp_call_arguments.delta":
		return growth{member: "arguments"}, true
	case "response.custom_tool_call_input.delta":
		return growth{member: "input"}, true
	case "response.code_interpreter_call_code.delta":
		return growth{member: "code"}, true
	}
	return growth{}, false
}

func (o *itemsOf) event(kind string, data rawjson.Value) {
	index, _ := data.Get("output_index").Int()
	item := o.open[index]
	switch kind {
	case "response.output_item.added", "response.output_item.done":
		if item == nil {
			item = new(outputItem)
			o.items = append(o.items, item)
		}
		if *item = (outputItem{members: bytes.Clone(data.Get("item"))}); kind == "response.output_item.done" {
			item.done = true
			delete(o.open, index)
			return
		}
		item.parts, item.texts = make(map[string][]outputPart), make(texts)
		if o.open == nil {
			o.open = make(map[int64]*outputItem)
		}
		o.open[index] = item
		return
	}
	if item == nil {
		return
	}
	switch kind {
	case "response.content_part.added":
		item.add("content", data)
	case "response.reasoning_summary_part.added":
		item.add("summary", data)
	default:
		to, ok := grows(kind)
		if !ok {
			return
		}
		in := item.texts
		if to.list != "" {
			n, _ := data.Get(to.index).Int()
			if n < 0 || n >= int64(len(item.parts[to.list])) {
				return
			}
			in = item.parts[to.list][n].texts
		}
		in.add(to.member, data.Get("delta").Text())
	}
}

func (i *outputItem) add(list string, data rawjson.Value) {
	i.parts[list] = append(i.parts[list], outputPart{members: bytes.Clone(data.Get("part")), texts: make(texts)})
}

func (t texts) add(member string, delta rawjson.Text) {
	if t[member] == nil {
		t[member] = new(strings.Builder)
	}
	t[member].Write(delta.Decoded())
}

// of returns an object with the texts appended to its members.
func (t texts) of(object rawjson.Value) rawjson.Value {
	var members []body.Member
	for name, text := range t {
		members = append(members, body.Named(name, rawjson.Quote(object.Get(name).Text().String()+text.String())))
	}
	return body.WithMembers(object, members...)
}

func (o *itemsOf) list() []byte {
	items := make([][]byte, 0, len(o.items))
	for _, item := range o.items {
		if item.done {
			items = append(items, item.members)
			continue
		}
		members := []body.Member{body.Named("status", []byte(`"incomplete"`))}
		for list, parts := range item.parts {
			written := make([][]byte, 0, len(parts))
			for _, part := range parts {
				written = append(written, part.texts.of(part.members))
			}
			members = append(members, body.Named(list, arrayOf(written)))
		}
		items = append(items, body.WithMembers(item.texts.of(item.members), members...))
	}
	return arrayOf(items)
}

func arrayOf(values [][]byte) []byte {
	return slices.Concat([]byte("["), bytes.Join(values, []byte(",")), []byte("]"))
}
