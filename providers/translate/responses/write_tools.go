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
		w.JSON(`{"type":?,"name":?`, toolKind(tool.Custom), w.toolName(tool.Name))
		w.Field("description", tool.Description)
		if tool.Custom {
			w.grammar(&tool.Grammar)
		} else {
			// "strict" is always set: without it, the vendor makes the tool strict if possible
			// (https://platform.openai.com/docs/guides/function-calling).
			w.JSON(`"parameters":?,"strict":?`, tool.Parameters(), tool.Strict != nil && *tool.Strict)
		}
		w.End()
	}
	w.search()
	w.EndArray()
	if w.Parallel != nil && !*w.Parallel {
		w.JSON(`"parallel_tool_calls":false`)
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
	w.JSON(`{"type":"web_search"`)
	if s.Allowed.Len() > 0 {
		w.JSON(`"filters":{"allowed_domains":?}`, s.Allowed)
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
	w.JSON(`"format":{"type":"grammar"`)
	w.Field("syntax", grammar.Syntax)
	w.Field("definition", grammar.Definition)
	w.End()
}

func (w *writing) choice() {
	mode, names := w.Choice.Mode, w.Choice.Names
	if mode == form.ChoiceUnset {
		return
	}
	w.Key("tool_choice")
	switch {
	case w.Search != nil && w.Search.Forced && mode == form.ChoiceAny:
		w.JSON(`{"type":"web_search"}`)
	case len(names) == 0 || mode == form.ChoiceNone:
		w.String(mode.OpenAI())
	case len(names) == 1 && mode == form.ChoiceAny:
		w.chosen(names[0])
	default:
		w.JSON(`{"type":"allowed_tools","mode":?,"tools":[`, mode.OpenAI())
		for _, name := range names {
			w.chosen(name)
		}
		w.JSON("]}")
	}
}

func (w *writing) chosen(name string) {
	w.JSON(`{"type":?,"name":?}`, toolKind(w.custom[name]), w.toolName(name))
}
