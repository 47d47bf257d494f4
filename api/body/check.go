// Package body parses and checks request bodies. It compiles the schema of a struct, the same as in the OpenAPI document, into rules. It
// checks JSON and forms against them in one pass without copies. The results are spans of the body, so that edits keep the other bytes.
//
// It must not import a server, a route or storage.
package body

import (
	"bytes"
	"io"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
)

// Checker checks the fields of the contract in JSON bodies and forms, in one pass without copies. It is safe for concurrent use.
type Checker struct {
	rule     *rule
	decoders sync.Pool // of *decoder
}

// decoder is a JSON decoder that is reused for another body.
type decoder struct {
	dec jsontext.Decoder
	buf bytes.Buffer
}

// NewChecker compiles the schema of a struct. extra are further fields, which may have any value. Like fields of the contract, each may
// occur once, with exactly this spelling. A name with dots is that of a nested field.
func NewChecker[Fields any](registry huma.Registry, extra ...string) *Checker {
	c := &Checker{rule: newRule(registry, registry.Schema(reflect.TypeFor[Fields](), false, ""))}
	for _, name := range extra {
		c.rule.addExtra(name)
	}
	return c
}

// AllowSnakeCase also accepts each camelCase name in snake case, as parsers of protocol buffers do.
func (c *Checker) AllowSnakeCase() { c.rule.addSnakeCase() }

// Optional permits the absence of a top-level field that the schema requires.
func (c *Checker) Optional(name string) {
	c.rule.required = slices.DeleteFunc(c.rule.required, func(field int) bool { return c.rule.titles[field] == name })
}

// Names returns the names of the top-level fields, with the extra ones.
func (c *Checker) Names() []string { return c.rule.titles }

// Has reports whether a top-level field has the name.
func (c *Checker) Has(name string) bool {
	_, known := c.rule.names[name]
	return known
}

// JSON is a checked JSON object.
type JSON struct {
	Raw []byte
	// Unlisted is the fault of the first enum value that the contract does not list, nil for none. Only a channel with open values receives
	// it.
	Unlisted *providers.Fault

	rule *rule
	at   []providers.Span
}

// Span returns the position of the value of a top-level field, also of a null; the zero Span for an absent field.
func (b *JSON) Span(name string) providers.Span {
	if i, ok := b.rule.names[name]; ok {
		return b.at[i]
	}
	return providers.Span{}
}

// SpanOf returns the position of a part of the body. part is a result of Value, or of a method of that result.
func (b *JSON) SpanOf(part rawjson.Value) providers.Span {
	from := rawjson.Value(b.Raw).Offset(part)
	return providers.Span{From: from, To: from + len(part)}
}

// Value returns the raw JSON of a top-level field, nil for absent and null.
func (b *JSON) Value(name string) rawjson.Value {
	span := b.Span(name)
	if value := rawjson.Value(b.Raw[span.From:span.To]); !value.Absent() {
		return value
	}
	return nil
}

// Members yields all members of the body.
func (b *JSON) Members() iter.Seq2[rawjson.Text, rawjson.Value] { return rawjson.Trim(b.Raw).Members() }

// Text returns a top-level string field, "" for absent, null and other kinds.
func (b *JSON) Text(name string) string { return b.Value(name).Text().String() }

// Flag returns a top-level boolean field, false for absent, null and other kinds.
func (b *JSON) Flag(name string) bool { return b.Value(name).True() }

// Any reports whether the body has at least one top-level field, also with the value null.
func (b *JSON) Any() bool {
	return slices.ContainsFunc(b.at, func(at providers.Span) bool { return at != providers.Span{} })
}

// Check checks a whole body. The error is an Invalid fault that names the first invalid field and never its value.
func (c *Checker) Check(raw []byte) (*JSON, error) {
	if !utf8.Valid(raw) {
		return nil, providers.InvalidField("", "The request body is not valid UTF-8.")
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, providers.InvalidField("", "The request body is empty: a JSON object is required.")
	}
	pooled, _ := c.decoders.Get().(*decoder)
	if pooled == nil {
		pooled = new(decoder)
	}
	defer func() {
		pooled.buf = bytes.Buffer{} // release the body
		pooled.dec.Reset(&pooled.buf)
		c.decoders.Put(pooled)
	}()
	pooled.buf = *bytes.NewBuffer(raw)
	dec := &pooled.dec
	// The body is UTF-8. The upstream decides about an escaped lone surrogate. object finds duplicate names of fields of the contract.
	dec.Reset(&pooled.buf, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	s := scan{dec: dec}
	b := &JSON{Raw: raw, rule: c.rule, at: make([]providers.Span, len(c.rule.fields))}
	if kind := dec.PeekKind(); kind != jsontext.KindBeginObject {
		if _, err := dec.ReadValue(); err != nil {
			return nil, syntaxFault(err)
		}
		return nil, providers.InvalidField("", "The request body must be a JSON object.")
	}
	if v := s.object(c.rule, b.at); v != nil {
		return nil, v.fault()
	}
	if _, err := dec.ReadToken(); err != io.EOF { //nolint:errorlint // the decoder documents io.EOF itself
		return nil, providers.InvalidField("", "The request body has data after its JSON object.")
	}
	if s.unlisted != nil {
		b.Unlisted = s.unlisted.fault()
	}
	return b, nil
}

type scan struct {
	dec      *jsontext.Decoder
	unlisted *violation
}

// violation is a value that breaks a rule. place is its path, which each enclosing object and array extends at the front.
type violation struct {
	place string
	// rule completes "'place' …". syntax is an error of JSON syntax, without a rule.
	rule   string
	syntax error
}

func (v *violation) within(name string) *violation {
	switch {
	case v.place == "":
		v.place = name
	case v.place[0] == '[':
		v.place = name + v.place
	default:
		v.place = name + "." + v.place
	}
	return v
}

func (v *violation) fault() *providers.Fault {
	if v.syntax != nil {
		return syntaxFault(v.syntax)
	}
	return providers.InvalidField(v.place, "Invalid request: '%s' %s.", v.place, v.rule)
}

// tooDeep is the text of the decoder's error for more than 10,000 nested arrays and objects. The decoder exports no error value for it.
const tooDeep = "exceeded max depth"

// syntaxFault reports the byte offset at which a body is not JSON. The text of the decoder's error may repeat the body.
func syntaxFault(err error) *providers.Fault {
	where := ""
	if syntactic, ok := err.(*jsontext.SyntacticError); ok { //nolint:errorlint // the decoder returns it bare
		where = " at byte " + strconv.FormatInt(syntactic.ByteOffset, 10)
		if syntactic.Err != nil && syntactic.Err.Error() == tooDeep {
			return providers.InvalidField("", "The request body is nested too deeply%s.", where)
		}
	}
	return providers.InvalidField("", "The request body is not valid JSON%s.", where)
}

// object checks an object against the rule. If at is not nil, object stores the position of each field in it.
func (s *scan) object(r *rule, at []providers.Span) *violation {
	if _, err := s.dec.ReadToken(); err != nil {
		return &violation{syntax: err}
	}
	var seen, given uint64 // by field index, at most maxFields
	for s.dec.PeekKind() == jsontext.KindString {
		name, err := s.dec.ReadValue()
		if err != nil {
			return &violation{syntax: err}
		}
		spelt := rawjson.Text(name).Decoded()
		field, known := r.names[string(spelt)]
		if !known {
			if title := r.inOtherCase(spelt); title != "" {
				return &violation{place: string(spelt), rule: "must be written '" + title + "'"}
			}
			if _, err := s.dec.ReadValue(); err != nil {
				return &violation{syntax: err}
			}
			continue
		}
		bit := uint64(1) << field
		if seen&bit != 0 {
			return &violation{place: r.titles[field], rule: "is given more than once"}
		}
		seen |= bit
		if s.dec.PeekKind() == jsontext.KindNull {
			raw, err := s.dec.ReadValue()
			if err != nil {
				return &violation{syntax: err}
			}
			if at != nil {
				to := int(s.dec.InputOffset())
				at[field] = providers.Span{From: to - len(raw), To: to}
			}
			continue
		}
		unlisted := s.unlisted
		span, v := s.value(r.fields[field])
		if v != nil {
			return v.within(r.titles[field])
		}
		if s.unlisted != unlisted {
			s.unlisted.within(r.titles[field])
		}
		given |= bit
		if at != nil {
			at[field] = span
		}
	}
	if _, err := s.dec.ReadToken(); err != nil { // the closing brace, or a syntax error
		return &violation{syntax: err}
	}
	for _, field := range r.required {
		if given&(1<<field) == 0 {
			return &violation{place: r.titles[field], rule: "is required"}
		}
	}
	return nil
}

// value checks one value. It is not called for a null member.
func (s *scan) value(r *rule) (providers.Span, *violation) {
	kind := s.dec.PeekKind()
	allowed := false
	switch kind {
	case jsontext.KindString:
		allowed = r.kinds&kindString != 0
	case jsontext.KindNumber:
		allowed = r.kinds&(kindInteger|kindNumber) != 0
	case jsontext.KindTrue, jsontext.KindFalse:
		allowed = r.kinds&kindBoolean != 0
	case jsontext.KindBeginObject:
		allowed = r.kinds&kindObject != 0
	case jsontext.KindBeginArray:
		allowed = r.kinds&kindArray != 0
	case jsontext.KindNull:
		allowed = r.kinds == kindAny
	}
	switch {
	case !allowed || r.anything():
	case kind == jsontext.KindBeginObject && r.names != nil:
		return s.nested(func() *violation { return s.object(r, nil) })
	case kind == jsontext.KindBeginArray && r.items != nil:
		return s.nested(func() *violation { return s.array(r.items) })
	}
	raw, err := s.dec.ReadValue()
	if err != nil {
		return providers.Span{}, &violation{syntax: err}
	}
	if !allowed || kind == jsontext.KindNumber && r.kinds&kindNumber == 0 && !isInteger(raw) {
		return providers.Span{}, &violation{rule: "must be of type " + r.kinds.String()}
	}
	if kind == jsontext.KindString && r.enum != nil && s.unlisted == nil && !r.lists(raw) {
		s.unlisted = &violation{rule: "must be one of " + strings.Join(r.enum, ", ")}
	}
	to := int(s.dec.InputOffset())
	return providers.Span{From: to - len(raw), To: to}, nil
}

// nested returns the position of an object or array that read checks.
func (s *scan) nested(read func() *violation) (providers.Span, *violation) {
	s.dec.PeekKind()
	from := int(s.dec.InputOffset()) + leading(s.dec.UnreadBuffer())
	v := read()
	return providers.Span{From: from, To: int(s.dec.InputOffset())}, v
}

// leading returns the number of separator bytes before the next value.
func leading(unread []byte) int { return len(unread) - len(bytes.TrimLeft(unread, " \t\r\n:,")) }

func (s *scan) array(items *rule) *violation {
	if _, err := s.dec.ReadToken(); err != nil {
		return &violation{syntax: err}
	}
	for i := 0; ; i++ {
		switch s.dec.PeekKind() {
		case jsontext.KindEndArray, jsontext.KindInvalid:
			if _, err := s.dec.ReadToken(); err != nil {
				return &violation{syntax: err}
			}
			return nil
		}
		unlisted := s.unlisted
		_, v := s.value(items)
		if v != nil {
			return v.within("[" + strconv.Itoa(i) + "]")
		}
		if s.unlisted != unlisted {
			s.unlisted.within("[" + strconv.Itoa(i) + "]")
		}
	}
}

func (r *rule) lists(raw []byte) bool {
	return slices.ContainsFunc(r.enum, rawjson.Text(raw).Is)
}

// isInteger reports whether a JSON number is an integer, such as 3, 3.0 and 1e3.
func isInteger(raw []byte) bool {
	_, whole := rawjson.Value(raw).Int()
	return whole || !bytes.ContainsAny(raw, ".eE") // it may be larger than an int64
}
