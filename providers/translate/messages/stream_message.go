package messages

import (
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

func (w *message) begin() {
	if !w.pending {
		return
	}
	w.pending = false
	w.Out.Event("message_start")
	w.Out.Key("message")
	w.whole([]byte("[]"))
	w.Out.EndEvent()
	w.ping()
}

func (w *message) ping() { w.Out.Plain("event: ping\ndata: {\"type\":\"ping\"}\n\n") }

// whole writes the message with its content, which is an array. Before the end of the answer the message has no stop_reason.
func (w *message) whole(content []byte) {
	out := &w.Out
	out.JSON(`{"id":?,"type":"message","role":"assistant","model":?,"content":?`, w.id, w.ask.Model, rawjson.Value(content))
	w.reason()
	out.JSON(`"container":null,"diagnostics":null`)
	out.Key("usage")
	writeUsage(out, &w.counts, w.searches)
	out.End()
}

func (w *message) end() {
	w.close()
	if w.ask.Stream {
		w.begin() // an empty answer, which has not ended yet
	}
	w.done = true
	if !w.ask.Stream {
		content := w.inContent()
		content.EndArray()
		w.Out.Grow(content.Len() + form.DocumentRoom)
		w.whole(content.Bytes())
		w.content.Reset(0)
		return
	}
	w.Out.Event("message_delta")
	w.Out.Object("delta")
	w.reason()
	w.Out.JSON(`"container":null`)
	w.Out.End()
	w.Out.Key("usage")
	writeUsage(&w.Out, &w.counts, w.searches)
	w.Out.EndEvent()
	w.Out.Plain("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
}

// reason writes why the message ended, nulls before its end.
func (w *message) reason() {
	if !w.done {
		w.Out.JSON(`"stop_reason":null,"stop_sequence":null,"stop_details":null`)
		return
	}
	reason := reasonWord(w.stop.Reason)
	if w.refused && w.stop.Reason == form.StopEnd {
		reason = "refusal"
	}
	var sequence rawjson.Value
	if reason == "stop_sequence" {
		sequence = rawjson.Value(w.stop.Sequence)
	}
	w.Out.JSON(`"stop_reason":?,"stop_sequence":?,"stop_details":null`, reason, sequence)
}

// reasonWord returns the stop_reason of a reason.
func reasonWord(reason form.StopReason) string {
	return [...]string{
		form.StopEnd: "end_turn", form.StopSequence: "stop_sequence", form.StopMaxTokens: "max_tokens", form.StopCalls: "tool_use",
		form.StopRefusal: "refusal", form.StopFiltered: "refusal", form.StopContextFull: "model_context_window_exceeded",
		form.StopPaused: "pause_turn", form.StopOther: "end_turn",
	}[reason]
}
