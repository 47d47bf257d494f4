// Package gatewayyaml completes a gateway.yaml for the development stack. What the user wrote stays byte for byte,
// comments and ${NAME} included; only what is missing is added.
package gatewayyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
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
			lines[node.key.Line-1] = strings.TrimSuffix(s.String(), "\n")
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

// String renders a section without the others.
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

// String renders the pair. A text that YAML would read as another type is quoted.
func (f Field) String() string {
	var value yaml.Node
	text := []byte(nil)
	err := value.Encode(f.Value)
	if err == nil {
		value.Style |= yaml.FlowStyle
		text, err = yaml.Marshal(&value)
	}
	if err != nil {
		return f.Key + ": " + fmt.Sprintf("%q", f.Value)
	}
	return f.Key + ": " + strings.TrimSpace(string(text))
}

// edit adds pairs to a section that exists: into a flow mapping that opens on line, or as lines of their own.
type edit struct {
	line  int // of the file, from 0
	flow  bool
	empty bool   // the flow mapping has no pair yet
	block string // indentation of the new lines
	pairs []string
}

// missing returns the edit that adds the fields that the section of the file lacks. It returns false if the file lacks none, or if
// the section's value is an alias or a scalar: such a value stays as it is.
func (s Section) missing(section *pair) (edit, bool) {
	var e edit
	value := section.value
	switch {
	case value.Kind == yaml.ScalarNode && value.Tag == "!!null":
		e = edit{line: section.key.Line, block: "  "}
	case value.Kind == yaml.MappingNode && value.Anchor == "":
		if value.Style&yaml.FlowStyle != 0 {
			e = edit{line: value.Line - 1, flow: true, empty: len(value.Content) == 0}
		} else {
			first := value.Content[0]
			e = edit{line: first.Line - 1, block: strings.Repeat(" ", first.Column-1)}
		}
	default:
		return edit{}, false
	}
	for _, f := range s.Fields {
		if find(value, f.Key) == nil {
			e.pairs = append(e.pairs, f.String())
		}
	}
	return e, len(e.pairs) > 0
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

// parse returns the content of a file and its top-level mapping. An empty file has neither.
func parse(file []byte) (map[string]any, *yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(file))
	var document yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return nil, nil, nil
	} else if err != nil {
		return nil, nil, err
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, nil, errors.Join(fmt.Errorf("%w: more than one document", ErrShape), err)
	}
	have := map[string]any{}
	if err := document.Decode(&have); err != nil {
		return nil, nil, err
	}
	root := document.Content[0]
	switch {
	case len(have) == 0:
		return have, nil, nil
	case root.Kind != yaml.MappingNode || root.Style&yaml.FlowStyle != 0:
		return nil, nil, fmt.Errorf("%w: the top level is not a block of keys", ErrShape)
	}
	return have, root, nil
}

// pair is one key of a mapping and its value.
type pair struct{ key, value *yaml.Node }

// find returns the pair of the key, or nil if the mapping has none.
func find(in *yaml.Node, key string) *pair {
	if in == nil {
		return nil
	}
	for i := 0; i+1 < len(in.Content); i += 2 {
		if in.Content[i].Value == key {
			return &pair{in.Content[i], in.Content[i+1]}
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
