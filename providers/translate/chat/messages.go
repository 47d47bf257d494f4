package chat

import (
	"slices"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

func (w *writing) messages() {
	system, turns, fault := w.Arrange(form.Arrangement{Apart: true, Takes: func(block *form.Block) bool {
		return block.Kind == form.BlockThought && w.to.OtherVendor && !block.Text.Blank()
	}})
	w.Fail(fault)
	if w.Output.Kind == form.OutputJSON && !w.MentionsJSON() {
		system = append(slices.Clip(system), form.Block{Kind: form.BlockText, Text: w.Output.Line()})
	}
	if n := len(turns); n > 0 && turns[n-1].Role == form.Assistant {
		w.loss.Change(w.Fields[form.FieldTurns]) // this dialect does not continue a turn of the assistant
	}
	w.Array("messages")
	if len(system) > 0 {
		w.message("system", system)
	}
	sinceUser := form.SinceUser(turns)
	for i := range turns {
		switch turn := &turns[i]; turn.Role {
		case form.System:
			w.message("system", turn.Blocks)
		case form.Assistant:
			w.assistant(turn.Blocks, i >= sinceUser)
		default:
			w.user(turn.Blocks)
		}
	}
	w.EndArray()
}

// message writes a message of texts and, for the user, media.
func (w *writing) message(role string, blocks []form.Block) {
	w.JSON(`{"role":?,"content":`, role)
	marked := w.marked(blocks)
	if texts := plainTexts(blocks); texts != nil && !marked {
		w.joined(`\n\n`, texts)
		w.End()
		return
	}
	for i := range blocks {
		if blocks[i].Kind != form.BlockText && role != "user" {
			w.Fail(form.Refused(blocks[i].At.String(), form.Chat))
		}
	}
	w.parts(blocks)
	w.End()
}

// plainTexts returns the texts of blocks, nil if there is any other block.
func plainTexts(blocks []form.Block) (texts []rawjson.Text) {
	for _, block := range blocks {
		switch {
		case block.Kind == form.BlockText:
			texts = append(texts, block.Text)
		case block.Kind == form.BlockMedia && block.Media.Kind == form.PlainText && block.Media.Text != nil:
			texts = append(texts, block.Media.Plain())
		default:
			return nil
		}
	}
	return texts
}

// marked reports whether blocks must be parts because of a cache mark. It records marks that the model does not accept as dropped.
func (w *writing) marked(blocks []form.Block) (marked bool) {
	for _, block := range blocks {
		if w.to.Breakpoints {
			marked = marked || block.Cache != form.NoMark
		} else {
			w.DropMark(block.Cache, block.At, w.loss)
		}
	}
	return marked
}

// joined writes several texts as one. The separator is escaped.
func (w *writing) joined(separator string, texts []rawjson.Text) {
	parts := make([][]byte, 0, 2*len(texts))
	for i, text := range texts {
		if i > 0 {
			parts = append(parts, []byte(separator))
		}
		parts = append(parts, text.Inner())
	}
	w.Quoted(parts...)
}

// user writes the results of a turn, each as a message, and then the other blocks.
func (w *writing) user(blocks []form.Block) {
	var media, others []form.Block
	for i := range blocks {
		block := &blocks[i]
		if block.Kind != form.BlockResult {
			others = append(others, *block)
			continue
		}
		w.JSON(`{"role":"tool","tool_call_id":?,"content":`, callID(block.Result.ID))
		text := form.Block{Kind: form.BlockText, Text: block.Result.TextWithError(), Cache: block.Mark()}
		if w.to.Breakpoints && text.Cache != form.NoMark {
			w.parts([]form.Block{text})
		} else {
			w.DropMarks(block, w.loss)
			w.Text(text.Text)
		}
		w.End()
		media = append(media, w.shown(block.Result)...)
	}
	if len(media) > 0 {
		w.message("user", media)
	}
	if len(others) > 0 {
		w.message("user", others)
	}
}

// shown returns the media of a result, each after a line with its call: this dialect accepts media only of the user.
func (w *writing) shown(result *form.Result) (blocks []form.Block) {
	for _, block := range result.Media() {
		line := "From the result of the call " + callID(result.ID)
		if result.Name != "" {
			line += " of " + w.ToolName(result.Name, nameRule)
		}
		block.Cache = form.NoMark // the result has it
		blocks = append(blocks, form.Block{Kind: form.BlockText, Text: rawjson.Quote(line + ":")}, block)
	}
	return blocks
}

// callID returns an id of a call that this dialect accepts.
func callID(id string) string {
	return form.CallID(id, func(id string) bool { return id != "" && len(id) <= maxCallID })
}

// assistant writes a turn of the model. It sends thoughts only to compatible servers, and only in the current tool loop:
// https://api-docs.deepseek.com/guides/thinking_mode
func (w *writing) assistant(blocks []form.Block, current bool) {
	var texts, thoughts []rawjson.Text
	var content, calls []form.Block
	for _, block := range blocks {
		switch block.Kind {
		case form.BlockText:
			texts, content = append(texts, block.Text), append(content, block)
		case form.BlockThought:
			thoughts = append(thoughts, block.Text)
		case form.BlockCall:
			calls = append(calls, block)
			w.DropMark(block.Cache, block.At, w.loss)
		default:
			w.Fail(form.Refused(block.At.String(), form.Chat))
		}
	}
	if len(texts)+len(calls) == 0 {
		return
	}
	w.JSON(`{"role":"assistant","content":`)
	switch {
	case len(texts) == 0:
		w.JSON("null")
	case w.marked(content):
		w.parts(content)
	default:
		w.joined("", texts)
	}
	if len(thoughts) > 0 && current {
		w.Key("reasoning_content")
		w.joined(`\n\n`, thoughts)
	}
	if len(calls) > 0 {
		w.Array("tool_calls")
		for i := range calls {
			w.call(&calls[i])
		}
		w.EndArray()
	}
	w.End()
}

func (w *writing) call(block *form.Block) {
	w.JSON(`{"id":?,"type":"function","function":{"name":?,"arguments":?}`,
		callID(block.Call.ID), w.ToolName(block.Call.Name, nameRule), block.Call.Arguments())
	for _, state := range block.State {
		if w.to.OtherVendor && state.Kind == form.StateGemini {
			writeSignature(w.Out, state.Data)
			break
		}
	}
	w.End()
}

// writeSignature writes Google's state next to a call, in the form of Google's endpoint of this dialect.
func writeSignature(out *form.Out, data []byte) {
	out.JSON(`"extra_content":{"google":{"thought_signature":?}}`, data)
}
