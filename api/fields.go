package api

import (
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// kinds is a set of JSON kinds.
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

// String names the kinds as error messages do.
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

// rule says what one JSON value may be. It is compiled once from the schema the OpenAPI document shows, so the two
// cannot differ. null is nobody's kind: an optional field may always be null.
type rule struct {
	kinds kinds
	// enum holds the strings allowed, nil for any.
	enum []string
	// names are the members the rule looks at, fields their rules in the same order; nil: it looks at none.
	names  map[string]int
	fields []*rule
	// noted are the fields, by index, whose place is of interest and nothing else.
	noted uint64
	// required are indexes into fields, in the contract's order.
	required []int
	// items is the rule of array elements, nil for any.
	items *rule
	// binary: in a form the value is a file.
	binary bool
}

// maxFields is how many fields of one object a scan can tell apart.
const maxFields = 64

// newRule compiles a schema. It looks at type, enum, required, properties, items and the alternatives of oneOf, which
// count as one rule that allows whatever any of them allows.
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
		panic("api: an object of the contract has more than 64 fields: " + schema.Title)
	}
	slices.Sort(names)
	r.names = make(map[string]int, len(names))
	for i, name := range names {
		r.names[name] = i
		r.fields = append(r.fields, newRule(registry, schema.Properties[name]))
	}
	for _, name := range schema.Required {
		r.required = append(r.required, r.names[name])
	}
}

// note adds a field that is not of the contract, unless it is.
func (r *rule) note(name string) {
	if _, known := r.names[name]; known || len(r.fields) >= maxFields {
		return
	}
	r.names[name] = len(r.fields)
	r.noted |= 1 << len(r.fields)
	r.fields = append(r.fields, &rule{kinds: kindAny})
}

// add widens the rule by an alternative.
func (r *rule) add(other *rule) {
	r.kinds |= other.kinds
	r.enum = append(r.enum, other.enum...)
	if other.names != nil {
		r.names, r.fields, r.required = other.names, other.fields, other.required
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

// name returns the name of a field by its index.
func (r *rule) name(field int) string {
	for name, i := range r.names {
		if i == field {
			return name
		}
	}
	return ""
}

// anything tells whether a value of an allowed kind needs no look inside.
func (r *rule) anything() bool { return r.names == nil && (r.items == nil || r.items.kinds == kindAny) }
