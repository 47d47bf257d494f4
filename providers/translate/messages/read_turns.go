package messages

import (
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// system reads the instructions: a text, or text blocks.
func (r *reader) system(value rawjson.Value) []form.Block {
	if text := value.Text(); text != nil {
		return []form.Block{{Kind: form.BlockText, Text: text, At: form.Path{}.Field("system")}}
	}
	var blocks []form.Block
	for i, item := range value.Items() {
		blocks = r.block(blocks, form.System, form.In("system", i), item)
	}
	return blocks
}

// turns reads the messages. Instructions before the first turn of the user or the assistant are system blocks.
func (r *reader) turns(value rawjson.Value) {
	r.p.Turns = nil
	for i, item := range value.Items() {
		turn := form.Turn{At: form.In("messages", i)}
		if !item.IsObject() {
			r.invalid(turn.At, "It must be an object.")
		}
		message := item.Object()
		r.loss.DropOthers(turn.At, message, "role", "content")
		switch role := message.Get("role").Text(); {
		case role.Is("user"):
		case role.Is("assistant"):
			turn.Role = form.Assistant
		case role.Is("system"):
			turn.Role = form.System
		default:
			r.invalid(turn.At.Field("role"), "It must be user, assistant or system.")
		}
		r.content(&turn, message.Get("content"))
		turn.Settle()
		if turn.Role == form.System && len(r.p.Turns) == 0 {
			r.p.System = append(r.p.System, turn.Blocks...)
			continue
		}
		r.p.Turns = append(r.p.Turns, turn)
	}
}

func (r *reader) content(turn *form.Turn, content rawjson.Value) {
	switch {
	case content.IsText():
		turn.Blocks = []form.Block{{Kind: form.BlockText, Text: content.Text(), At: turn.At.Field("content")}}
	case !content.IsArray():
		r.invalid(turn.At.Field("content"), "It must be a text or an array of blocks.")
	}
	for i, item := range content.Items() {
		turn.Blocks = r.block(turn.Blocks, turn.Role, turn.At.Item("content", i), item)
	}
}

// blockFields returns the members that are read of a block of a type. See the type ContentBlockParamUnion.
func blockFields(kind string) []string {
	switch kind {
	case "text":
		return []string{"text"}
	case "image":
		return []string{"source"}
	case "document":
		return []string{"source", "title"}
	case "search_result":
		return []string{"source", "title", "content"}
	case "tool_use":
		return []string{"id", "name", "input", "caller"}
	case "tool_result":
		return []string{"tool_use_id", "content", "is_error"}
	case "thinking":
		return []string{"thinking", "signature"}
	case "redacted_thinking":
		return []string{"data"}
	}
	return nil
}

// sends reports whether a role can send a block of a type that blockFields knows.
func sends(kind string, role form.Role) bool {
	switch kind {
	case "tool_use", "thinking", "redacted_thinking":
		return role == form.Assistant
	case "tool_result", "search_result":
		return role == form.User
	case "image", "document":
		return role != form.System
	}
	return true
}

// block reads one block and appends its blocks of the form, of which there may be several.
func (r *reader) block(to []form.Block, role form.Role, at form.Path, item rawjson.Value) []form.Block {
	if !item.IsObject() {
		r.invalid(at, "It must be an object.")
		return to
	}
	m := item.Object()
	kind := m.Get("type").Text().String()
	fields := blockFields(kind)
	switch {
	case kind == "":
		r.invalid(at.Field("type"), "It is required.")
		return to
	case kind == "web_search_tool_result", kind == "server_tool_use" && m.Get("name").Text().Is(searchName):
		return to // the next text has the results
	case fields == nil: // a block of the vendor's own tools, or an unknown type
		r.p.Keep(at.Field("type").String(), item, true)
		return to
	case !sends(kind, role):
		r.invalid(at.Field("type"), "A block of this type is not allowed here.")
	}
	if m.Get("citations").Get("enabled").False() { // the default
		fields = append(fields, "citations")
	}
	r.loss.DropOthers(at, m, append(fields, "type", "cache_control")...)
	block := form.Block{At: at, Cache: form.MarkOf(m.Get("cache_control"))}
	switch kind {
	case "text":
		block.Text = m.Get("text").Text()
	case "image", "document":
		return r.medium(to, block, kind, m)
	case "search_result":
		block.Kind, block.Media = form.BlockMedia, searchResult(m)
	case "tool_use":
		block.Kind = form.BlockCall
		block.Call = form.Call{ID: m.Get("id").Text().String(), Name: m.Get("name").Text().String(), Input: inputOf(m.Get("input"))}
	case "tool_result":
		block.Kind, block.Result = form.BlockResult, r.result(at, m)
	case "thinking":
		return thought(to, block, m)
	case "redacted_thinking":
		block.Kind, block.Cache = form.BlockState, form.NoMark
		state := stateOf(form.StateRedacted, m.Get("data").Text().Inner())
		if state.Data == nil {
			return to
		}
		block.State = []form.State{state}
	}
	return append(to, block)
}

// thought reads a thinking block: the vendor's own with a signature or without, or another vendor's state.
func thought(to []form.Block, block form.Block, m rawjson.Object) []form.Block {
	text, signature := m.Get("thinking").Text(), m.Get("signature").Text()
	block.Kind, block.Text, block.Cache = form.BlockThought, text, form.NoMark
	state := stateOf(form.StateAnthropic, signature.Inner())
	if state.Data == nil {
		return append(to, block)
	}
	switch state.Kind {
	case form.StateGemini, form.StateGeminiBefore: // of a block next to the thought
		if !text.Empty() {
			to = append(to, block)
		}
	default:
		if state.Text.Empty() {
			state.Text = text
		}
	}
	return append(to, form.Block{Kind: form.BlockState, State: []form.State{state}, At: block.At})
}

// stateOf reads a field for this vendor's state: the state of this vendor or another one. State without data is none.
func stateOf(kind form.StateKind, data []byte) form.State {
	state, ours := form.OpenEnvelope(data)
	switch {
	case ours:
		return state
	case len(data) == 0, form.Enveloped(data):
		return form.State{}
	}
	return form.State{Kind: kind, Data: data}
}

// inputOf returns the input of a call as an object.
func inputOf(input rawjson.Value) rawjson.Value {
	switch {
	case input.IsObject():
		return input
	case input.Absent():
		return rawjson.Value("{}")
	case input.IsText():
		return form.ReadArguments(input.Text())
	}
	return form.ReadArguments(rawjson.Quote(string(input)))
}

func (r *reader) result(at form.Path, m rawjson.Object) *form.Result {
	result := &form.Result{ID: m.Get("tool_use_id").Text().String(), Failed: m.Get("is_error").True()}
	content := m.Get("content")
	if text := content.Text(); text != nil {
		result.Blocks = []form.Block{{Kind: form.BlockText, Text: text, At: at.Field("content")}}
		return result
	}
	for i, part := range content.Items() {
		at := at.Item("content", i)
		if kind := part.Get("type").Text(); kind.Is("tool_result") || kind.Is("tool_use") {
			r.invalid(at.Field("type"), "It is not allowed in a result.")
			return result
		}
		result.Blocks = r.block(result.Blocks, form.User, at, part)
	}
	return result
}

func (r *reader) invalid(at form.Path, why string) {
	r.Refuse(at.String(), "Invalid request: '%s'. %s", at, why)
}
