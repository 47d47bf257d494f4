package messages

import (
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// countMarks computes how many cache marks to omit: first the earliest of the turns, then the earliest of tools and system.
func (w *writer) countMarks() {
	var fixed, turns int
	for i := range w.tools {
		fixed += one(w.tools[i].Cache)
	}
	for i := range w.system {
		fixed += one(w.system[i].Cache)
	}
	for i := range w.turns {
		for j := range w.turns[i].Blocks {
			turns += one(blockMark(&w.turns[i].Blocks[j]))
		}
	}
	w.skipFixed = max(0, fixed-maxMarks)
	w.skipTurns = max(0, turns-max(0, maxMarks-fixed))
}

func one(mark form.Mark) int {
	if mark == form.NoMark {
		return 0
	}
	return 1
}

// blockMark returns the mark of a block of a turn. Thoughts cannot have one.
func blockMark(block *form.Block) form.Mark {
	if block.Kind == form.BlockThought {
		return form.NoMark
	}
	return block.Mark()
}

// mark writes a cache mark, unless it is one of the first that are skipped.
func (w *writer) mark(mark form.Mark, at form.Path, skip *int) {
	switch {
	case mark == form.NoMark:
	case *skip > 0:
		*skip--
		w.loss.Change(at.Field(w.p.Fields[form.FieldCache]).Name())
	case mark == form.MarkHour:
		w.out.JSON(`"cache_control":{"type":"ephemeral","ttl":"1h"}`)
	default:
		w.out.JSON(`"cache_control":{"type":"ephemeral"}`)
	}
}

// writeSystem writes the instructions, then the format of the answer if there is no field for it.
func (w *writer) writeSystem() {
	var line rawjson.Text
	if w.p.Output.Kind != form.OutputText && !w.formatted() {
		line = w.p.Output.Line()
		w.loss.Change(w.p.Fields[form.FieldOutput])
	}
	if len(w.system) == 0 && line == nil {
		return
	}
	w.out.Array("system")
	for i := range w.system {
		block := &w.system[i]
		if block.Kind != form.BlockText {
			w.Fail(form.Refused(block.At.String(), form.Messages))
		}
		w.text(block.Text)
		w.mark(block.Cache, block.At, &w.skipFixed)
		w.out.End()
	}
	if line != nil {
		w.text(line)
		w.out.End()
	}
	w.out.EndArray()
}

// text writes a text block. The caller ends the block.
func (w *writer) text(text rawjson.Text) { w.out.JSON(`{"type":"text","text":?`, text) }

func (w *writer) writeTurns() {
	w.out.Array("messages")
	for i := range w.turns {
		turn := &w.turns[i]
		role := [...]string{form.User: "user", form.Assistant: "assistant", form.System: "system"}[turn.Role]
		w.out.JSON(`{"role":?,"content":[`, role)
		for j := range turn.Blocks {
			w.block(turn.Role, &turn.Blocks[j])
		}
		w.out.JSON("]}")
	}
	w.out.EndArray()
}

func (w *writer) block(role form.Role, block *form.Block) {
	switch block.Kind {
	case form.BlockText:
		w.text(block.Text)
	case form.BlockMedia:
		if role != form.User {
			w.Fail(form.Refused(block.At.String(), form.Messages))
		}
		w.media(&block.Media, block.At)
	case form.BlockCall:
		w.call(&block.Call)
	case form.BlockResult:
		w.result(block)
	case form.BlockThought:
		w.thought(block)
		return
	default:
		return
	}
	w.mark(blockMark(block), block.At, &w.skipTurns)
	w.out.End()
}

// call writes a call. The caller ends the block.
func (w *writer) call(call *form.Call) {
	w.out.JSON(`{"type":"tool_use","id":?,"name":?,"input":?`,
		callID(call.ID), w.p.ToolName(call.Name, nameRule()), inputOf(call.Input))
}

// callID returns an id of a call that the vendor accepts.
func callID(id string) string { return form.CallID(id, form.NameRule{Max: maxCallLen}.Fits) }

// result writes a result. The caller ends the block.
func (w *writer) result(block *form.Block) {
	result := block.Result
	blocks, failed := result.Blocks, result.Failed
	if !result.Object.Absent() {
		var text rawjson.Text
		text, failed = result.Texts()
		blocks = result.Media()
		if !text.Blank() {
			blocks = append([]form.Block{{Kind: form.BlockText, Text: text}}, blocks...)
		}
	}
	w.out.JSON(`{"type":"tool_result","tool_use_id":?`, callID(result.ID))
	switch {
	case len(blocks) == 1 && blocks[0].Kind == form.BlockText:
		w.out.KeyText("content", blocks[0].Text)
	case len(blocks) > 0:
		w.out.Array("content")
		for i := range blocks {
			w.resultBlock(&blocks[i], block.At)
		}
		w.out.EndArray()
	}
	if failed {
		w.out.JSON(`"is_error":true`)
	}
}

func (w *writer) resultBlock(block *form.Block, at form.Path) {
	switch block.Kind {
	case form.BlockText:
		w.text(block.Text)
	case form.BlockMedia:
		if block.At != (form.Path{}) {
			at = block.At
		}
		w.media(&block.Media, at)
	default:
		w.Fail(form.Refused(at.String(), form.Messages))
	}
	w.out.End()
}

// thought writes the vendor's own state of a thought.
func (w *writer) thought(block *form.Block) {
	for _, state := range block.State {
		switch state.Kind {
		case form.StateAnthropic:
			text := state.Text
			if text == nil {
				text = block.Text
			}
			w.out.JSON(`{"type":"thinking","thinking":?,"signature":?}`, text, state.Data)
		case form.StateRedacted:
			w.out.JSON(`{"type":"redacted_thinking","data":?}`, state.Data)
		default:
		}
	}
}
