package responses

import (
	"modelrelay/providers"
	"modelrelay/providers/translate/form"
)

// readInput reads a conversation.
func (r *reading) readInput(input form.Value) {
	if text := input.Text(); text != nil {
		at := form.Path{}.Field("input")
		r.say(form.User, at, form.Block{Kind: form.BlockText, Text: text, At: at})
	}
	for i, item := range input.Items() {
		r.readItem(item, form.In("input", i))
	}
}

// say appends blocks to the conversation. What the assistant said in several items is one turn.
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

func (r *reading) readItem(item form.Value, at form.Path) {
	kind := item.Get("type").Text()
	switch {
	case kind == nil, kind.Is("message"):
		r.readMessage(item, at)
	case kind.Is("function_call"), kind.Is("custom_tool_call"):
		r.readCall(item, at, kind.Is("custom_tool_call"))
	case kind.Is("function_call_output"), kind.Is("custom_tool_call_output"):
		r.readResult(item, at)
	case kind.Is("reasoning"):
		r.readThought(item, at)
	case kind.Is("item_reference"):
		r.refuse(providers.InvalidField(at.String(), keepsNothing))
	case kind.Is("additional_tools"):
		for i, tool := range item.Get("tools").Items() {
			r.readTool(tool, at.Item("tools", i), "")
		}
	default:
		if text := builtInText(item); !text.Blank() {
			r.say(form.Assistant, at, form.Block{Kind: form.BlockText, Text: text, At: at})
		} else {
			r.must(at.Field("type").String())
		}
	}
}

// builtInText is what an item of one of the vendor's own tools says in text: its output, its program or what it found.
func builtInText(item form.Value) form.Text {
	for _, name := range [...]string{"output", "code"} {
		if text := item.Get(name).Text(); !text.Blank() {
			return text
		}
	}
	var found []form.Text
	for _, result := range item.Get("results").Items() {
		if text := result.Get("text").Text(); !text.Blank() {
			found = append(found, text)
		}
	}
	return form.Join("\n", found...)
}

func (r *reading) readMessage(item form.Value, at form.Path) {
	role := form.User
	switch speaker := item.Get("role").Text(); {
	case speaker.Is("assistant"):
		role = form.Assistant
	case speaker.Is("system"), speaker.Is("developer"):
		role = form.System
	case !speaker.Is("user"):
		r.refuse(providers.InvalidField(at.Field("role").String(), "The role of a message must be user, assistant, system or developer."))
		return
	}
	content := item.Get("content")
	r.say(role, at, r.readContent(content, at, "content")...)
	r.unknown(at.Field("phase").Name(), item.Get("phase"))
}

// readContent reads the parts of a message, or of a result.
func (r *reading) readContent(content form.Value, at form.Path, name string) []form.Block {
	if text := content.Text(); text != nil {
		return []form.Block{{Kind: form.BlockText, Text: text, At: at.Field(name)}}
	}
	blocks := make([]form.Block, 0, content.Len())
	for i, part := range content.Items() {
		here := at.Item(name, i)
		block := form.Block{Kind: form.BlockMedia, At: here, Cache: mark(part.Get("prompt_cache_breakpoint"))}
		ok := true
		switch kind := part.Get("type").Text(); {
		case kind.Is("input_text"), kind.Is("output_text"), kind.Is("text"):
			block.Kind, block.Text = form.BlockText, part.Get("text").Text()
		case kind.Is("refusal"):
			block.Kind, block.Text = form.BlockText, part.Get("refusal").Text()
		case kind.Is("input_image"):
			block.Media, ok = readImage(part)
		case kind.Is("input_file"):
			block.Media, ok = readFile(part)
		case kind.Is("input_audio"):
			block.Media, ok = readAudio(part.Get("input_audio"))
		default:
			r.must(here.Field("type").String())
			continue
		}
		r.detail(part, here)
		if !ok {
			r.refuse(providers.InvalidField(here.String(), "The part has neither data nor an address nor a file's id."))
		}
		blocks = append(blocks, block)
	}
	return blocks
}

// mark reads a breakpoint of the prompt cache.
func mark(breakpoint form.Value) form.Mark {
	switch {
	case breakpoint.Absent():
		return form.NoMark
	case breakpoint.Get("ttl").Absent():
		return form.MarkShort
	}
	return form.MarkHour
}

func (r *reading) readCall(item form.Value, at form.Path, custom bool) {
	space := form.Space{Namespace: item.Get("namespace").Text().String(), Name: item.Get("name").Text().String()}
	call := form.Call{ID: item.Get("call_id").Text().String(), Name: space.Flat(), Custom: custom}
	if custom {
		call.Input = form.CustomInput(item.Get("input").Text())
	} else {
		call.Input = form.ReadArguments(item.Get("arguments").Text())
	}
	r.say(form.Assistant, at, form.Block{Kind: form.BlockCall, Call: call, At: at})
}

func (r *reading) readResult(item form.Value, at form.Path) {
	result := &form.Result{ID: item.Get("call_id").Text().String(), Blocks: r.readContent(item.Get("output"), at, "output")}
	r.say(form.User, at, form.Block{Kind: form.BlockResult, Result: result, At: at})
}

// readThought reads a reasoning item. It belongs to what follows it, so it begins no turn of its own unless nothing precedes.
func (r *reading) readThought(item form.Value, at form.Path) {
	var texts []form.Text
	for _, list := range [...]string{"summary", "content"} {
		for _, part := range item.Get(list).Items() {
			if text := part.Get("text").Text(); !text.Blank() {
				texts = append(texts, text)
			}
		}
		if texts != nil {
			break
		}
	}
	thought := form.Block{Kind: form.BlockThought, Text: form.Join("\n\n", texts...), At: at}
	sealed := item.Get("encrypted_content").Text()
	state, ours := form.OpenEnvelope(sealed.Inner())
	switch {
	case !ours:
		if !sealed.Empty() {
			thought.State = []form.State{{Kind: form.StateOpenAI, Data: sealed.Inner(), ID: item.Get("id").Text().String()}}
		}
	case state.Kind == form.StateAnthropic, state.Kind == form.StateRedacted:
		thought = form.Block{Kind: form.BlockState, State: []form.State{state}, At: at}
	default:
		if thought.Text != nil {
			r.say(form.Assistant, at, thought)
		}
		thought = form.Block{Kind: form.BlockState, State: []form.State{state}, At: at}
	}
	if thought.Text != nil || thought.State != nil {
		r.say(form.Assistant, at, thought)
	}
}
