package messages

import (
	"slices"
	"strings"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// tools reads the tools. Other vendors refuse Anthropic's own tools, which it runs itself or whose schemas only it has.
func (r *reader) tools(value rawjson.Value) {
	r.p.Tools = make([]form.Tool, 0, value.Len())
	for i, item := range value.Items() {
		at := form.In("tools", i)
		tool := form.Tool{At: at}
		var kind rawjson.Text
		for name, member := range item.Members() {
			switch string(name.Decoded()) {
			case "type":
				kind = member.Text()
			case "name":
				tool.Name = member.Text().String()
			case "description":
				tool.Description = member.Text()
			case "input_schema":
				tool.Schema = member
			case "strict":
				if member.True() || member.False() {
					tool.Strict = new(member.True())
				}
			case "cache_control":
				tool.Cache = form.MarkOf(member)
			case "max_uses", "allowed_domains", "blocked_domains", "user_location": // of the web search
			default: // eager_input_streaming, input_examples, defer_loading, allowed_callers: the vendor's own, and unknown members
				r.p.Keep(at.Field(name.String()).Name(), member, false)
			}
		}
		if strings.HasPrefix(kind.String(), searchTool) {
			r.search(item, kind.String(), at)
			continue
		}
		if kind != nil && !kind.Is("custom") {
			r.p.KeepTool(at.Field("type").String(), kind.String())
			continue
		}
		if tool.Name == "" {
			r.invalid(at.Field("name"), "It is required.")
		}
		if tool.Schema.Absent() {
			tool.Schema = nil
		}
		r.p.Tools = append(r.p.Tools, tool)
	}
}

// searchTool is the prefix of the web search's types, which end in a date; searchName is its only permitted name. See
// https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool.
const (
	searchTool = "web_search_"
	searchName = "web_search"
)

func (r *reader) search(item rawjson.Value, kind string, at form.Path) {
	r.p.Search = &form.Search{
		At: at, Type: kind, Allowed: item.Get("allowed_domains"), Blocked: item.Get("blocked_domains"), MaxUses: item.Get("max_uses"),
		Location: item.Get("user_location"),
	}
}

// settleChoice reads a choice of the search, which is not one of the tools.
func (r *reader) settleChoice() {
	choice := &r.p.Choice
	if r.p.Search == nil || choice.Mode != form.ChoiceAny {
		return
	}
	if len(choice.Names) == 1 && choice.Names[0] == searchName &&
		!slices.ContainsFunc(r.p.Tools, func(t form.Tool) bool { return t.Name == searchName }) {
		r.p.Search.Forced, choice.Names = true, nil
	}
	r.p.Search.Forced = r.p.Search.Forced || len(r.p.Tools) == 0
}

// choice reads the choice among the tools. See the type ToolChoiceUnionParam.
func (r *reader) choice(value rawjson.Value) {
	kind := value.Get("type").Text()
	if kind == nil {
		return
	}
	r.p.Fields[form.FieldChoice] = "tool_choice"
	switch {
	case kind.Is("auto"):
		r.p.Choice = form.Choice{Mode: form.ChoiceAuto}
	case kind.Is("none"):
		r.p.Choice = form.Choice{Mode: form.ChoiceNone}
	case kind.Is("any"):
		r.p.Choice = form.Choice{Mode: form.ChoiceAny}
	case kind.Is("tool"):
		r.p.Choice = form.Choice{Mode: form.ChoiceAny, Names: []string{value.Get("name").Text().String()}}
	default:
		r.p.Keep("tool_choice.type", value, true)
	}
	if value.Get("disable_parallel_tool_use").True() {
		r.p.Parallel, r.p.Fields[form.FieldParallel] = new(false), "tool_choice.disable_parallel_tool_use"
	}
}

// nameRule returns the vendor's rule of tool names.
func nameRule() form.NameRule { return form.NameRule{Max: maxToolLen} }

// pickTools picks the tools that may be called, and refuses a choice that the model cannot follow. The choice has only declared tools.
func (w *arranged) pickTools() {
	choice, field := w.p.Choice, w.p.Fields[form.FieldChoice]
	w.tools = w.p.Tools
	if len(choice.Names) > 1 || len(choice.Names) == 1 && choice.Mode != form.ChoiceAny {
		w.tools = choice.Allowed(w.p.Tools)
	}
	if w.forced() && w.traits.AlwaysThinks {
		w.Fail(form.Refusedf(field, form.Messages, "and always thinks: a call cannot force such a model to use a tool."))
	}
}

func (w *arranged) forced() bool {
	return w.p.Choice.Mode == form.ChoiceAny && (len(w.tools) > 0 || w.p.Search != nil)
}

// writeTools writes the tools and the choice among them.
func (w *writer) writeTools() {
	if len(w.tools) == 0 && w.p.Search == nil {
		return
	}
	w.out.Array("tools")
	for i := range w.tools {
		w.tool(w.tools[i].Function())
	}
	w.writeSearch()
	w.out.EndArray()
	w.writeChoice()
}

// writeSearch writes the web search. Domains are either allowed or blocked.
func (w *writer) writeSearch() {
	s := w.p.Search
	if s == nil {
		return
	}
	out := w.out
	out.JSON(`{"type":"web_search_20250305","name":"web_search"`)
	if n, ok := s.MaxUses.Int(); ok && n > 0 {
		out.KeyInt("max_uses", n)
	}
	lost := map[string]rawjson.Value{"search_context_size": s.Context}
	switch {
	case s.Allowed.Len() > 0:
		out.KeyRaw("allowed_domains", s.Allowed)
		lost["blocked_domains"] = s.Blocked
	case s.Blocked.Len() > 0:
		out.KeyRaw("blocked_domains", s.Blocked)
	}
	s.WriteLocation(out, "")
	out.End()
	s.Drop(w.loss, lost)
}

// closedSchema is the schema of a strict tool without arguments.
const closedSchema = `{"type":"object","properties":{},"additionalProperties":false}`

func (w *writer) tool(tool form.Tool) {
	schema, strict := tool.Schema, tool.Strict != nil && *tool.Strict
	if strict && w.traits.Schema {
		if !schema.IsSet() {
			schema = rawjson.Value(closedSchema)
		}
		fit, changed, fault := form.FitSchema(schema, tool.At.String(), form.Messages)
		w.Fail(fault)
		if schema = fit; changed {
			w.loss.Change(tool.At.Name())
		}
	} else if strict {
		strict = false
		w.loss.Drop(tool.At.Field("strict").Name())
	}
	out := w.out
	out.JSON(`{"name":?`, w.p.ToolName(tool.Name, nameRule()))
	if !tool.Description.Empty() {
		out.KeyText("description", tool.Description)
	}
	out.Key("input_schema")
	writeSchema(out, schema)
	if strict {
		out.JSON(`"strict":true`)
	}
	w.mark(tool.Cache, tool.At, &w.skipFixed)
	out.End()
}

// writeSchema writes the schema of a tool's input, which must be an object.
func writeSchema(out *form.Out, schema rawjson.Value) {
	switch {
	case !schema.IsSet() || !schema.IsObject():
		out.JSON(`{"type":"object","properties":{}}`)
	case schema.Get("type").Absent():
		out.JSON(`{"type":"object"`)
		for name, member := range schema.Members() {
			if !name.Is("type") {
				out.Name(name)
				out.Raw(member)
			}
		}
		out.End()
	default:
		out.Raw(schema)
	}
}

// writeChoice writes tool_choice. It writes nothing if the call does not specify one.
func (w *writer) writeChoice() {
	choice, single := w.p.Choice, w.p.Parallel != nil && !*w.p.Parallel
	kind := "auto"
	forced := w.p.Search != nil && w.p.Search.Forced
	switch {
	case choice.Mode == form.ChoiceNone:
		kind, single = "none", false
	case forced:
		kind = "tool"
	case choice.Mode == form.ChoiceAny && len(choice.Names) == 1:
		kind = "tool"
	case choice.Mode == form.ChoiceAny:
		kind = "any"
	case choice.Mode == form.ChoiceUnset && !single:
		return
	}
	w.out.JSON(`"tool_choice":{"type":?`, kind)
	switch {
	case forced && kind == "tool":
		w.out.KeyString("name", searchName)
	case kind == "tool":
		w.out.KeyString("name", w.p.ToolName(choice.Names[0], nameRule()))
	}
	if single {
		w.out.JSON(`"disable_parallel_tool_use":true`)
	}
	w.out.End()
}
