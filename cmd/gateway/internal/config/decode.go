package config

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// place is where a key stands in the file, both counted from 1.
type place struct{ line, column int }

// decoder fills Config from the YAML library's tree. The library's own decoder is not used because it turns plain
// scalars into numbers before it knows what they are for: a key written 0012 would arrive as 10. Here the field's type
// decides, after ${NAME} was replaced within the one scalar that holds it.
type decoder struct {
	env      func(string) (string, bool)
	anchors  map[string]ast.Node
	places   map[string]place
	problems []Problem
}

func (d *decoder) add(key string, at place, format string, args ...any) {
	d.problems = append(d.problems, Problem{Key: key, Line: at.line, Column: at.column, Message: fmt.Sprintf(format, args...)})
}

// addAt adds a problem at the place of the key, else at that of the nearest enclosing one.
func (d *decoder) addAt(key, message string) {
	for outer := key; ; {
		if at, ok := d.places[outer]; ok || outer == "" {
			d.add(key, at, "%s", message)
			return
		}
		outer = outer[:max(strings.LastIndexAny(outer, ".["), 0)]
	}
}

// document reads the whole text.
func (d *decoder) document(text []byte, into any) {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		d.syntax(err, text)
		return
	}
	docs := slices.DeleteFunc(file.Docs, func(doc *ast.DocumentNode) bool { return doc.Body == nil })
	if len(docs) == 0 {
		return
	}
	if len(docs) > 1 {
		d.add("", placeOf(docs[1].Body), "one document is expected, this is a second one")
		return
	}
	d.anchors = map[string]ast.Node{}
	for _, node := range ast.Filter(ast.AnchorType, docs[0].Body) {
		if anchor, ok := node.(*ast.AnchorNode); ok {
			d.anchors[anchor.Name.GetToken().Value] = anchor.Value
		}
	}
	d.value("", docs[0].Body, reflect.ValueOf(into).Elem())
}

// syntax reports what the parser found, without its excerpt of the source, which may hold a secret.
func (d *decoder) syntax(err error, text []byte) {
	var yamlErr yaml.Error
	if !errors.As(err, &yamlErr) {
		d.add("", place{}, "%v", err)
		return
	}
	at := place{}
	if tk := yamlErr.GetToken(); tk != nil && tk.Position != nil {
		at = place{tk.Position.Line, tk.Position.Column}
	}
	hint := ""
	lines := strings.Split(string(text), "\n")
	if at.line > 0 && at.line <= len(lines) && at.column > 1 && at.column <= len(lines[at.line-1]) && strings.HasPrefix(lines[at.line-1][at.column-2:], "${") {
		hint = `; inside [ ] and { } write "${NAME}" with quotes`
	}
	d.add("", at, "%s%s", yamlErr.GetMessage(), hint)
}

// maxAliases bounds a chain of aliases, so that one that leads to itself ends.
const maxAliases = 16

// resolve follows anchors and aliases.
func (d *decoder) resolve(node ast.Node) (ast.Node, error) {
	for range maxAliases {
		switch n := node.(type) {
		case *ast.AnchorNode:
			node = n.Value
		case *ast.AliasNode:
			name := n.Value.GetToken().Value
			target, ok := d.anchors[name]
			if !ok {
				return nil, fmt.Errorf("there is no anchor &%s", name)
			}
			node = target
		case *ast.TagNode:
			return nil, errors.New("YAML tags are not used here")
		default:
			return node, nil
		}
	}
	return nil, errors.New("the alias leads to itself")
}

// value decodes a node into a settable value of the types Config uses. null leaves it as it is.
func (d *decoder) value(key string, node ast.Node, into reflect.Value) {
	at := placeOf(node)
	if _, known := d.places[key]; !known {
		d.places[key] = at
	}
	node, err := d.resolve(node)
	if err != nil {
		d.add(key, at, "%v", err)
		return
	}
	if _, null := node.(*ast.NullNode); null || node == nil {
		return
	}
	switch {
	case into.Kind() == reflect.Struct && into.Type() != reflect.TypeFor[time.Time]():
		d.fields(key, node, into)
	case into.Kind() == reflect.Map:
		d.entries(key, node, into)
	case into.Kind() == reflect.Slice:
		d.elements(key, node, into)
	default:
		d.scalar(key, at, node, into)
	}
}

func (d *decoder) fields(key string, node ast.Node, into reflect.Value) {
	pairs, ok := pairsOf(node)
	if !ok {
		d.add(key, placeOf(node), "wants keys and values, not %s", describe(node))
		return
	}
	fields := map[string]reflect.Value{}
	for field, value := range keyFields(into) {
		fields[field.Tag.Get("yaml")] = value
	}
	for _, pair := range pairs { // first, because a key of one's own replaces a merged one wherever it stands
		if pair.Key.IsMergeKey() {
			d.merge(key, pair, into)
		}
	}
	for _, pair := range pairs {
		name := keyText(pair.Key)
		path := join(key, name)
		switch field, known := fields[name]; {
		case pair.Key.IsMergeKey():
		case known:
			d.places[path] = placeOf(pair.Key)
			d.value(path, pair.Value, field)
		default:
			d.add(path, placeOf(pair.Key), "unknown key; known here are %s", strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
		}
	}
}

// merge decodes what a "<<" key names.
func (d *decoder) merge(key string, pair *ast.MappingValueNode, into reflect.Value) {
	source, err := d.resolve(pair.Value)
	if err != nil {
		d.add(join(key, "<<"), placeOf(pair.Key), "%v", err)
		return
	}
	if pairs, ok := pairsOf(source); !ok || slices.ContainsFunc(pairs, func(p *ast.MappingValueNode) bool { return p.Key.IsMergeKey() }) {
		d.add(join(key, "<<"), placeOf(pair.Key), "wants an alias of keys and values without a << of their own")
		return
	}
	d.fields(key, source, into)
}

func (d *decoder) entries(key string, node ast.Node, into reflect.Value) {
	pairs, ok := pairsOf(node)
	if !ok {
		d.add(key, placeOf(node), "wants keys and values, not %s", describe(node))
		return
	}
	entries := reflect.MakeMap(into.Type())
	for _, pair := range pairs {
		name := keyText(pair.Key)
		path := join(key, name)
		if pair.Key.IsMergeKey() {
			d.add(path, placeOf(pair.Key), "<< works among the file's own keys, not here")
			continue
		}
		d.places[path] = placeOf(pair.Key)
		if splitsName(pair) {
			d.add(path, placeOf(pair.Key), "a colon follows that no space follows; write a name that holds colons with quotes")
		}
		entry := newEntry(into.Type().Elem())
		d.value(path, pair.Value, entry)
		entries.SetMapIndex(reflect.ValueOf(name), entry)
	}
	into.Set(entries)
}

// splitsName tells whether the library ended a plain key within { } at a colon that belongs to it: {a:b: c} has the key
// a:b, the library finds a.
func splitsName(pair *ast.MappingValueNode) bool {
	key, colon := pair.Key.GetToken(), pair.Start
	if colon == nil || colon.Next == nil || key.Type == token.SingleQuoteType || key.Type == token.DoubleQuoteType {
		return false
	}
	next := colon.Next
	switch next.Type {
	case token.CollectEntryType, token.MappingEndType:
		return false
	default:
		return next.Position.Line == colon.Position.Line && next.Position.Column == colon.Position.Column+1
	}
}

func (d *decoder) elements(key string, node ast.Node, into reflect.Value) {
	list, ok := node.(*ast.SequenceNode)
	if !ok {
		d.add(key, placeOf(node), "wants a list, not %s", describe(node))
		return
	}
	elements := reflect.MakeSlice(into.Type(), 0, len(list.Values))
	for i, element := range list.Values {
		entry := newEntry(into.Type().Elem())
		d.value(key+"["+strconv.Itoa(i)+"]", element, entry)
		elements = reflect.Append(elements, entry)
	}
	into.Set(elements)
}

// keyFields are the fields of a section that keys of the file stand for, those of embedded structs among them.
func keyFields(section reflect.Value) iter.Seq2[reflect.StructField, reflect.Value] {
	return func(yield func(reflect.StructField, reflect.Value) bool) {
		for _, field := range reflect.VisibleFields(section.Type()) {
			if !field.Anonymous && !yield(field, section.FieldByIndex(field.Index)) {
				return
			}
		}
	}
}

// newEntry makes a settable entry of a list or map, with its defaults.
func newEntry(t reflect.Type) reflect.Value {
	entry := reflect.New(t)
	if defaulter, ok := reflect.TypeAssert[interface{ setDefaults() }](entry); ok {
		defaulter.setDefaults()
	}
	return entry.Elem()
}

// pairsOf returns the pairs of a mapping; a block with one pair is a pair of its own in the library's tree.
func pairsOf(node ast.Node) ([]*ast.MappingValueNode, bool) {
	switch n := node.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	default:
		return nil, false
	}
}

func keyText(node ast.MapKeyNode) string {
	if long, ok := node.(*ast.MappingKeyNode); ok && long.Value != nil { // "? key"
		return long.Value.GetToken().Value
	}
	return node.GetToken().Value
}

// placeOf points at the first character of a node.
func placeOf(node ast.Node) place {
	if pairs, ok := pairsOf(node); ok && len(pairs) > 0 {
		if _, flow := node.(*ast.MappingNode); !flow || node.GetToken().Type != token.MappingStartType {
			node = pairs[0].Key
		}
	}
	if node == nil {
		return place{}
	}
	if tk := node.GetToken(); tk != nil && tk.Position != nil {
		return place{tk.Position.Line, tk.Position.Column}
	}
	return place{}
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

func describe(node ast.Node) string {
	switch node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "keys and values"
	case *ast.SequenceNode:
		return "a list"
	default:
		return "a single value"
	}
}
