package responses

import (
	"strings"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

func (r *reading) readTools(tools rawjson.Value) {
	for i, tool := range tools.Items() {
		r.readTool(tool, form.In("tools", i), "")
	}
}

// readTool reads a declaration. The tools of a namespace are declared one by one under flat names.
func (r *reading) readTool(value rawjson.Value, at form.Path, namespace string) {
	declared := value.Object()
	space := form.Space{Namespace: namespace, Name: declared.Get("name").Text().String()}
	tool := form.Tool{Name: space.Flat(), Description: declared.Get("description").Text(), At: at}
	if tool.Description.Empty() {
		tool.Description = nil
	}
	switch kind := declared.Get("type").Text(); {
	case kind.Is("namespace") && namespace == "":
		for i, inside := range declared.Get("tools").Items() {
			r.readTool(inside, at.Item("tools", i), space.Name)
		}
		return
	case kind.Is("function"):
		if schema := declared.Get("parameters"); !schema.Absent() {
			tool.Schema = schema
		}
		if strict := declared.Get("strict"); !strict.Absent() {
			tool.Strict = new(strict.True())
		}
	case kind.Is("custom"):
		tool.Custom = true
		if format := declared.Get("format"); format.Get("type").Text().Is("grammar") {
			tool.Grammar = form.Grammar{Syntax: format.Get("syntax").Text(), Definition: format.Get("definition").Text()}
		}
	case isSearch(kind.String()) && namespace == "":
		r.readSearch(value, kind.String(), at)
		return
	case kind.Is("tool_search"): // it finds further tools; without it the model uses the declared ones
		r.loss.Drop(at.Name())
		return
	default:
		r.prompt.KeepTool(at.Field("type").String(), kind.String())
		return
	}
	r.loss.DropOthers(at, declared, "type", "name", "description", "parameters", "strict", "format")
	r.declare(tool, space)
}

// isSearch reports whether a type is a web search: web_search, with or without a date, and its previews.
func isSearch(kind string) bool {
	return kind == "web_search" || strings.HasPrefix(kind, "web_search_")
}

// readSearch reads the web search. A call has at most one. The members of filters and user_location are those of
// https://platform.openai.com/docs/guides/tools-web-search.
func (r *reading) readSearch(declared rawjson.Value, kind string, at form.Path) {
	search := &form.Search{At: at, Type: kind, Context: declared.Get("search_context_size"), Location: declared.Get("user_location")}
	search.Allowed, search.Blocked = declared.At("filters", "allowed_domains"), declared.At("filters", "blocked_domains")
	// Not known: external_web_access, search_content_types and other options.
	r.loss.DropOthers(at, declared.Object(), "type", "search_context_size", "user_location", "filters")
	r.prompt.Search, r.ask.Search = search, true
}

func (r *reading) declare(tool form.Tool, space form.Space) {
	r.prompt.Tools = append(r.prompt.Tools, tool)
	if space.Namespace == "" {
		return
	}
	if r.ask.Spaces == nil {
		r.ask.Spaces = make(map[string]form.Space)
	}
	r.ask.Spaces[tool.Name] = space
}

func (r *reading) readChoice(choice rawjson.Value) {
	if choice.Absent() {
		return
	}
	const field = "tool_choice"
	r.set(form.FieldChoice, field)
	r.declared, _ = form.Declared(r.prompt.Tools)
	if word := choice.Text(); word != nil {
		r.prompt.Choice.Mode = r.choiceMode(word, field)
		return
	}
	switch kind := choice.Get("type").Text(); {
	case kind.Is("function"), kind.Is("custom"):
		r.prompt.Choice = form.Choice{Mode: form.ChoiceAny, Names: []string{r.chosen(choice, field)}}
	case kind.Is("allowed_tools"):
		r.prompt.Choice.Mode, r.listed = r.choiceMode(choice.Get("mode").Text(), field+".mode"), true
		for i, tool := range choice.Get("tools").Items() {
			at := form.Path{}.Field(field).Item("tools", i)
			kind := tool.Get("type").Text()
			if isSearch(kind.String()) {
				r.searchAllowed = true
				continue
			}
			if !kind.Is("function") && !kind.Is("custom") {
				r.prompt.KeepTool(at.Field("type").String(), kind.String())
				continue
			}
			r.prompt.Choice.Names = append(r.prompt.Choice.Names, r.chosen(tool, at.String()))
		}
	case isSearch(kind.String()):
		r.prompt.Choice.Mode, r.forced = form.ChoiceAny, true
	default:
		r.prompt.KeepTool(field+".type", kind.String())
	}
}

// settleSearch applies the choice to the search, which is not one of the tools.
func (r *reading) settleSearch() {
	p := r.prompt
	switch {
	case p.Search == nil:
	case r.listed && !r.searchAllowed:
		p.Search = nil
	default:
		p.Search.Forced = r.forced || p.Choice.Mode == form.ChoiceAny && len(p.Tools) == 0
	}
}

func (r *reading) choiceMode(word rawjson.Text, field string) form.ChoiceMode {
	if word.Empty() {
		return form.ChoiceAuto
	}
	mode, known := form.OpenAIChoice(word)
	if !known {
		r.Refuse(field, "The choice of tools must be auto, none, required, or a tool that `tools` declares.")
	}
	return mode
}

// chosen returns the name of a tool in a choice, which must be declared.
func (r *reading) chosen(tool rawjson.Value, field string) string {
	space := form.Space{Namespace: tool.Get("namespace").Text().String(), Name: tool.Get("name").Text().String()}
	name := space.Flat()
	if !r.declared[name] {
		r.Refuse(field, "The choice names a tool that `tools` does not declare.")
	}
	return name
}
