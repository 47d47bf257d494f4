// Package gatewayyaml completes a gateway.yaml for the development stack. What the user wrote stays byte for byte,
// comments and ${NAME} included; only what is missing is added.
package gatewayyaml

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// ErrShape is wrapped by Fill where a file is valid YAML but not written in a way it can add to.
var ErrShape = errors.New("not a shape that can be added to")

// Section is one top-level key a gateway.yaml should have.
type Section struct {
	Key string
	// Fields are the keys of a mapping: each that the file lacks is added, in this order. Without Fields the section
	// is taken or left as a whole.
	Fields []Field
	// Text is the value, in YAML, of a section without Fields that the file lacks: a scalar, or lines to stand
	// below the key.
	Text string
	// Force replaces a scalar the file has.
	Force bool
}

// Field is one key of a section and its value, a string or a number.
type Field struct {
	Key   string
	Value any
}

// Fill returns file with every section it lacks added at its end, and with the missing fields of those it has.
func Fill(file []byte, sections []Section) ([]byte, error) {
	have, root, err := parse(file)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(string(file), "\n")
	var below []edit
	var added strings.Builder
	for _, s := range sections {
		node := find(root, s.Key)
		switch {
		case node == nil:
			added.WriteString(s.String())
		case len(s.Fields) > 0:
			if e, ok := s.missing(node); ok {
				below = append(below, e)
			}
		case s.Force:
			line := node.Key.GetToken().Position.Line - 1
			lines[line] = strings.TrimSuffix(s.String(), "\n")
		}
	}
	// From the end, so that earlier line numbers stay true.
	slices.SortFunc(below, func(a, b edit) int { return b.line - a.line })
	for _, e := range below {
		lines = e.apply(lines)
	}
	text := strings.TrimRight(strings.Join(lines, "\n"), "\n")
	if text != "" {
		text += "\n"
	}
	text += added.String()
	return []byte(text), check(have, []byte(text), sections)
}

// String renders a section that stands alone.
func (s Section) String() string {
	if len(s.Fields) == 0 {
		if strings.Contains(s.Text, "\n") {
			return s.Key + ":\n" + strings.TrimSuffix(s.Text, "\n") + "\n"
		}
		return s.Key + ": " + s.Text + "\n"
	}
	pairs := make([]string, 0, len(s.Fields))
	for _, f := range s.Fields {
		pairs = append(pairs, f.String())
	}
	return s.Key + ": {" + strings.Join(pairs, ", ") + "}\n"
}

// String renders the pair; a text is quoted where YAML would take it for something else.
func (f Field) String() string {
	value, err := yaml.MarshalWithOptions(f.Value, yaml.Flow(true))
	if err != nil {
		return f.Key + ": " + fmt.Sprintf("%q", f.Value)
	}
	return f.Key + ": " + strings.TrimSpace(string(value))
}

// edit adds pairs to a section that exists: into a flow mapping that opens on line, or as lines of their own.
type edit struct {
	line  int // of the file, from 0
	flow  bool
	empty bool   // the flow mapping has no pair yet
	block string // indentation of the new lines
	pairs []string
}

// missing says what to add to the section that node is.
func (s Section) missing(node *ast.MappingValueNode) (edit, bool) {
	var e edit
	switch value := node.Value.(type) {
	case *ast.NullNode:
		e = edit{line: node.Key.GetToken().Position.Line, block: "  "}
	case *ast.MappingNode:
		switch {
		case value.IsFlowStyle:
			e = edit{line: value.Start.Position.Line - 1, flow: true, empty: len(value.Values) == 0}
		default:
			first := value.Values[0].Key.GetToken().Position
			e = edit{line: first.Line - 1, block: strings.Repeat(" ", first.Column-1)}
		}
		for _, f := range s.Fields {
			if find(value, f.Key) == nil {
				e.pairs = append(e.pairs, f.String())
			}
		}
		return e, len(e.pairs) > 0
	default: // an anchor or an alias: taken as it is
		return edit{}, false
	}
	for _, f := range s.Fields {
		e.pairs = append(e.pairs, f.String())
	}
	return e, true
}

func (e edit) apply(lines []string) []string {
	if !e.flow {
		fresh := make([]string, 0, len(e.pairs))
		for _, pair := range e.pairs {
			fresh = append(fresh, e.block+pair)
		}
		return slices.Insert(lines, e.line, fresh...)
	}
	before, rest, _ := strings.Cut(lines[e.line], "{")
	pairs := strings.Join(e.pairs, ", ")
	if !e.empty {
		pairs += ", "
	}
	lines[e.line] = before + "{" + pairs + strings.TrimLeft(rest, " ")
	return lines
}

// parse returns the content of a file and the mapping it consists of; an empty file has neither.
func parse(file []byte) (map[string]any, *ast.MappingNode, error) {
	parsed, err := parser.ParseBytes(file, 0)
	if err != nil {
		return nil, nil, err
	}
	have := map[string]any{}
	if err := yaml.Unmarshal(file, &have); err != nil {
		return nil, nil, err
	}
	switch {
	case len(parsed.Docs) == 0 || len(parsed.Docs) == 1 && len(have) == 0:
		return have, nil, nil
	case len(parsed.Docs) > 1:
		return nil, nil, fmt.Errorf("%w: more than one document", ErrShape)
	}
	root, ok := parsed.Docs[0].Body.(*ast.MappingNode)
	if !ok || root.IsFlowStyle {
		return nil, nil, fmt.Errorf("%w: the top level is not a block of keys", ErrShape)
	}
	return have, root, nil
}

func find(in *ast.MappingNode, key string) *ast.MappingValueNode {
	if in == nil {
		return nil
	}
	for _, value := range in.Values {
		if value.Key.GetToken().Value == key {
			return value
		}
	}
	return nil
}

// check compares what the finished text says with what the file said: nothing may have changed, nothing may lack.
func check(have map[string]any, text []byte, sections []Section) error {
	got := map[string]any{}
	if err := yaml.Unmarshal(text, &got); err != nil {
		return fmt.Errorf("%w: %w", ErrShape, err)
	}
	known := map[string]Section{}
	for _, s := range sections {
		known[s.Key] = s
		if _, ok := got[s.Key]; !ok {
			return fmt.Errorf("%w: %s cannot be added", ErrShape, s.Key)
		}
	}
	for key, was := range have {
		s := known[key]
		is := got[key]
		if wasMap, ok := was.(map[string]any); ok && len(s.Fields) > 0 {
			isMap, _ := is.(map[string]any)
			for field, value := range wasMap {
				if !reflect.DeepEqual(isMap[field], value) {
					return fmt.Errorf("%w: %s.%s would change", ErrShape, key, field)
				}
			}
			continue
		}
		if !s.Force && was != nil && !reflect.DeepEqual(is, was) {
			return fmt.Errorf("%w: %s would change", ErrShape, key)
		}
	}
	return nil
}
