package responses

import (
	"bytes"
	"slices"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

func (w *writing) conversation() {
	system, turns, fault := w.Arrange(form.Arrangement{Apart: true, Takes: func(block *form.Block) bool {
		return block.Kind == form.BlockThought && w.sealed(block.State) != nil
	}})
	w.Fail(fault)
	if n := len(turns); n > 0 && turns[n-1].Role == form.Assistant {
		w.loss.Change(w.Fields[form.FieldTurns]) // it is no beginning of the answer here
	}
	instructions := w.instructions(system)
	w.Array("input")
	if !instructions && len(system) > 0 {
		w.message("developer", system)
	}
	if w.Output.Kind == form.OutputJSON && !(&form.Prompt{Turns: turns}).MentionsJSON() {
		// The vendor looks for the word in the items, not in the instructions: "Response input messages must contain the word
		// 'json' in some form to use 'text.format' of type 'json_object'."
		w.message("developer", []form.Block{{Kind: form.BlockText, Text: w.Output.Line()}})
	}
	for i := range turns {
		switch turn := &turns[i]; turn.Role {
		case form.System:
			w.message("developer", turn.Blocks)
		case form.Assistant:
			w.assistant(turn.Blocks)
		case form.User:
			w.user(turn.Blocks)
		}
	}
	w.EndArray()
}

// instructions writes the system's texts as one; false where there is none, or they must be parts because of cache marks.
func (w *writing) instructions(system []form.Block) bool {
	texts := make([]rawjson.Text, 0, len(system))
	for i := range system {
		block := &system[i]
		if block.Kind != form.BlockText || w.to.Breakpoints && block.Cache != form.NoMark {
			return false
		}
		texts = append(texts, block.Text)
	}
	if len(texts) == 0 {
		return false
	}
	for i := range system {
		w.DropMark(system[i].Cache, system[i].At, w.loss)
	}
	w.KeyText("instructions", rawjson.Join("\n\n", texts...))
	return true
}

// message writes what the user or the system said.
func (w *writing) message(role string, blocks []form.Block) {
	w.Typed("message")
	w.KeyString("role", role)
	w.Key("content")
	for i := range blocks {
		if blocks[i].Kind == form.BlockMedia && role != "user" && blocks[i].Media.Kind != form.PlainText {
			w.Fail(form.Refused(blocks[i].At.String(), form.Responses))
		}
	}
	w.endsWith(blocks)
}

// endsWith writes the parts of an item, which end it.
func (w *writing) endsWith(parts []form.Block) {
	w.BeginArray()
	for i := range parts {
		w.part(&parts[i])
	}
	w.EndArray()
	w.End()
}

// user writes the results of a turn, each an item, and then what else was said.
func (w *writing) user(blocks []form.Block) {
	said := make([]form.Block, 0, len(blocks))
	for i := range blocks {
		if blocks[i].Kind != form.BlockResult {
			said = append(said, blocks[i])
		} else {
			w.result(&blocks[i])
		}
	}
	if len(said) > 0 {
		w.message("user", said)
	}
}

func (w *writing) result(block *form.Block) {
	result := block.Result
	if w.custom[result.Name] {
		w.Typed("custom_tool_call_output")
	} else {
		w.Typed("function_call_output")
	}
	w.KeyString("call_id", callID(result.ID))
	w.Key("output")
	said, media := result.Say(), result.Media()
	mark := block.Mark()
	if !w.to.Breakpoints {
		w.DropMarks(block, w.loss)
		mark = form.NoMark
	}
	if len(media) == 0 && mark == form.NoMark {
		w.Text(said)
		w.End()
		return
	}
	parts := make([]form.Block, 0, 1+len(media))
	if !said.Blank() || len(media) == 0 {
		parts = append(parts, form.Block{Kind: form.BlockText, Text: said})
	}
	for _, medium := range media {
		medium.Cache = form.NoMark
		parts = append(parts, medium)
	}
	parts[len(parts)-1].Cache = mark // all of the result's are one
	w.endsWith(parts)
}

// assistant writes what the model said, item for item. A thought goes with what follows it: the vendor refuses one that
// nothing follows (https://github.com/continuedev/continue/issues/8933).
func (w *writing) assistant(blocks []form.Block) {
	var thoughts []*form.Block
	var last []byte // the sealed thought that was written last, which several calls may have brought back
	for i := 0; i < len(blocks); i++ {
		block := &blocks[i]
		w.DropMark(block.Cache, block.At, w.loss)
		if block.Kind == form.BlockThought {
			thoughts = append(thoughts, block)
			continue
		}
		if data := w.sealed(block.State); data != nil {
			thoughts = append(thoughts, &form.Block{State: block.State})
		}
		for _, thought := range thoughts {
			if data := w.sealed(thought.State); !bytes.Equal(data, last) {
				w.thought(thought.Text, data)
				last = data
			}
		}
		thoughts = nil
		switch block.Kind {
		case form.BlockText:
			end := i + 1
			for end < len(blocks) && blocks[end].Kind == form.BlockText && w.sealed(blocks[end].State) == nil {
				w.DropMark(blocks[end].Cache, blocks[end].At, w.loss)
				end++
			}
			w.said(blocks[i:end])
			i = end - 1
		case form.BlockCall:
			w.call(&block.Call)
		default:
			w.Fail(form.Refused(block.At.String(), form.Responses))
		}
	}
}

// sealed is this vendor's own state, nil where there is none. "Reasoning input items can only be provided to a reasoning or
// computer use model."
func (w *writing) sealed(states []form.State) []byte {
	if !w.to.Reasons {
		return nil
	}
	if at := slices.IndexFunc(states, func(s form.State) bool { return s.Kind == form.StateOpenAI }); at >= 0 {
		return states[at].Data
	}
	return nil
}

// thought writes a thought without its id: the vendor would look for it where it keeps nothing.
func (w *writing) thought(text rawjson.Text, data []byte) {
	w.Typed("reasoning")
	w.Array("summary")
	if !text.Empty() {
		w.Typed("summary_text")
		w.Field("text", text)
		w.End()
	}
	w.EndArray()
	w.KeyQuoted("encrypted_content", data)
	w.End()
}

func (w *writing) said(blocks []form.Block) {
	w.Typed("message")
	w.Literal(`"role":"assistant"`)
	w.Array("content")
	for i := range blocks {
		w.Typed("output_text")
		w.Field("text", blocks[i].Text)
		w.End()
	}
	w.EndArray()
	w.End()
}

func (w *writing) call(call *form.Call) {
	custom := w.custom[call.Name]
	if custom {
		w.Typed("custom_tool_call")
	} else {
		w.Typed("function_call")
	}
	w.KeyString("call_id", callID(call.ID))
	w.KeyString("name", w.toolName(call.Name))
	if custom {
		w.Field("input", form.CustomText(call.Input))
	} else {
		w.Field("arguments", call.Arguments())
	}
	w.End()
}

// callID is the id under which this dialect takes a call.
func callID(id string) string {
	return form.CallID(id, func(id string) bool { return id != "" && len(id) <= maxCallID })
}

func (w *writing) toolName(name string) string { return w.ToolName(name, form.NameRule{Max: maxName}) }
