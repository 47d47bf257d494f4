package responses

import (
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// tools writes the declarations and the choice among them. Without tools it writes nothing.
func (w *writing) tools() {
	if len(w.Tools) == 0 && w.Search == nil {
		return
	}
	w.Array("tools")
	for i := range w.Tools {
		tool := &w.Tools[i]
		w.DropMark(tool.Cache, tool.At, w.loss)
		w.Typed(toolKind(tool.Custom))
		w.KeyString("name", w.toolName(tool.Name))
		w.Field("description", tool.Description)
		if tool.Custom {
			w.grammar(&tool.Grammar)
		} else {
			// "strict" is always set: without it, the vendor makes the tool strict if possible
			// (https://platform.openai.com/docs/guides/function-calling).
			w.Field("parameters", tool.Parameters())
			w.Key("strict")
			w.Bool(tool.Strict != nil && *tool.Strict)
		}
		w.End()
	}
	w.search()
	w.EndArray()
	if w.Parallel != nil && !*w.Parallel {
		w.Literal(`"parallel_tool_calls":false`)
	}
	w.choice()
}

// includeSources requests the pages of a search in the answer.
const includeSources = "web_search_call.action.sources"

func (w *writing) search() {
	s := w.Search
	if s == nil {
		return
	}
	w.Typed("web_search")
	if s.Allowed.Len() > 0 {
		w.Object("filters")
		w.KeyRaw("allowed_domains", s.Allowed)
		w.End()
	}
	s.WriteLocation(w.Out, "")
	w.Field("search_context_size", s.Context)
	w.End()
	w.include.String(includeSources)
	s.Drop(w.loss, map[string]rawjson.Value{"blocked_domains": s.Blocked, "max_uses": s.MaxUses})
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
	w.Typed("grammar")
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
	case w.Search != nil && w.Search.Forced && word == choiceRequired:
		w.Typed("web_search")
		w.End()
	case len(names) == 0 || word == choiceNone:
		w.String(word)
	case len(names) == 1 && word == choiceRequired:
		w.chosen(names[0])
	default:
		w.Typed("allowed_tools")
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
	w.Typed(toolKind(w.custom[name]))
	w.KeyString("name", w.toolName(name))
	w.End()
}
