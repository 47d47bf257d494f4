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

// inputItem is an item of the input.
type inputItem struct {
	rawjson.Object

	at form.Path
}

func (r *reading) readItem(value rawjson.Value, at form.Path) {
	item := inputItem{value.Object(), at}
	kind := item.Get("type").Text()
	switch kind.String() {
	case "compaction_trigger":
		r.compacts = true
		return
	case "compaction", "compaction_summary":
		r.readCompaction(&item)
		return
	case "web_search_call", "tool_search_call", "tool_search_output": // the next items have the results
		return
	case "", "message":
		r.readMessage(&item)
	case "function_call", "custom_tool_call":
		r.readCall(&item, kind.Is("custom_tool_call"))
	case "function_call_output", "custom_tool_call_output":
		r.readResult(&item)
	case "reasoning":
		r.readThought(&item)
	case "item_reference": // that of a stored item is replaced before
		r.Refuse(at.String(), notStored)
	case "additional_tools":
		for i, tool := range item.Get("tools").Items() {
			r.readTool(tool, at.Item("tools", i), "")
		}
	default: // made by the vendor's own tools
		if text := builtInText(value); !text.Blank() {
			r.say(form.Assistant, at, form.Block{Kind: form.BlockText, Text: text, At: at})
		} else {
			r.prompt.KeepTool(at.Field("type").String(), strings.TrimSuffix(kind.String(), "_call"))
		}
		return
	}
	r.loss.DropOthers(at, item.Object, "type", "role", "id", "call_id", "namespace", "name", "content", "arguments", "input", "output",
		"summary", "encrypted_content", "tools", "status")
}

// builtInText returns the text of an item of one of the vendor's own tools: its output, its program or its results.
func builtInText(item rawjson.Value) rawjson.Text {
	for _, name := range [...]string{"output", "code"} {
		if text := item.Get(name).Text(); !text.Blank() {
			return text
		}
	}
	return rawjson.Join("\n", form.PartTexts(item.Get("results"))...)
}

func (r *reading) readMessage(item *inputItem) {
	role := form.User
	switch speaker := item.Get("role").Text(); {
	case speaker.Is("assistant"):
		role = form.Assistant
	case speaker.Is("system"), speaker.Is("developer"):
		role = form.System
	case !speaker.Is("user"):
		r.Refuse(item.at.Field("role").String(), "The role of a message must be user, assistant, system or developer.")
		return
	}
	r.say(role, item.at, r.readContent(item.Get("content"), item.at, "content")...)
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

func (r *reading) readCall(item *inputItem, custom bool) {
	space := form.Space{Namespace: item.Get("namespace").Text().String(), Name: item.Get("name").Text().String()}
	call := form.Call{ID: item.Get("call_id").Text().String(), Name: space.Flat(), Custom: custom}
	if custom {
		call.Input = form.CustomInput(item.Get("input").Text())
	} else {
		call.Input = form.ReadArguments(item.Get("arguments").Text())
	}
	r.say(form.Assistant, item.at, form.Block{Kind: form.BlockCall, Call: call, At: item.at})
}

func (r *reading) readResult(item *inputItem) {
	result := &form.Result{ID: item.Get("call_id").Text().String(), Blocks: r.readContent(item.Get("output"), item.at, "output")}
	r.say(form.User, item.at, form.Block{Kind: form.BlockResult, Result: result, At: item.at})
}

// readThought reads a reasoning item. It belongs to the next item, so it begins no turn unless it is the first item.
func (r *reading) readThought(item *inputItem) {
	texts := form.PartTexts(item.Get("summary"))
	if texts == nil {
		texts = form.PartTexts(item.Get("content"))
	}
	thought := form.Block{Kind: form.BlockThought, Text: rawjson.Join("\n\n", texts...), At: item.at}
	sealed := item.Get("encrypted_content").Text()
	state, ours := form.OpenEnvelope(sealed.Inner())
	switch {
	case !ours:
		if !sealed.Empty() && !form.Enveloped(sealed.Inner()) {
			thought.State = []form.State{{Kind: form.StateOpenAI, Data: sealed.Inner(), ID: item.Get("id").Text().String()}}
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
