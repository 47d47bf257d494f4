package responses

import (
	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// The texts of a compaction by a call of any model, which replaces OpenAI's own: developers.openai.com/api/docs/guides/compaction.
const (
	compactInstruction = "Summarize this conversation, so that you can go on with the work from the summary alone. State the user's goals and " +
		"constraints, what was decided and why, what was done with which result, the names, paths, identifiers and values that are still " +
		"needed, and what remains to be done next. Answer with the summary and nothing else."
	compactedPreface = "Summary of the conversation so far:\n\n"
)

// compact changes the call to one for a summary: the conversation stays, and no tool may be called.
func (r *reading) compact() {
	p := r.prompt
	at := form.Path{}.Field("input")
	p.Turns = append(p.Turns, form.Turn{
		Role: form.User, At: at,
		Blocks: []form.Block{{Kind: form.BlockText, Text: rawjson.Quote(compactInstruction), At: at}},
	})
	p.Search, p.Output, p.Choice = nil, form.Output{}, form.Choice{}
	if len(p.Tools) > 0 {
		p.Choice.Mode = form.ChoiceNone
	}
	r.ask.Compact, r.ask.Seal = true, form.Sealing(r.call)
}

// readCompaction reads the summary of the earlier conversation. It refuses another vendor's or another caller's, which it cannot read: the
// conversation would be incomplete.
func (r *reading) readCompaction(item *inputItem) {
	text, ok := form.Unseal(r.call, item.Get("encrypted_content").Text().String())
	if !ok {
		field := item.at.Field("encrypted_content").String()
		r.Refuse(field, "This compaction was not made here for this API key, so that its summary cannot be read.")
		return
	}
	r.say(form.User, item.at, form.Block{Kind: form.BlockText, Text: rawjson.Quote(compactedPreface + text), At: item.at})
}

// Summary returns the message for a compaction that the gateway made for the caller, as an item of OpenAI's own input.
func Summary(call *providers.Call, item rawjson.Value) (message []byte, ok bool) {
	text, ok := form.Unseal(call, item.Get("encrypted_content").Text().String())
	if !ok {
		return nil, false
	}
	var out form.Out
	out.JSON(`{"type":"message","role":"user","content":?}`, compactedPreface+text)
	return out.Bytes(), true
}

// summarize writes an event of the answer to a call for a summary: its text is the summary; it omits everything else.
func (w *writer) summarize(event *form.Event) {
	if event.Kind != form.EventText || event.Text.Empty() {
		return
	}
	if w.item.kind != compaction {
		w.open(compaction, "cmp_")
		w.keep(`{"type":"compaction","id":"`, w.item.id, `","encrypted_content":"`)
		w.added(`"}`)
		w.sendOf("response.compaction.compacting", "")
	}
	w.summary = append(w.summary, event.Text.Decoded()...)
}

func (w *writer) compacted() {
	w.keep(w.ask.Seal(string(w.summary)), `"}`)
	w.stop = form.StopEnd // a summary that was cut off is usable
	w.closeItem()
}

func (w *writer) compactedResponse() {
	out := &w.Out
	out.JSON(`{"id":?,"object":"response.compaction","created_at":?`, w.id, w.created)
	out.KeyRaw("output", []byte("["), w.written, []byte("]"))
	w.usage(out)
	out.End()
}
