package gemini

import (
	"slices"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// nameRule returns the rule of functions' names; see FunctionDeclaration in google.golang.org/genai.
func nameRule() form.NameRule { return form.NameRule{Max: 128, Also: "_.:", Letter: true} }

// maxStops is how many stop sequences the vendor accepts.
const maxStops = 5

// Write writes the call for an upstream. It refers to long values, and may add to p.Renamed.
func Write(p *form.Prompt, to form.Target, loss *form.Loss) (providers.Payload, *providers.Fault) {
	w := &writing{p: p, to: to, loss: loss, out: form.NewPayload()}
	w.out.Begin()
	w.root()
	w.out.End()
	return w.out.Payload(), w.Fault
}

type writing struct {
	form.Failing

	p    *form.Prompt
	to   form.Target
	loss *form.Loss
	out  *form.Out
	// line is the instruction to answer in a format for which there is no field.
	line rawjson.Text
}

func (w *writing) root() {
	w.Fail(w.p.DropOwn(form.Gemini, w.loss))
	system, turns, fault := w.p.Arrange(form.Arrangement{Takes: takes})
	w.Fail(fault)
	tools := w.tools()
	w.format(len(tools) > 0)
	w.system(system)
	if len(tools) > 0 { // a model either searches or calls functions
		w.Fail(w.p.LeaveSearch(form.Gemini, w.loss))
		w.declare(tools)
		w.choose()
	} else if s := w.p.Search; s != nil && w.p.Choice.Mode != form.ChoiceNone {
		w.out.JSON(`"tools":[{"googleSearch":{}}]`)
		s.Drop(w.loss, map[string]rawjson.Value{
			"allowed_domains": s.Allowed, "blocked_domains": s.Blocked, "max_uses": s.MaxUses, "search_context_size": s.Context,
			"user_location": s.Location,
		})
		if s.Forced {
			w.loss.Change(w.p.Fields[form.FieldChoice])
		}
	}
	w.out.Array("contents")
	checked := checkedFrom(turns)
	for i := range turns {
		w.turn(&turns[i], i >= checked)
	}
	w.out.EndArray()
	if n := len(turns); n > 0 && turns[n-1].Role == form.Assistant && w.p.From != form.Gemini {
		w.loss.Change(w.p.Fields[form.FieldTurns])
	}
	w.config()
}

// checkedFrom returns the index of the first turn whose calls the vendor may check for signatures: the one after the last user's turn
// without results. The vendor does not document a turn with text and results.
func checkedFrom(turns []form.Turn) int {
	for i, turn := range slices.Backward(turns) {
		if turn.Role == form.User && !slices.ContainsFunc(turn.Blocks, func(b form.Block) bool { return b.Kind == form.BlockResult }) {
			return i + 1
		}
	}
	return 0
}

// takes reports whether a thought, or an empty text, has state of this vendor.
func takes(block *form.Block) bool {
	return slices.ContainsFunc(block.State, func(s form.State) bool { return s.Kind == form.StateGemini })
}

func (w *writing) system(blocks []form.Block) {
	if len(blocks) == 0 && w.line == nil {
		return
	}
	w.out.JSON(`"systemInstruction":{"parts":[`)
	for i := range blocks {
		if blocks[i].Kind != form.BlockText {
			w.Fail(form.Refusedf(blocks[i].At.String(), form.Gemini, "which accepts only text as instructions."))
			continue
		}
		w.p.DropMark(blocks[i].Cache, blocks[i].At, w.loss)
		w.text(blocks[i].Text)
	}
	if w.line != nil {
		w.text(w.line)
	}
	w.out.JSON("]}")
}

func (w *writing) text(text rawjson.Text) { w.out.JSON(`{"text":?}`, text) }

// tools returns the tools that may be called. The vendor accepts names only for a forced choice.
func (w *writing) tools() []form.Tool {
	choice := w.p.Choice
	if choice.Mode == form.ChoiceAny || len(choice.Names) == 0 {
		return w.p.Tools
	}
	return choice.Allowed(w.p.Tools)
}

func (w *writing) declare(tools []form.Tool) {
	w.out.JSON(`"tools":[{"functionDeclarations":[`)
	for _, tool := range tools {
		w.p.DropMark(tool.Cache, tool.At, w.loss)
		if tool.Strict != nil && *tool.Strict {
			w.loss.Drop(tool.At.Field("strict").Name())
		}
		tool = tool.Function()
		w.out.JSON(`{"name":?`, w.p.ToolName(tool.Name, nameRule()))
		if !tool.Description.Empty() {
			w.out.KeyText("description", tool.Description)
		}
		if takesInput(tool.Schema) {
			w.out.KeyRaw("parametersJsonSchema", tool.Schema)
		}
		w.out.End()
	}
	w.out.JSON("]}]")
}

// takesInput reports whether a schema defines more than that the input is an object.
func takesInput(schema rawjson.Value) bool {
	for name, value := range schema.Members() {
		switch {
		case name.Is("type") && value.Text().Is("object"), name.Is("$schema"), name.Is("additionalProperties"),
			(name.Is("properties") || name.Is("required")) && !value.IsSet():
		default:
			return true
		}
	}
	return false
}

// choose writes whether and which functions are called.
func (w *writing) choose() {
	if w.p.Parallel != nil && !*w.p.Parallel {
		w.loss.Drop(w.p.Fields[form.FieldParallel])
	}
	if w.p.Choice.Mode == form.ChoiceUnset {
		return
	}
	mode := [...]string{form.ChoiceAuto: "AUTO", form.ChoiceNone: "NONE", form.ChoiceAny: "ANY"}[w.p.Choice.Mode]
	w.out.JSON(`"toolConfig":{"functionCallingConfig":{"mode":?`, mode)
	if w.p.Choice.Mode == form.ChoiceAny && len(w.p.Choice.Names) > 0 {
		w.out.Array("allowedFunctionNames")
		for _, name := range w.p.Choice.Names {
			w.out.String(w.p.ToolName(name, nameRule()))
		}
		w.out.EndArray()
	}
	w.out.JSON("}}")
}
