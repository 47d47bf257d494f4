package form

import (
	"bytes"
	"cmp"
	"slices"

	"modelrelay/providers/rawjson"
)

// JSONLine is the instruction to answer in JSON, for upstreams that have no field for it or also require the word JSON.
const JSONLine = "Answer in JSON."

// Described returns the schema with the output's description before its own, for upstreams without a field for it. A schema with a
// reference cannot have one; carried reports whether nothing was lost.
func (o Output) Described() (schema rawjson.Value, carried bool) {
	switch {
	case o.Description.Blank():
		return o.Schema, true
	case !o.Schema.IsObject() || !o.Schema.Get("$ref").Absent():
		return o.Schema, false
	}
	texts := []rawjson.Text{o.Description}
	if own := o.Schema.Get("description").Text(); !own.Blank() && string(own) != string(o.Description) {
		texts = append(texts, own)
	}
	out := new(Out)
	out.Begin()
	out.KeyText("description", rawjson.Join("\n", texts...))
	for name, value := range o.Schema.Members() {
		if !name.Is("description") {
			out.Name(name)
			out.Raw(value)
		}
	}
	out.End()
	return out.Bytes(), true
}

// ReadSchema reads the schema of an answer in OpenAI's dialects.
func (o *Output) ReadSchema(value rawjson.Value) {
	*o = Output{
		Kind: OutputSchema, Name: value.Get("name").Text().String(), Schema: value.Get("schema"), Strict: value.Get("strict").True(),
		Description: value.Get("description").Text(),
	}
}

// WriteSchema writes the members that ReadSchema reads. The vendor requires a name.
func (o *Output) WriteSchema(out *Out) {
	out.KeyString("name", cmp.Or(o.Name, "output"))
	out.Field("description", o.Description)
	if o.Strict {
		out.JSON(`"strict":true`)
	}
	out.Field("schema", o.Schema)
}

// Line returns the instruction to answer in the format, for upstreams without a field for it; nil for plain text.
func (o Output) Line() rawjson.Text {
	switch o.Kind {
	case OutputJSON:
		return rawjson.Quote(JSONLine)
	case OutputSchema:
		schema, _ := o.Described()
		return rawjson.Quote("Answer in JSON, with nothing around it, that fits this JSON Schema:\n" + string(schema))
	}
	return nil
}

// MentionsJSON reports whether a text of the prompt has the word JSON.
func (p *Prompt) MentionsJSON() bool {
	return slices.ContainsFunc(p.System, mentionsJSON) ||
		slices.ContainsFunc(p.Turns, func(t Turn) bool { return slices.ContainsFunc(t.Blocks, mentionsJSON) })
}

func mentionsJSON(b Block) bool {
	switch {
	case b.Kind == BlockText:
		return hasJSON(b.Text)
	case b.Kind == BlockResult && b.Result != nil:
		return slices.ContainsFunc(b.Result.Blocks, mentionsJSON)
	}
	return false
}

func hasJSON(text []byte) bool {
	for {
		at := bytes.IndexAny(text, "jJ")
		if at < 0 || len(text) < at+4 {
			return false
		}
		if bytes.EqualFold(text[at:at+4], []byte("json")) {
			return true
		}
		text = text[at+1:]
	}
}
