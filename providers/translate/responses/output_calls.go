package responses

import (
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// beginCall begins a call of a tool under the client's name.
func (w *output) beginCall(event *form.Event) {
	kind, prefix, word, input := functionCall, "fc_", "function_call", "arguments"
	if w.ask.Custom[event.Call.Name] {
		kind, prefix, word, input = customCall, "ctc_", "custom_tool_call", "input"
	}
	w.open(kind, prefix)
	var head form.Out
	head.JSON(`{"type":?,"id":?,"call_id":?`, word, w.item.id, event.Call.ID)
	space, grouped := w.ask.Spaces[event.Call.Name]
	if grouped {
		head.KeyString("namespace", space.Namespace)
	} else {
		space.Name = event.Call.Name
	}
	head.JSON(`"name":?,"`+input+`":"`, space.Name)
	w.written = append(w.written, head.Bytes()...)
	w.item.textFrom = len(w.written)
	w.added(`","status":"in_progress"}`)
}

// arguments writes a piece of a call's input. The input of a custom tool is converted at its end.
func (w *output) arguments(piece rawjson.Text) {
	switch {
	case piece.Empty():
	case w.item.kind == customCall:
		w.item.custom = append(w.item.custom, piece.Inner()...)
	case w.item.kind == functionCall:
		w.input("response.function_call_arguments.delta", piece)
	}
}

func (w *output) input(event string, piece rawjson.Text) {
	w.written = append(w.written, piece.Inner()...)
	w.sendOf(event, `"delta":?`, piece)
}

// closeCall ends a call. Its status is incomplete if its input was cut off.
func (w *output) closeCall() {
	status, done, whole := statusCompleted, "response.function_call_arguments.done", `"arguments":?`
	switch {
	case w.item.kind == customCall:
		done, whole = "response.custom_tool_call_input.done", `"input":?`
		decoded := rawjson.Trim(rawjson.Wrap(w.item.custom).Decoded())
		if w.item.custom = nil; !rawjson.Valid(decoded) {
			status, decoded = statusIncomplete, nil
		}
		if text := form.CustomText(decoded); !text.Empty() {
			w.input("response.custom_tool_call_input.delta", text)
		}
	case len(w.written) == w.item.textFrom:
		w.input("response.function_call_arguments.delta", rawjson.Text(`"{}"`))
	}
	input := w.textSince(w.item.textFrom)
	if w.item.kind == functionCall && !rawjson.Valid(input.Decoded()) {
		status = statusIncomplete
	}
	w.sendOf(done, whole, input)
	w.keep(`,"status":"`, status, `"}`)
}
