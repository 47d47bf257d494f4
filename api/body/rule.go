package body

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
)

type kinds uint8

const (
	kindString kinds = 1 << iota
	kindInteger
	kindNumber
	kindBoolean
	kindObject
	kindArray

	kindAny = kindString | kindInteger | kindNumber | kindBoolean | kindObject | kindArray
)

// String formats the kinds for error messages.
func (k kinds) String() string {
	if k&kindAny == kindAny {
		return "any value"
	}
	var names []string
	for _, kind := range [...]struct {
		kind kinds
		name string
	}{
		{kindString, "string"},
		{kindInteger, "integer"},
		{kindNumber, "number"},
		{kindBoolean, "boolean"},
		{kindObject, "object"},
		{kindArray, "array"},
	} {
		if k&kind.kind != 0 {
			names = append(names, kind.name)
		}
	}
	return strings.Join(names, " or ")
}

// rule is what a JSON value may be, compiled from the schema in the OpenAPI document. An optional field may always be null.
type rule struct {
	kinds kinds
	// enum holds the allowed strings, nil for any.
	enum []string
	// names maps each checked member to the index of its rule in fields; nil: none. Two names with one index are spellings of one field.
	names  map[string]int
	fields []*rule
	// titles are the names of the fields in error messages.
	titles []string
	// folded has the names in folded case (AppendFolded). longest is the length of the longest name in bytes.
	folded  map[string]int
	longest int
	// required are indexes into fields, in the order of the contract.
	required []int
	// items is the rule of array elements, nil for any.
	items *rule
	// binary: in a form, the value is a file.
	binary bool
}

// maxFields is the maximum number of fields of an object. A scan has one bit for each.
const maxFields = 64

// newRule compiles type, enum, required, properties, items and oneOf of a schema. A oneOf becomes one rule that allows each alternative.
func newRule(registry huma.Registry, schema *huma.Schema) *rule {
	if schema.Ref != "" {
		schema = registry.SchemaFromRef(schema.Ref)
	}
	r := &rule{}
	if len(schema.OneOf) > 0 {
		open := false
		for _, alternative := range schema.OneOf {
			other := newRule(registry, alternative)
			open = open || other.kinds&kindString != 0 && other.enum == nil
			r.add(other)
		}
		if open {
			r.enum = nil
		}
		return r
	}
	switch schema.Type {
	case huma.TypeString:
		r.kinds, r.binary = kindString, schema.Format == "binary"
	case huma.TypeInteger:
		r.kinds = kindInteger
	case huma.TypeNumber:
		r.kinds = kindInteger | kindNumber
	case huma.TypeBoolean:
		r.kinds = kindBoolean
	case huma.TypeArray:
		r.kinds = kindArray
		if schema.Items != nil {
			r.items = newRule(registry, schema.Items)
		}
	case huma.TypeObject:
		r.kinds = kindObject
		r.addProperties(registry, schema)
	default:
		r.kinds = kindAny
	}
	for _, value := range schema.Enum {
		if text, ok := value.(string); ok {
			r.enum = append(r.enum, text)
		}
	}
	return r
}

func (r *rule) addProperties(registry huma.Registry, schema *huma.Schema) {
	if len(schema.Properties) == 0 {
		return
	}
	names := make([]string, 0, len(schema.Properties))
	for name := range schema.Properties {
		names = append(names, name)
	}
	if len(names) > maxFields {
		panic("body: an object of the contract has more than 64 fields: " + schema.Title)
	}
	slices.Sort(names)
	for _, name := range names {
		r.addField(name, newRule(registry, schema.Properties[name]))
	}
	for _, name := range schema.Required {
		r.required = append(r.required, r.names[name])
	}
}

// addField appends a field.
func (r *rule) addField(name string, field *rule) {
	r.fields, r.titles = append(r.fields, field), append(r.titles, name)
	r.addName(name, len(r.fields)-1)
}

func (r *rule) addName(name string, field int) {
	if r.names == nil {
		r.names, r.folded = make(map[string]int), make(map[string]int)
	}
	r.names[name] = field
	r.folded[string(AppendFolded(nil, []byte(name)))] = field
	r.longest = max(r.longest, len(name))
}

// addExtra adds a field with any value, which may occur once, with exactly this spelling. A name with dots is that of a nested field.
func (r *rule) addExtra(name string) {
	outer, inner, within := strings.Cut(name, ".")
	at, known := r.names[outer]
	if !known {
		if len(r.fields) >= maxFields {
			panic("body: no room to note a field: " + name)
		}
		at = len(r.fields)
		r.addField(outer, &rule{kinds: kindAny})
	}
	if within {
		r.fields[at].addExtra(inner)
	}
}

// addSnakeCase also accepts each camelCase name in snake case, as parsers of protocol buffers do.
func (r *rule) addSnakeCase() {
	for i, name := range r.titles {
		if snake := snakeCase(name); snake != name {
			r.addName(snake, i)
		}
		r.fields[i].addSnakeCase()
	}
	if r.items != nil {
		r.items.addSnakeCase()
	}
}

// snakeCase converts "maxOutputTokens" to "max_output_tokens".
func snakeCase(name string) string {
	var out []byte
	for i := range len(name) {
		c := name[i]
		if 'A' <= c && c <= 'Z' {
			out = append(out, '_')
			c += 'a' - 'A'
		}
		out = append(out, c)
	}
	return string(out)
}

func (r *rule) add(other *rule) {
	r.kinds |= other.kinds
	r.enum = append(r.enum, other.enum...)
	if other.names != nil {
		r.names, r.fields, r.required = other.names, other.fields, other.required
		r.titles, r.folded, r.longest = other.titles, other.folded, other.longest
	}
	switch {
	case other.items == nil:
	case r.items == nil:
		r.items = other.items
	default:
		merged := *r.items
		merged.add(other.items)
		r.items = &merged
	}
}

// maxFold is the maximum length, in bytes, of a character that folds to an ASCII letter: the Kelvin sign has three.
const maxFold = 3

// inOtherCase returns the name that differs from the given one only by case, "" for none. Parsers in Go accept either.
func (r *rule) inOtherCase(given []byte) string {
	if len(given) > maxFold*r.longest {
		return ""
	}
	var buf [64]byte
	if field, ok := r.folded[string(AppendFolded(buf[:0], given))]; ok {
		return r.titles[field]
	}
	return ""
}

// AppendFolded appends a name in the folded case of encoding/json: each character becomes the smallest one that differs only by case.
func AppendFolded(out, name []byte) []byte {
	for i := 0; i < len(name); {
		c := name[i]
		if c < utf8.RuneSelf {
			if 'a' <= c && c <= 'z' {
				c -= 'a' - 'A'
			}
			out = append(out, c)
			i++
			continue
		}
		char, size := utf8.DecodeRune(name[i:])
		for next := unicode.SimpleFold(char); ; next = unicode.SimpleFold(char) {
			smaller := next <= char // the cycle starts again
			char = next
			if smaller {
				break
			}
		}
		out = utf8.AppendRune(out, char)
		i += size
	}
	return out
}

// anything reports whether a value of an allowed kind needs no further check of its content.
func (r *rule) anything() bool { return r.names == nil && (r.items == nil || r.items.kinds == kindAny) }
