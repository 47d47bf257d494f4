package responses

import "modelrelay/providers/translate/form"

// tools writes the declarations, and the choice among them. Nothing of it is sent without tools.
func (w *writing) tools() {
	if len(w.Tools) == 0 {
		return
	}
	w.Array("tools")
	for i := range w.Tools {
		tool := &w.Tools[i]
		w.DropMark(tool.Cache, tool.At, w.loss)
		w.item(toolKind(tool.Custom))
		w.KeyString("name", w.toolName(tool.Name))
		w.Field("description", tool.Description)
		if tool.Custom {
			w.grammar(&tool.Grammar)
		} else {
			// Whether it is strict is always said: where nothing is, the vendor makes it strict if it can
			// (https://platform.openai.com/docs/guides/function-calling).
			w.Field("parameters", tool.Parameters())
			w.Key("strict")
			w.Bool(tool.Strict != nil && *tool.Strict)
		}
		w.End()
	}
	w.EndArray()
	if w.Parallel != nil && !*w.Parallel {
		w.Literal(`"parallel_tool_calls":false`)
	}
	w.choice()
}

func toolKind(custom bool) string {
	if custom {
		return "custom"
	}
	return "function"
}

func (w *writing) grammar(grammar *form.Grammar) {
	if grammar.Definition.Empty() {
		return
	}
	w.Key("format")
	w.item("grammar")
	w.Field("syntax", grammar.Syntax)
	w.Field("definition", grammar.Definition)
	w.End()
}

func (w *writing) choice() {
	var word string
	switch w.Choice.Mode {
	case form.ChoiceUnset:
		return
	case form.ChoiceAuto:
		word = choiceAuto
	case form.ChoiceNone:
		word = choiceNone
	case form.ChoiceAny:
		word = choiceRequired
	}
	w.Key("tool_choice")
	switch names := w.Choice.Names; {
	case len(names) == 0 || word == choiceNone:
		w.String(word)
	case len(names) == 1 && word == choiceRequired:
		w.chosen(names[0])
	default:
		w.item("allowed_tools")
		w.KeyString("mode", word)
		w.Array("tools")
		for _, name := range names {
			w.chosen(name)
		}
		w.EndArray()
		w.End()
	}
}

func (w *writing) chosen(name string) {
	w.item(toolKind(w.custom[name]))
	w.KeyString("name", w.toolName(name))
	w.End()
}
