// Package gemini translates Google's generateContent, streamGenerateContent and countTokens into the form and back.
//
// Shapes are those of google.golang.org/genai v1.77 and of https://ai.google.dev/api/generate-content.
package gemini

import (
	"iter"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// Read reads a client's call. The API accepts names in camel case and in snake case; faults and losses have camel case.
func Read(call *providers.Call, loss *form.Loss) (*form.Prompt, form.Ask, *providers.Fault) {
	return read(call, rawjson.Trim(call.Body), "", loss)
}

type reading struct {
	form.Failing

	p    *form.Prompt
	loss *form.Loss
	// prefix precedes the names of the request's fields.
	prefix string
	ids    bool // a result names its call
}

// read reads a request. The prefix precedes the names of its fields.
func read(call *providers.Call, request rawjson.Value, prefix string, loss *form.Loss) (*form.Prompt, form.Ask, *providers.Fault) {
	r := &reading{p: &form.Prompt{From: form.Gemini}, loss: loss, prefix: prefix}
	r.p.Fields[form.FieldTurns] = prefix + "contents"
	r.root(request)
	r.p.Fields[form.FieldResultID] = "functionResponse.name"
	if r.ids {
		r.p.Fields[form.FieldResultID] = "functionResponse.id"
	}
	streams := call.Endpoint.Operation == providers.StreamContent
	ask := form.Ask{
		Model: call.Model, Stream: streams, Array: streams && !call.Stream, WantsUsage: true, ShowThought: r.p.Thinking.Show,
		Search: r.p.Search != nil,
	}
	return r.p, ask, r.Fault
}

func (r *reading) root(request rawjson.Value) {
	for name, value := range request.Members() {
		switch {
		case value.Absent(), name.IsCamel("model"):
		case name.IsCamel("contents"):
			r.contents(value)
		case name.IsCamel("systemInstruction"):
			r.system(value)
		case name.IsCamel("tools"):
			r.tools(value)
		case name.IsCamel("toolConfig"):
			r.toolConfig(value)
		case name.IsCamel("generationConfig"):
			r.config(value)
		case name.IsCamel("cachedContent"):
			r.p.Keep(r.prefix+"cachedContent", value, true)
		case name.IsCamel("safetySettings"), name.IsCamel("labels"), name.IsCamel("serviceTier"),
			name.IsCamel("store"), name.IsCamel("modelArmorConfig"):
			r.p.Keep(r.prefix+rawjson.Camel(name.String()), value, false)
		default:
			r.unknown(r.prefix, name, value)
		}
	}
}

// unknown records a field that no dialect has as dropped.
func (r *reading) unknown(path string, name rawjson.Text, value rawjson.Value) {
	if value.IsSet() {
		r.loss.Drop(path + rawjson.Camel(name.String()))
	}
}

// items yields the elements of an array. Some clients send a single object instead.
func (r *reading) items(value rawjson.Value, at form.Path) iter.Seq2[int, rawjson.Value] {
	if value.IsObject() {
		return func(yield func(int, rawjson.Value) bool) { yield(0, value) }
	}
	if !value.Absent() && !value.IsArray() {
		r.Refuse(at.String(), "It is an array.")
	}
	return value.Items()
}

// system reads the instructions: a content, or one text.
func (r *reading) system(value rawjson.Value) {
	at := form.Path{}.Field(r.prefix + "systemInstruction")
	if text := value.Text(); text != nil {
		r.p.System = append(r.p.System, form.Block{Kind: form.BlockText, Text: text, At: at})
		return
	}
	for i, part := range r.items(value.GetCamel("parts"), at.Field("parts")) {
		at := at.Item("parts", i)
		text := part.GetCamel("text").Text()
		if text == nil {
			if part.IsObject() && part.IsSet() {
				r.Refuse(at.String(), "An instruction is text.")
			}
			continue
		}
		r.p.System = append(r.p.System, form.Block{Kind: form.BlockText, Text: text, At: at})
	}
}

// tools reads the tools. All except functions are the vendor's own.
func (r *reading) tools(value rawjson.Value) {
	for i, tool := range value.Items() {
		at := form.In(r.prefix+"tools", i)
		for name, value := range tool.Members() {
			if name.IsCamel("googleSearch") {
				r.search(value, at.Field("googleSearch"))
				continue
			}
			if !name.IsCamel("functionDeclarations") {
				if kind := rawjson.Camel(name.String()); !value.Absent() {
					r.p.KeepTool(at.Field(kind).String(), kind)
				}
				continue
			}
			for j, declaration := range value.Items() {
				r.declaration(declaration, at.Item("functionDeclarations", j))
			}
		}
	}
}

// search reads Google Search. No other vendor has its members.
func (r *reading) search(value rawjson.Value, at form.Path) {
	if value.Absent() {
		return
	}
	for name, member := range value.Members() {
		r.unknown(at.Name()+".", name, member)
	}
	r.p.Search = &form.Search{At: at, Type: "googleSearch"}
}

func (r *reading) declaration(value rawjson.Value, at form.Path) {
	tool := form.Tool{At: at}
	var openAPI rawjson.Value
	for name, value := range value.Members() {
		switch {
		case value.Absent():
		case name.IsCamel("name"):
			tool.Name = value.Text().String()
		case name.IsCamel("description"):
			tool.Description = value.Text()
		case name.IsCamel("parametersJsonSchema"):
			tool.Schema = value
		case name.IsCamel("parameters"):
			openAPI = value
		case name.IsCamel("response"), name.IsCamel("responseJsonSchema"), name.IsCamel("behavior"):
			r.p.Keep(at.Field(rawjson.Camel(name.String())).Name(), value, false)
		default:
			r.unknown(at.Name()+".", name, value)
		}
	}
	if tool.Name == "" {
		r.Refuse(at.Field("name").String(), "A function has a name.")
	}
	if tool.Schema == nil && openAPI != nil {
		var fault *providers.Fault
		tool.Schema, fault = form.FromOpenAPI(openAPI, at.Field("parameters").String())
		r.Fail(fault)
	}
	r.p.Tools = append(r.p.Tools, tool)
}

func (r *reading) toolConfig(value rawjson.Value) {
	const field = "toolConfig.functionCallingConfig"
	for name, value := range value.Members() {
		if !name.IsCamel("functionCallingConfig") {
			r.p.Keep(r.prefix+"toolConfig."+rawjson.Camel(name.String()), value, false)
			continue
		}
		r.p.Fields[form.FieldChoice] = r.prefix + field
		var names []string
		for name, value := range value.Members() {
			switch {
			case name.IsCamel("mode"):
				r.mode(value.Text(), r.prefix+field+".mode")
			case name.IsCamel("allowedFunctionNames"):
				for _, allowed := range value.Items() {
					names = append(names, allowed.Text().String())
				}
			default:
				r.p.Keep(r.prefix+field+"."+rawjson.Camel(name.String()), value, false)
			}
		}
		if r.p.Choice.Mode == form.ChoiceAny || r.p.Choice.Mode == form.ChoiceAuto {
			r.p.Choice.Names = names
		}
	}
}

func (r *reading) mode(word rawjson.Text, field string) {
	switch {
	case word.Is("AUTO"), word.Is("VALIDATED"):
		r.p.Choice.Mode = form.ChoiceAuto
	case word.Is("ANY"):
		r.p.Choice.Mode = form.ChoiceAny
	case word.Is("NONE"):
		r.p.Choice.Mode = form.ChoiceNone
	case word.Is("MODE_UNSPECIFIED"), word.Empty():
	default:
		r.Refuse(field, "It is AUTO, ANY, NONE or VALIDATED.")
	}
}
