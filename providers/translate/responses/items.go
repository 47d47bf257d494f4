package responses

import (
	"strings"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

func (r *reading) readInput(input rawjson.Value) {
	if text := input.Text(); text != nil {
		at := form.Path{}.Field("input")
		r.say(form.User, at, form.Block{Kind: form.BlockText, Text: text, At: at})
	}
	for i, item := range input.Items() {
		r.readItem(item, form.In("input", i))
	}
}

// say appends blocks to the conversation. Consecutive items of the assistant are one turn.
func (r *reading) say(role form.Role, at form.Path, blocks ...form.Block) {
	p := r.prompt
	if role == form.System && len(p.Turns) == 0 {
		p.System = append(p.System, blocks...)
		return
	}
	if last := len(p.Turns) - 1; role == form.Assistant && last >= 0 && p.Turns[last].Role == role {
		p.Turns[last].Blocks = append(p.Turns[last].Blocks, blocks...)
		return
	}
	p.Turns = append(p.Turns, form.Turn{Role: role, Blocks: blocks, At: at})
}

// inputItem has the members of an item, read in one pass because an item may be long.
type inputItem struct {
	kind, role, id, callID, namespace, name rawjson.Text
	content, arguments, input, output       rawjson.Value
	summary, sealed, tools                  rawjson.Value
	// unknown are the names of members that no dialect has.
	unknown []rawjson.Text
	at      form.Path
}

func itemOf(value rawjson.Value, at form.Path) inputItem {
	item := inputItem{at: at}
	for name, value := range value.Members() {
		switch string(name.Inner()) {
		case "type":
			item.kind = value.Text()
		case "role":
			item.role = value.Text()
		case "id":
			item.id = value.Text()
		case "call_id":
			item.callID = value.Text()
		case "namespace":
			item.namespace = value.Text()
		case "name":
			item.name = value.Text()
		case "content":
			item.content = value
		case "arguments":
			item.arguments = value
		case "input":
			item.input = value
		case "output":
			item.output = value
		case "summary":
			item.summary = value
		case "encrypted_content":
			item.sealed = value
		case "tools":
			item.tools = value
		case "status": // has no effect on a model
		default:
			if value.IsSet() {
				item.unknown = append(item.unknown, name)
			}
		}
	}
	return item
}

func (r *reading) readItem(value rawjson.Value, at form.Path) {
	item := itemOf(value, at)
	switch {
	case item.kind.Is("compaction_trigger"):
		r.compacts = true
		return
	case item.kind.Is("compaction"), item.kind.Is("compaction_summary"):
		r.readCompaction(&item)
		return
	}
	// the next items have the results
	if item.kind.Is("web_search_call") || item.kind.Is("tool_search_call") || item.kind.Is("tool_search_output") {
		return
	}
	if item.kind != nil && !isKnown(item.kind) {
		if text := builtInText(value); !text.Blank() {
			r.say(form.Assistant, at, form.Block{Kind: form.BlockText, Text: text, At: at})
		} else {
			r.mustTool(at.Field("type").String(), strings.TrimSuffix(item.kind.String(), "_call"))
		}
		return
	}
	for _, name := range item.unknown {
		r.loss.Drop(at.Field(name.String()).Name())
	}
	switch {
	case item.kind == nil, item.kind.Is("message"):
		r.readMessage(&item)
	case item.kind.Is("function_call"), item.kind.Is("custom_tool_call"):
		r.readCall(&item)
	case item.kind.Is("reasoning"):
		r.readThought(&item)
	case item.kind.Is("item_reference"): // that of a stored item is replaced before
		r.Refuse(at.String(), notStored)
	case item.kind.Is("additional_tools"):
		for i, tool := range item.tools.Items() {
			r.readTool(tool, at.Item("tools", i), "")
		}
	default:
		r.readResult(&item)
	}
}

// isKnown reports whether items of a kind are not made by the vendor's own tools.
func isKnown(kind rawjson.Text) bool {
	switch string(kind.Inner()) {
	case "message", "function_call", "custom_tool_call", "function_call_output", "custom_tool_call_output", "reasoning", "item_reference",
		"additional_tools":
		return true
	}
	return false
}

// builtInText returns the text of an item of one of the vendor's own tools: its output, its program or its results.
func builtInText(item rawjson.Value) rawjson.Text {
	for _, name := range [...]string{"output", "code"} {
		if text := item.Get(name).Text(); !text.Blank() {
			return text
		}
	}
	var found []rawjson.Text
	for _, result := range item.Get("results").Items() {
		if text := result.Get("text").Text(); !text.Blank() {
			found = append(found, text)
		}
	}
	return rawjson.Join("\n", found...)
}

func (r *reading) readMessage(item *inputItem) {
	role := form.User
	switch speaker := item.role; {
	case speaker.Is("assistant"):
		role = form.Assistant
	case speaker.Is("system"), speaker.Is("developer"):
		role = form.System
	case !speaker.Is("user"):
		r.Refuse(item.at.Field("role").String(), "The role of a message must be user, assistant, system or developer.")
		return
	}
	r.say(role, item.at, r.readContent(item.content, item.at, "content")...)
}

// readContent reads the parts of a message, or of a result.
func (r *reading) readContent(content rawjson.Value, at form.Path, name string) []form.Block {
	if text := content.Text(); text != nil {
		return []form.Block{{Kind: form.BlockText, Text: text, At: at.Field(name)}}
	}
	blocks := make([]form.Block, 0, 1)
	for i, part := range content.Items() {
		if block, ok := r.readPart(part, at.Item(name, i)); ok {
			blocks = append(blocks, block)
		}
	}
	return blocks
}

func (r *reading) readCall(item *inputItem) {
	space := form.Space{Namespace: item.namespace.String(), Name: item.name.String()}
	call := form.Call{ID: item.callID.String(), Name: space.Flat(), Custom: item.kind.Is("custom_tool_call")}
	if call.Custom {
		call.Input = form.CustomInput(item.input.Text())
	} else {
		call.Input = form.ReadArguments(item.arguments.Text())
	}
	r.say(form.Assistant, item.at, form.Block{Kind: form.BlockCall, Call: call, At: item.at})
}

func (r *reading) readResult(item *inputItem) {
	result := &form.Result{ID: item.callID.String(), Blocks: r.readContent(item.output, item.at, "output")}
	r.say(form.User, item.at, form.Block{Kind: form.BlockResult, Result: result, At: item.at})
}

// readThought reads a reasoning item. It belongs to the next item, so it begins no turn unless it is the first item.
func (r *reading) readThought(item *inputItem) {
	texts := thoughtTexts(item.summary)
	if texts == nil {
		texts = thoughtTexts(item.content)
	}
	thought := form.Block{Kind: form.BlockThought, Text: rawjson.Join("\n\n", texts...), At: item.at}
	sealed := item.sealed.Text()
	state, ours := form.OpenEnvelope(sealed.Inner())
	switch {
	case !ours:
		if !sealed.Empty() && !form.Enveloped(sealed.Inner()) {
			thought.State = []form.State{{Kind: form.StateOpenAI, Data: sealed.Inner(), ID: item.id.String()}}
		} else if hidden := form.Hidden(sealed.Inner()); thought.Text == nil {
			thought.Text = hidden
		}
	case state.Kind == form.StateAnthropic, state.Kind == form.StateRedacted:
		thought = form.Block{Kind: form.BlockState, State: []form.State{state}, At: item.at}
	default:
		if thought.Text != nil {
			r.say(form.Assistant, item.at, thought)
		}
		thought = form.Block{Kind: form.BlockState, State: []form.State{state}, At: item.at}
	}
	if thought.Text != nil || thought.State != nil {
		r.say(form.Assistant, item.at, thought)
	}
}

func thoughtTexts(parts rawjson.Value) (texts []rawjson.Text) {
	for _, part := range parts.Items() {
		if text := part.Get("text").Text(); !text.Blank() {
			texts = append(texts, text)
		}
	}
	return texts
}
