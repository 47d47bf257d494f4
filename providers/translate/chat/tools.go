package chat

import (
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// readTools reads the tools and the choice among them. Without tools, a choice has no effect unless it forces a tool.
func (r *reading) readTools() {
	choice, field := r.root.Get("tool_choice"), "tool_choice"
	for i, value := range r.root.Get("tools").Items() {
		r.tool(value, form.In("tools", i))
	}
	if len(r.Tools) == 0 && r.root.Get("functions").IsSet() {
		r.ask.Legacy = true
		choice, field = r.root.Get("function_call"), "function_call"
		r.loss.DropUnknown("tool_choice", r.root.Get("tool_choice"))
		r.Parallel, r.Fields[form.FieldParallel] = new(false), "functions"
		for i, value := range r.root.Get("functions").Items() {
			r.function(value, form.In("functions", i), form.Tool{})
		}
	}
	if !r.ask.Legacy {
		r.loss.DropUnknown("functions", r.root.Get("functions"))
		r.loss.DropUnknown("function_call", r.root.Get("function_call"))
	}
	if len(r.Tools) == 0 {
		r.Parallel = nil
	}
	r.readChoice(choice, field)
}

func (r *reading) tool(value rawjson.Value, at form.Path) {
	members := value.Object()
	kind, function, custom := members.Get("type").Text(), members.Get("function"), members.Get("custom")
	tool := form.Tool{Cache: form.MarkOf(members.Get("cache_control"))}
	r.loss.DropOthers(at, members, "type", "function", "custom", "cache_control")
	switch {
	case (kind == nil || kind.Is("function")) && function.IsObject():
		r.function(function, at, tool)
	case kind.Is("custom") && custom.IsObject():
		r.custom(custom, at, tool)
	case kind.Is("function"), kind.Is("custom"):
		r.Refuse(at.Field(kind.String()).String(), "The tool must be declared here.")
	default:
		r.Refuse(at.Field("type").String(), "Only functions and custom tools can be translated for the model's upstream.")
	}
}

// function reads the declaration of a function at a path, or in its member "function".
func (r *reading) function(value rawjson.Value, at form.Path, tool form.Tool) {
	tool.At = at
	if !r.ask.Legacy {
		tool.At = at.Field("function")
	}
	members := value.Object()
	tool.Name, tool.Description = members.Get("name").Text().String(), members.Get("description").Text()
	if schema := members.Get("parameters"); schema.IsObject() {
		tool.Schema = schema
	}
	if strict := members.Get("strict"); !strict.Absent() {
		tool.Strict = new(strict.True())
	}
	tool.Cache = max(tool.Cache, form.MarkOf(members.Get("cache_control")))
	r.loss.DropOthers(tool.At, members, "name", "description", "parameters", "strict", "cache_control")
	r.declare(tool)
}

func (r *reading) custom(value rawjson.Value, at form.Path, tool form.Tool) {
	tool.At, tool.Custom = at.Field("custom"), true
	tool.Name, tool.Description = value.Get("name").Text().String(), value.Get("description").Text()
	if grammar := value.At("format", "grammar"); grammar.IsObject() {
		tool.Grammar = form.Grammar{Syntax: grammar.Get("syntax").Text(), Definition: grammar.Get("definition").Text()}
	}
	r.declare(tool)
}

func (r *reading) declare(tool form.Tool) {
	if tool.Name == "" {
		r.Refuse(tool.At.Field("name").String(), "The tool needs a name.")
	}
	r.Tools = append(r.Tools, tool)
}

// readChoice reads a word, a function's name, or a list of tools.
func (r *reading) readChoice(value rawjson.Value, field string) {
	if value.Absent() {
		return
	}
	r.Fields[form.FieldChoice] = field
	word, kind := value.Text(), value.Get("type").Text()
	allowed := value.Get("allowed_tools")
	mode, known := form.OpenAIChoice(word)
	switch {
	case known:
		r.Choice.Mode = mode
	case kind.Is("allowed_tools"):
		r.Choice.Mode = form.ChoiceAuto
		if allowed.Get("mode").Text().Is("required") {
			r.Choice.Mode = form.ChoiceAny
		}
		for _, tool := range allowed.Get("tools").Items() {
			r.Choice.Names = append(r.Choice.Names, chosen(tool))
		}
		if r.Choice.Names == nil {
			r.Refuse(field, "The list of allowed tools is empty.")
		}
	case value.IsObject():
		r.Choice = form.Choice{Mode: form.ChoiceAny, Names: []string{chosen(value)}}
	default:
		r.Refuse(field, "This choice of tools cannot be translated for the model's upstream.")
	}
	if len(r.Tools) == 0 {
		if r.Choice.Mode == form.ChoiceAny {
			r.Refuse(field, "There are no tools to call.")
		}
		r.Choice = form.Choice{}
	}
}

// chosen returns the name in a reference to a tool.
func chosen(value rawjson.Value) string {
	for _, kind := range []string{"function", "custom"} {
		if name := value.At(kind, "name").Text(); !name.Empty() {
			return name.String()
		}
	}
	return value.Get("name").Text().String()
}

// tools writes the declarations and the choice among them.
func (w *writing) tools() {
	tools := w.declared()
	if len(tools) == 0 {
		return
	}
	w.Array("tools")
	for _, tool := range tools {
		w.tool(tool.Function())
	}
	w.EndArray()
	if w.Parallel != nil && !*w.Parallel {
		w.JSON(`"parallel_tool_calls":false`)
	}
	w.choice()
}

// declared returns the tools to send. Compatible servers have no lists of allowed tools, so they receive only the allowed ones.
func (w *writing) declared() []form.Tool {
	if !w.to.OtherVendor || !w.some() {
		return w.Tools
	}
	return w.Choice.Allowed(w.Tools)
}

// some reports whether several, but not all, tools may be called.
func (w *writing) some() bool {
	names := len(w.Choice.Names)
	return names > 1 || names == 1 && w.Choice.Mode != form.ChoiceAny
}

func (w *writing) tool(tool form.Tool) {
	w.DropMark(tool.Cache, tool.At, w.loss)
	w.JSON(`{"type":"function","function":{"name":?`, w.ToolName(tool.Name, nameRule))
	w.Field("description", tool.Description)
	w.Field("parameters", tool.Parameters())
	if tool.Strict != nil {
		w.JSON(`"strict":?`, *tool.Strict)
	}
	w.JSON("}}")
}

func (w *writing) choice() {
	mode := w.Choice.Mode.OpenAI()
	if mode == "" {
		return
	}
	w.Key("tool_choice")
	switch {
	case w.Choice.Mode == form.ChoiceNone, len(w.Choice.Names) == 0, w.some() && w.to.OtherVendor:
		w.String(mode)
	case w.some():
		w.JSON(`{"type":"allowed_tools","allowed_tools":{"mode":?,"tools":[`, mode)
		for _, name := range w.Choice.Names {
			w.named(name)
		}
		w.JSON("]}}")
	default:
		w.named(w.Choice.Names[0])
	}
}

func (w *writing) named(name string) {
	w.JSON(`{"type":"function","function":{"name":?}}`, w.ToolName(name, nameRule))
}
