package form

import (
	"bytes"
	"slices"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
)

// The bounds of a schema that is rewritten. The limits of vendors are much smaller.
const (
	maxSchemaDepth = 100
	maxSchemaBytes = 512 << 10
)

// FromOpenAPI rewrites a schema of OpenAPI 3.0, as in Gemini's "parameters" and "responseSchema". The fault names the field at.
func FromOpenAPI(schema rawjson.Value, at string) (rawjson.Value, *providers.Fault) {
	if !schema.IsObject() {
		return schema, nil
	}
	root, fault := readSchema(schema, at, Gemini)
	if fault != nil {
		return nil, fault
	}
	out := new(Out)
	openAPI(out, root)
	return out.Bytes(), nil
}

// schemaNode is a value of a schema: an object's members and an array's elements are its items.
type schemaNode struct {
	name  rawjson.Text // of a member
	value rawjson.Value
	items []*schemaNode
	index map[string]*schemaNode // of members, made by get
}

// readSchema reads a schema once from its start to its end.
func readSchema(schema rawjson.Value, at string, to Dialect) (*schemaNode, *providers.Fault) {
	if len(schema) > maxSchemaBytes {
		return nil, Refusedf(at, to, "for which this schema would have to be rewritten. It is longer than %d bytes.", maxSchemaBytes)
	}
	root := new(schemaNode)
	if _, fits := root.read(schema, 0, 1); !fits {
		return nil, Refusedf(at, to, "for which this schema would have to be rewritten. It is nested deeper than %d levels.", maxSchemaDepth)
	}
	return root, nil
}

// read reads the value that begins at an offset of a valid document and returns its end. It reports false if the value is too deep.
func (n *schemaNode) read(v []byte, at, depth int) (end int, fits bool) {
	from := at
	if c := v[at]; c != '{' && c != '[' {
		end = rawjson.End(v, at)
		n.value = v[from:end]
		return end, true
	}
	if depth > maxSchemaDepth {
		return at, false
	}
	object := v[at] == '{'
	for at = rawjson.Space(v, at+1); v[at] != '}' && v[at] != ']'; {
		item := new(schemaNode)
		if object {
			nameEnd := rawjson.End(v, at)
			item.name = v[at:nameEnd]
			at = rawjson.Space(v, rawjson.Space(v, nameEnd)+1)
		}
		if at, fits = item.read(v, at, depth+1); !fits {
			return at, false
		}
		n.items = append(n.items, item)
		if at = rawjson.Space(v, at); v[at] == ',' {
			at = rawjson.Space(v, at+1)
		}
	}
	n.value = v[from : at+1]
	return at + 1, true
}

// get returns the first member of a name, nil for none.
func (n *schemaNode) get(name string) *schemaNode {
	if !n.value.IsObject() {
		return nil
	}
	if n.index == nil {
		n.index = make(map[string]*schemaNode, len(n.items))
		for _, member := range slices.Backward(n.items) {
			n.index[member.name.String()] = member
		}
	}
	return n.index[name]
}

// schemaShape is the kind of value of a keyword of JSON Schema.
type schemaShape int

const (
	noSchema     schemaShape = iota
	oneSchema                // a schema, or a boolean
	schemaList               // an array of schemas
	namedSchemas             // an object whose members are schemas, under names that are not keywords
)

// shapeOf returns the shape of a keyword's value. See https://json-schema.org/draft/2020-12/schema.
func shapeOf(keyword string) schemaShape {
	switch keyword {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		return namedSchemas
	case "allOf", "anyOf", "oneOf", "prefixItems":
		return schemaList
	case "items", "additionalProperties", "additionalItems", "not", "if", "then", "else", "contains", "propertyNames",
		"unevaluatedItems", "unevaluatedProperties":
		return oneSchema
	}
	return noSchema
}

// schemas calls each with the schemas directly below a keyword's value.
func (n *schemaNode) schemas(each func(*schemaNode)) {
	switch shape := shapeOf(n.name.String()); {
	case shape == namedSchemas && n.value.IsObject(), shape != noSchema && n.value.IsArray():
		for _, item := range n.items {
			each(item)
		}
	case shape == oneSchema && n.value.IsObject():
		each(n)
	}
}

// write writes a keyword's value, with write for the schemas directly below it.
func (n *schemaNode) write(out *Out, write func(*schemaNode)) {
	switch shape := shapeOf(n.name.String()); {
	case shape == namedSchemas && n.value.IsObject():
		out.Begin()
		for _, property := range n.items {
			out.Name(property.name)
			write(property)
		}
		out.End()
	case shape != noSchema && n.value.IsArray():
		out.BeginArray()
		for _, item := range n.items {
			write(item)
		}
		out.EndArray()
	case shape == oneSchema:
		write(n)
	default:
		out.Raw(n.value)
	}
}

// recurs reports whether a schema refers to itself, directly or through others. References out of the document do not count.
func (n *schemaNode) recurs() bool {
	const visiting, visited = 1, 2
	seen := make(map[*schemaNode]int)
	var visit func(*schemaNode) bool
	visit = func(schema *schemaNode) (recurs bool) {
		switch seen[schema] {
		case visiting:
			return true
		case visited:
			return false
		}
		seen[schema] = visiting
		for _, member := range schema.items {
			if recurs {
				break
			}
			if member.name.Is("$ref") {
				target := n.resolve(member.value.Text())
				recurs = target != nil && visit(target)
				continue
			}
			if member.name.Is("$defs") || member.name.Is("definitions") {
				continue // definitions are visited by reference
			}
			member.schemas(func(below *schemaNode) {
				// A keyword with one schema is the node of that schema, so it is never the node of its parent.
				recurs = recurs || below.value.IsObject() && visit(below)
			})
		}
		seen[schema] = visited
		return recurs
	}
	return visit(n)
}

// resolve returns the target of a reference such as "#/$defs/Node", nil for none within the schema.
func (n *schemaNode) resolve(ref rawjson.Text) *schemaNode {
	pointer, local := strings.CutPrefix(ref.String(), "#")
	if !local || pointer != "" && pointer[0] != '/' {
		return nil
	}
	if pointer == "" {
		return n
	}
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for step := range strings.SplitSeq(pointer[1:], "/") {
		if n = n.get(unescape.Replace(step)); n == nil {
			return nil
		}
	}
	return n
}

// openAPI writes a schema of OpenAPI 3.0 as JSON Schema. Its keywords are those of Schema of google.golang.org/genai, also in snake case.
func openAPI(out *Out, schema *schemaNode) {
	if !schema.value.IsObject() {
		out.Raw(schema.value)
		return
	}
	null := false
	for _, member := range schema.items {
		if bytes.IndexByte(member.name, '_') >= 0 {
			member.name = rawjson.Quote(rawjson.Camel(member.name.String()))
		}
		null = null || member.name.Is("nullable") && member.value.True()
	}
	out.Begin()
	for _, member := range schema.items {
		switch name := member.name.String(); {
		case name == "nullable", name == "propertyOrdering", name == "format" && member.value.Text().Is("enum"),
			name == "type" && member.value.Text().Is("TYPE_UNSPECIFIED"):
		case name == "type" && member.value.IsText():
			if word := rawjson.Value(bytes.ToLower(member.value)); null && string(word) != `"null"` {
				out.JSON(`"type":[?,"null"]`, word)
			} else {
				out.KeyRaw("type", word)
			}
		case name == "example":
			out.JSON(`"examples":[?]`, member.value)
		default:
			out.Name(member.name)
			openAPIValue(out, member, null)
		}
	}
	out.End()
}

// openAPIValue writes the value of one of OpenAPI's keywords.
func openAPIValue(out *Out, member *schemaNode, null bool) {
	switch name := member.name.String(); {
	case name == "enum" && null && member.value.IsArray():
		out.BeginArray()
		for _, item := range member.items {
			if !item.value.Absent() {
				out.Raw(item.value)
			}
		}
		out.JSON("null]")
	case isLimit(name) && member.value.IsText() && isNumber(member.value.Text().Inner()):
		out.Raw(member.value.Text().Inner())
	default:
		if name == "anyOf" && null {
			member.items = append(member.items, nullSchema())
		}
		member.write(out, func(schema *schemaNode) { openAPI(out, schema) })
	}
}

func nullSchema() *schemaNode {
	schema := new(schemaNode)
	schema.read([]byte(`{"type":"null"}`), 0, 1)
	return schema
}

// isLimit reports whether a keyword's value is a number that protobuf's JSON may write as a text.
func isLimit(keyword string) bool {
	switch keyword {
	case "minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties", "minimum", "maximum":
		return true
	}
	return false
}

// isNumber reports whether any bytes are a JSON number.
func isNumber(text []byte) bool { return rawjson.Value(text).IsNumber() && rawjson.Valid(text) }
