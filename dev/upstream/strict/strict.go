// Package strict holds what the rules of all vendors are made of: shapes of JSON and the refusals that come of them. The rules are in
// its children, one package for each vendor: they judge requests and know no HTTP.
package strict

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Refusal is what a vendor says to a request that it does not take. The status is 400 unless set.
type Refusal struct {
	Status     int
	Code       string
	Param      string
	Message    string
	Violations []Violation // of a vendor that lists them
}

// Violation is one of several faults of a request.
type Violation struct{ Field, Description string }

// Refuse makes a refusal that has a message alone.
func Refuse(format string, args ...any) *Refusal {
	return &Refusal{Message: fmt.Sprintf(format, args...)}
}

// Kind is what a JSON value must be.
type Kind int

// The kinds. Any takes null as well, and no other kind does unless the shape is Nullable.
const (
	Any Kind = iota
	String
	Number
	Integer
	Bool
	Object
	Array
)

// Shape says what a JSON value may be. Its zero value takes anything.
type Shape struct {
	Kind     Kind
	Nullable bool
	Fields   map[string]*Shape // of an object: those it may have; nil: any
	Open     bool              // of an object: it may have others, too
	Required []string
	Values   *Shape            // of an object that is a map: what every value is
	Items    *Shape            // of an array
	Enum     []string          // of a string: the words it may be; nil: any
	Tag      string            // of an object: the field that says which of Of it is
	Default  string            // the tag's word where it is absent; empty: it must be there
	Of       map[string]*Shape // by the tag's word
	Or       *Shape            // what a value of another kind may be
}

// Obj is an object of these fields, the first of which are required.
func Obj(required []string, fields map[string]*Shape) *Shape {
	return &Shape{Kind: Object, Fields: fields, Required: required}
}

// List is an array of a shape.
func List(items *Shape) *Shape { return &Shape{Kind: Array, Items: items} }

// Of is a value of a kind.
func Of(kind Kind) *Shape { return &Shape{Kind: kind} }

// Words is a string that is one of some words.
func Words(words ...string) *Shape { return &Shape{Kind: String, Enum: words} }

// Path leads to a value: names (string), indexes (int) and tags of objects that are one of several (Variant).
type Path []any

// Variant is the word of a tag on a path.
type Variant string

// Add returns the path with more steps.
func (p Path) Add(steps ...any) Path { return append(slices.Clone(p), steps...) }

// Dotted writes a path like messages.0.content.1.text.
func (p Path) Dotted() string {
	out := ""
	for _, step := range p {
		if out != "" {
			out += "."
		}
		out += fmt.Sprint(step)
	}
	return out
}

// Bracketed writes a path like messages[0].content[1], without variants.
func (p Path) Bracketed() string {
	out := ""
	for _, step := range p {
		switch step := step.(type) {
		case int:
			out += "[" + strconv.Itoa(step) + "]"
		case string:
			if out != "" {
				out += "."
			}
			out += step
		}
	}
	return out
}

// Fault is what of a value does not fit its shape.
type Fault int

// The faults.
const (
	Unknown  Fault = iota // a field that the object has not
	Missing               // a field that it must have
	Mistyped              // a value of another kind
	NoWord                // a string that is none of the words
	NoTag                 // a tag that is none of the words, or absent where it must be there
)

// Finding is one fault.
type Finding struct {
	Fault Fault
	Path  Path   // to the value; of Unknown and Missing, to the object
	Name  string // of Unknown and Missing, the field
	Shape *Shape // what was wanted
	Got   any    // the value
}

// Check returns what does not fit, in the order of paths.
func (s *Shape) Check(v any) []Finding {
	var c checking
	c.check(s, nil, v)
	slices.SortStableFunc(c.found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Path.Dotted(), b.Path.Dotted()), cmp.Compare(b.Fault, a.Fault), cmp.Compare(a.Name, b.Name))
	})
	return c.found
}

// trail is a path while it is walked: it is written only where something is found.
type trail struct {
	up    *trail
	name  string
	index int // where name is empty
	tag   bool
}

func (t *trail) path() Path {
	if t == nil {
		return nil
	}
	switch {
	case t.tag:
		return append(t.up.path(), Variant(t.name))
	case t.name != "":
		return append(t.up.path(), t.name)
	}
	return append(t.up.path(), t.index)
}

// checking is one walk.
type checking struct{ found []Finding }

func (c *checking) find(fault Fault, at *trail, name string, s *Shape, got any) {
	c.found = append(c.found, Finding{Fault: fault, Path: at.path(), Name: name, Shape: s, Got: got})
}

func (c *checking) check(s *Shape, at *trail, v any) {
	if s == nil || s.Kind == Any || v == nil && s.Nullable {
		return
	}
	if !s.Kind.holds(v) {
		if s.Or != nil {
			c.check(s.Or, at, v)
			return
		}
		c.find(Mistyped, at, "", s, v)
		return
	}
	switch v := v.(type) {
	case string:
		if s.Enum != nil && !slices.Contains(s.Enum, v) {
			c.find(NoWord, at, "", s, v)
		}
	case []any:
		for i, item := range v {
			c.check(s.Items, &trail{up: at, index: i}, item)
		}
	case map[string]any:
		if s.Tag == "" {
			c.object(s, at, v)
			return
		}
		word, _ := v[s.Tag].(string)
		if v[s.Tag] == nil {
			word = s.Default
		}
		one, known := s.Of[word]
		if !known {
			c.find(NoTag, at, s.Tag, s, v[s.Tag])
			return
		}
		c.check(one, &trail{up: at, name: word, tag: true}, v)
	}
}

func (c *checking) object(s *Shape, at *trail, v map[string]any) {
	for _, name := range s.Required {
		if _, has := v[name]; !has {
			c.find(Missing, at, name, s, nil)
		}
	}
	switch {
	case s.Values != nil:
		for i, name := range slices.Sorted(maps.Keys(v)) {
			// A map counts its entries, as the vendor that has such paths does.
			c.check(s.Values, &trail{up: &trail{up: at, index: i}, name: "value"}, v[name])
		}
	case s.Fields != nil:
		for name, value := range v {
			switch field := s.Fields[name]; {
			case field != nil:
				c.check(field, &trail{up: at, name: name}, value)
			case !s.Open:
				c.find(Unknown, at, name, s, value)
			}
		}
	}
}

func (k Kind) holds(v any) bool {
	switch v := v.(type) {
	case string:
		return k == String
	case float64:
		return k == Number || k == Integer && v == float64(int64(v))
	case bool:
		return k == Bool
	case map[string]any:
		return k == Object
	case []any:
		return k == Array
	}
	return false
}

// The views below read decoded JSON; a value of another type is the zero value.

// Map returns a field that is an object.
func Map(v any, name string) map[string]any {
	m, _ := v.(map[string]any)
	out, _ := m[name].(map[string]any)
	return out
}

// Slice returns a field that is an array.
func Slice(v any, name string) []any {
	m, _ := v.(map[string]any)
	out, _ := m[name].([]any)
	return out
}

// Text returns a field that is a string.
func Text(v any, name string) string {
	m, _ := v.(map[string]any)
	out, _ := m[name].(string)
	return out
}

// Num returns a field that is a number, and whether it is one.
func Num(v any, name string) (float64, bool) {
	m, _ := v.(map[string]any)
	out, ok := m[name].(float64)
	return out, ok
}

// Has reports whether a field is there and not null.
func Has(v any, name string) bool {
	m, _ := v.(map[string]any)
	return m[name] != nil
}
