package form

import (
	"bytes"
	"math"
	"slices"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
)

// FitSchema rewrites a JSON Schema into the subset that a vendor accepts: Gemini in its responseJsonSchema, Anthropic in
// output_config.format and in strict tools. The other dialects accept any schema unchanged.
// Unsupported keywords become text at the end of the description, and changed reports that. The fault names the field at.
func FitSchema(schema rawjson.Value, at string, to Dialect) (fit rawjson.Value, changed bool, fault *providers.Fault) {
	var subset schemaSubset
	switch to {
	case Gemini:
		subset = schemaSubset{keyword: geminiKeyword, recursive: true}
	case Messages:
		subset = schemaSubset{keyword: anthropicKeyword, closed: true}
	default:
		return schema, false, nil
	}
	if !schema.IsObject() {
		return schema, false, nil
	}
	root, fault := readSchema(schema, at, to)
	if fault != nil {
		return nil, false, fault
	}
	if !subset.recursive && root.recurs() {
		return nil, false, Refusedf(at, to, "which does not accept a schema that refers to itself.")
	}
	c := cutter{subset: subset}
	c.schema(root)
	return c.out.Bytes(), c.changed, nil
}

// schemaSubset is the part of JSON Schema that a vendor accepts. Both vendors accept no members next to a reference.
type schemaSubset struct {
	// keyword returns the keyword under which a member is sent: asText if the vendor does not accept it, omitted if nothing is lost.
	keyword func(member *schemaNode) string
	// closed: every object must declare that it has no other properties. Otherwise keywords that begin with "$" may be next to a reference.
	closed bool
	// recursive: a schema may refer to itself.
	recursive bool
}

// What becomes of a keyword that is not sent.
const (
	asText  = ""
	omitted = "-"
)

// geminiKeyword returns the keyword for responseJsonSchema: see its comment in the type GenerateContentConfig of google.golang.org/genai.
func geminiKeyword(member *schemaNode) string {
	switch name := member.name.String(); name {
	case "$id", "$defs", "$ref", "$anchor", "type", "format", "title", "items", "prefixItems", "minItems", "maxItems", "minimum",
		"maximum", "anyOf", "oneOf", "properties", "additionalProperties", "required", "propertyOrdering":
		if name == "items" && member.value.IsArray() {
			return "prefixItems" // the spelling of drafts before 2020-12
		}
		return name
	case "definitions":
		return "$defs"
	case "enum":
		// "For strings and numbers"; a null is of a type that has null as well.
		if !slices.ContainsFunc(member.items, func(n *schemaNode) bool { return !enumerable(n.value) && !n.value.Absent() }) {
			return name
		}
	case "const":
		if enumerable(member.value) {
			return "enum"
		}
	case "exclusiveMinimum":
		if member.value.IsNumber() {
			return "minimum"
		}
	case "exclusiveMaximum":
		if member.value.IsNumber() {
			return "maximum"
		}
	case "$schema", "$comment":
		return omitted
	}
	return asText
}

func enumerable(value rawjson.Value) bool { return value.IsText() || value.IsNumber() }

// anthropicKeyword returns the keyword for Anthropic's structured outputs: see its Go SDK (schemautil), and "default" and "definitions" on
// https://platform.claude.com/docs/en/build-with-claude/structured-outputs.
func anthropicKeyword(member *schemaNode) string {
	switch name := member.name.String(); name {
	case "$ref", "$defs", "definitions", "type", "const", "allOf", "anyOf", "title", "default", "properties", "additionalProperties",
		"required":
		return name
	case "items":
		if !member.value.IsArray() {
			return name
		}
	case "oneOf":
		return "anyOf"
	case "enum":
		if !slices.ContainsFunc(member.items, func(n *schemaNode) bool { return n.value.IsObject() || n.value.IsArray() }) {
			return name
		}
	case "minItems":
		if n, ok := member.value.Int(); ok && (n == 0 || n == 1) {
			return name
		}
	case "format":
		switch member.value.Text().String() {
		case "date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid":
			return name
		}
	case "pattern":
		if plainPattern(member.value.Text().String()) {
			return name
		}
	case "$schema", "$comment", "$id":
		return omitted
	}
	return asText
}

// plainPattern reports whether a regular expression has no lookaround, no backreference and no word boundary, which Anthropic refuses.
func plainPattern(pattern string) bool {
	if pattern == "" || strings.Contains(pattern, "(?") {
		return false
	}
	for i := 0; i+1 < len(pattern); i++ {
		if pattern[i] == '\\' {
			i++
			if c := pattern[i]; c == 'b' || c == 'B' || c == 'k' || c >= '1' && c <= '9' {
				return false
			}
		}
	}
	return true
}

// cutter writes the part of a schema that a vendor accepts.
type cutter struct {
	subset  schemaSubset
	out     Out
	changed bool
}

// cutSchema is one schema during the rewrite: the members that are sent, by the sent keyword, and those that become text.
type cutSchema struct {
	kept         []keptKeyword
	words        []*schemaNode
	descriptions []rawjson.Text
}

type keptKeyword struct {
	as     string
	member *schemaNode
}

func (s *cutSchema) find(as string) *schemaNode {
	for _, k := range s.kept {
		if k.as == as {
			return k.member
		}
	}
	return nil
}

func (s *cutSchema) remove(as string) {
	s.kept = slices.DeleteFunc(s.kept, func(k keptKeyword) bool { return k.as == as })
}

func (c *cutter) schema(schema *schemaNode) {
	if !schema.value.IsObject() {
		if schema.value.True() {
			c.out.JSON("{}")
		} else {
			c.out.Raw(schema.value)
		}
		return
	}
	var s cutSchema
	c.collect(schema, &s)
	c.bound(&s, "exclusiveMinimum", "minimum")
	c.bound(&s, "exclusiveMaximum", "maximum")
	c.out.Begin()
	closed := c.subset.closed && c.closes(&s)
	c.reference(&s)
	for _, k := range s.kept {
		c.out.Key(k.as)
		c.keyword(k, &s)
	}
	if closed && s.find("properties") == nil {
		c.out.JSON(`"properties":{}`)
	}
	if closed {
		c.out.JSON(`"additionalProperties":false`)
	}
	if text := s.description(); text != nil {
		c.out.KeyText("description", text)
	}
	c.out.End()
	c.changed = c.changed || len(s.words) > 0
}

// collect sorts a schema's members. An allOf of one schema is that schema.
func (c *cutter) collect(schema *schemaNode, s *cutSchema) {
	for _, member := range schema.items {
		if member.name.Is("allOf") && member.value.IsArray() && len(member.items) == 1 && member.items[0].value.IsObject() {
			c.collect(member.items[0], s)
			continue
		}
		if text := member.value.Text(); text != nil && member.name.Is("description") {
			if !slices.ContainsFunc(s.descriptions, func(d rawjson.Text) bool { return bytes.Equal(d, text) }) {
				s.descriptions = append(s.descriptions, text)
			}
			continue
		}
		as := c.subset.keyword(member)
		if as == omitted {
			continue
		}
		there := s.find(as)
		switch {
		case as == asText, there == nil && !wellShaped(member):
			s.words = append(s.words, member)
		case there == nil:
			s.kept = append(s.kept, keptKeyword{as, member})
		case !bytes.Equal(there.value, member.value) || !bytes.Equal(there.name, member.name):
			s.words = append(s.words, member)
		}
	}
}

// wellShaped reports whether the value of a keyword has the keyword's shape.
func wellShaped(member *schemaNode) bool {
	switch shapeOf(member.name.String()) {
	case oneSchema:
		return member.value.IsObject() || member.value.IsArray() || member.value.True() ||
			member.value.False() && member.name.Is("additionalProperties")
	case schemaList:
		return member.value.IsArray()
	case namedSchemas:
		return member.value.IsObject()
	default:
		return true
	}
}

// bound adds the text of a bound that cannot be sent for numbers that are not integers.
func (c *cutter) bound(s *cutSchema, exclusive, as string) {
	if member := s.find(as); member != nil && member.name.Is(exclusive) && !s.isType("integer") {
		s.words = append(s.words, member)
	}
}

// isType reports whether a schema's type is, or may be, the given one.
func (s *cutSchema) isType(word string) bool {
	types := s.find("type")
	return types != nil && (types.value.Text().Is(word) ||
		slices.ContainsFunc(types.items, func(item *schemaNode) bool { return item.value.Text().Is(word) }))
}

// closes reports whether a schema is an object that must declare that it has no other properties. An object without named properties and
// with a schema for all is a dictionary, which stays unchanged.
func (c *cutter) closes(s *cutSchema) bool {
	properties := s.find("properties")
	if properties == nil && !s.isType("object") {
		return false
	}
	others := s.find("additionalProperties")
	if others != nil && len(others.items) > 0 {
		if properties == nil {
			return false
		}
		s.words = append(s.words, others)
	}
	c.changed = c.changed || others == nil || !others.value.False()
	s.remove("additionalProperties")
	return true
}

// reference puts a reference with members next to it into an anyOf, which has the same meaning.
func (c *cutter) reference(s *cutSchema) {
	ref := s.find("$ref")
	if ref == nil {
		return
	}
	beside := len(s.words) > 0 || len(s.descriptions) > 0 || slices.ContainsFunc(s.kept, func(k keptKeyword) bool {
		return k.as != "$ref" && (c.subset.closed || !strings.HasPrefix(k.as, "$"))
	})
	if !beside {
		return
	}
	s.remove("$ref")
	if s.find("anyOf") != nil {
		s.words = append(s.words, ref)
		return
	}
	s.kept = append(s.kept, keptKeyword{"anyOf", ref})
}

func (c *cutter) keyword(k keptKeyword, s *cutSchema) {
	member := k.member
	switch name := member.name.String(); {
	case name == "$ref" && k.as == "anyOf":
		c.out.JSON(`[{"$ref":?}]`, c.ref(member))
	case name == "$ref":
		c.out.Raw(c.ref(member))
	case name == "const" && k.as == "enum":
		c.out.JSON(`[?]`, member.value)
	case name == "exclusiveMinimum" && s.isType("integer"):
		c.whole(member.value, func(f float64) float64 { return math.Floor(f) + 1 })
	case name == "exclusiveMaximum" && s.isType("integer"):
		c.whole(member.value, func(f float64) float64 { return math.Ceil(f) - 1 })
	case name == "additionalProperties" && !member.value.IsObject():
		c.out.Raw(member.value)
	default:
		member.write(&c.out, c.schema)
	}
}

// ref returns a reference with the sent name of the definitions.
func (c *cutter) ref(member *schemaNode) rawjson.Value {
	const old, now = `"#/definitions/`, `"#/$defs/`
	if rest, found := bytes.CutPrefix(member.value, []byte(old)); found && !c.subset.closed {
		return slices.Concat([]byte(now), rest)
	}
	return member.value
}

// whole writes a bound of integers, rounded; a number that is too large for that is unchanged.
func (c *cutter) whole(value rawjson.Value, round func(float64) float64) {
	f, ok := value.Float()
	if f = round(f); !ok || math.Abs(f) > 1<<53 {
		c.out.Raw(value)
		return
	}
	c.out.Int(int64(f))
}

// description returns the schema's description with the text of the cut keywords at its end; nil for none.
func (s *cutSchema) description() rawjson.Text {
	texts := s.descriptions
	if len(s.words) > 0 {
		words := make([]string, len(s.words))
		for i, member := range s.words {
			words[i] = member.name.String() + ": " + string(member.value)
		}
		texts = append(texts, rawjson.Quote("{"+strings.Join(words, ", ")+"}"))
	}
	if len(texts) == 0 {
		return nil
	}
	return rawjson.Join("\n\n", texts...)
}
