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
		w.loss.Change(w.Fields[form.FieldTurns]) // this dialect does not continue a turn of the assistant
	}
	instructions := w.instructions(system)
	w.Array("input")
	if !instructions && len(system) > 0 {
		w.message("developer", system)
	}
	if w.Output.Kind == form.OutputJSON && !(&form.Prompt{Turns: turns}).MentionsJSON() {
		// The vendor requires the word in the items, not in the instructions: "Response input messages must contain the word
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

// instructions writes the system's texts as one. It reports false if there is none, or if they must be parts because of cache marks.
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

// message writes a message of the user or the system.
func (w *writing) message(role string, blocks []form.Block) {
	w.JSON(`{"type":"message","role":?,"content":`, role)
	for i := range blocks {
		if blocks[i].Kind == form.BlockMedia && role != "user" && blocks[i].Media.Kind != form.PlainText {
			w.Fail(form.Refused(blocks[i].At.String(), form.Responses))
		}
	}
	w.endsWith(blocks)
}

// endsWith writes the parts of an item and ends the item.
func (w *writing) endsWith(parts []form.Block) {
	w.BeginArray()
	for i := range parts {
		w.part(&parts[i])
	}
	w.EndArray()
	w.End()
}

// user writes the results of a turn, each as an item, and then the other blocks.
func (w *writing) user(blocks []form.Block) {
	others := make([]form.Block, 0, len(blocks))
	for i := range blocks {
		if blocks[i].Kind != form.BlockResult {
			others = append(others, blocks[i])
		} else {
			w.result(&blocks[i])
		}
	}
	if len(others) > 0 {
		w.message("user", others)
	}
}

func (w *writing) result(block *form.Block) {
	result := block.Result
	kind := "function_call_output"
	if w.custom[result.Name] {
		kind = "custom_tool_call_output"
	}
	w.JSON(`{"type":?,"call_id":?,"output":`, kind, callID(result.ID))
	text, media := result.TextWithError(), result.Media()
	mark := block.Mark()
	if !w.to.Breakpoints {
		w.DropMarks(block, w.loss)
		mark = form.NoMark
	}
	if len(media) == 0 && mark == form.NoMark {
		w.Text(text)
		w.End()
		return
	}
	parts := make([]form.Block, 0, 1+len(media))
	if !text.Blank() || len(media) == 0 {
		parts = append(parts, form.Block{Kind: form.BlockText, Text: text})
	}
	for _, medium := range media {
		medium.Cache = form.NoMark
		parts = append(parts, medium)
	}
	parts[len(parts)-1].Cache = mark // one mark for all marks of the result
	w.endsWith(parts)
}

// assistant writes a turn of the model as items. A thought requires an item after it: the vendor refuses one at the end
// (https://github.com/continuedev/continue/issues/8933).
func (w *writing) assistant(blocks []form.Block) {
	var thoughts []*form.Block
	var last []byte // the encrypted thought that was written last; several calls may have the same one
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
			w.say(blocks[i:end])
			i = end - 1
		case form.BlockCall:
			w.call(&block.Call)
		default:
			w.Fail(form.Refused(block.At.String(), form.Responses))
		}
	}
}

// sealed returns this vendor's own state, nil for none. "Reasoning input items can only be provided to a reasoning or computer use model."
func (w *writing) sealed(states []form.State) []byte {
	if !w.to.Reasons {
		return nil
	}
	if at := slices.IndexFunc(states, func(s form.State) bool { return s.Kind == form.StateOpenAI }); at >= 0 {
		return states[at].Data
	}
	return nil
}

// thought writes a thought without its id, because the vendor has not stored it.
func (w *writing) thought(text rawjson.Text, data []byte) {
	if text.Empty() {
		w.JSON(`{"type":"reasoning","summary":[],"encrypted_content":?}`, data)
		return
	}
	w.JSON(`{"type":"reasoning","summary":[{"type":"summary_text","text":?}],"encrypted_content":?}`, text, data)
}

func (w *writing) say(blocks []form.Block) {
	w.JSON(`{"type":"message","role":"assistant","content":[`)
	for i := range blocks {
		w.JSON(`{"type":"output_text","text":?}`, blocks[i].Text)
	}
	w.JSON("]}")
}

func (w *writing) call(call *form.Call) {
	id, name := callID(call.ID), w.toolName(call.Name)
	if w.custom[call.Name] {
		w.JSON(`{"type":"custom_tool_call","call_id":?,"name":?,"input":?}`, id, name, form.CustomText(call.Input))
	} else {
		w.JSON(`{"type":"function_call","call_id":?,"name":?,"arguments":?}`, id, name, call.Arguments())
	}
}

// callID returns an id of a call that this dialect accepts.
func callID(id string) string {
	return form.CallID(id, func(id string) bool { return id != "" && len(id) <= maxCallID })
}

func (w *writing) toolName(name string) string { return w.ToolName(name, form.NameRule{Max: maxName}) }
