package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"modelrelay/providers"
)

// place is the position of a key in the file, counted from 1.
type place struct{ line, column int }

func placeOf(node *yaml.Node) place { return place{node.Line, node.Column} }

// decoder fills Config from the YAML library's nodes. The library could do so itself, but it accepts yes for true, 3.0 for an integer and
// its own forms of dates, and its errors name Go's types. Here the type of the field determines how a scalar is parsed, after ${NAME} is
// replaced.
//
// github.com/goccy/go-yaml was compared with go.yaml.in/yaml/v4. The same features need 412 lines instead of 334. It reports only one of
// several errors, and it parses 0012 as 10.
type decoder struct {
	env func(string) (string, bool)
	// folder is the base of relative paths, and files are the files of ${file:PATH}.
	folder   string
	files    []string
	places   map[string]place // of keys
	problems []Problem
}

func (d *decoder) add(key string, at place, format string, args ...any) {
	d.problems = append(d.problems, Problem{Key: key, Line: at.line, Column: at.column, Message: fmt.Sprintf(format, args...)})
}

// addAt adds a problem at the position of the key, else at that of the nearest enclosing key.
func (d *decoder) addAt(key, message string) {
	for outer := key; ; {
		if at, ok := d.places[outer]; ok || outer == "" {
			d.add(key, at, "%s", message)
			return
		}
		outer = outer[:max(strings.LastIndexAny(outer, ".["), 0)]
	}
}

func (d *decoder) document(text []byte, into any) {
	var docs []yaml.Node
	if err := yaml.Load(text, &docs, yaml.WithAllDocuments()); err != nil {
		d.syntax(err, text)
		return
	}
	var roots []*yaml.Node
	for _, doc := range docs {
		if len(doc.Content) > 0 && !isNull(doc.Content[0]) {
			roots = append(roots, doc.Content[0])
		}
	}
	switch len(roots) {
	case 0:
	case 1:
		d.value("", roots[0], reflect.ValueOf(into).Elem())
	default:
		d.add("", placeOf(roots[1]), "the file must contain one document; this is the second one")
	}
}

func (d *decoder) syntax(err error, text []byte) {
	var refused *yaml.LoadError
	if !errors.As(err, &refused) {
		d.add("", place{}, "%v", err)
		return
	}
	lines := strings.Split(string(text), "\n")
	at, hint := place{refused.Mark.Line, refused.Mark.Column}, ""
	switch {
	case at.line >= len(lines) && refused.ContextMark.Line > 0: // the text ends within a value
		at = place{refused.ContextMark.Line, refused.ContextMark.Column}
	case at.line > 0 && at.line <= len(lines) && at.column > 1 && at.column <= len(lines[at.line-1]) &&
		strings.HasPrefix(lines[at.line-1][at.column-2:], "${"):
		hint = `; inside [ ] and { } write "${NAME}" with quotes`
	}
	if refused.ContextMsg != "" {
		refused.Message = refused.ContextMsg + ": " + refused.Message
	}
	d.add("", at, "%s%s", refused.Message, hint)
}

// value decodes a node into a settable value of the types in Config. null does not change it.
func (d *decoder) value(key string, node *yaml.Node, into reflect.Value) {
	at := placeOf(node)
	if _, known := d.places[key]; !known {
		d.places[key] = at
	}
	switch node = resolve(node); {
	case node.Style&yaml.TaggedStyle != 0:
		d.add(key, at, "YAML tags are not supported")
	case into.Type() == reflect.TypeFor[providers.VideoField]() && node.Kind == yaml.ScalarNode:
		d.field(key, at, node, into)
	case isNull(node):
	case into.Kind() == reflect.Struct && into.Type() != reflect.TypeFor[time.Time]():
		d.fields(key, node, into)
		if section, ok := reflect.TypeAssert[interface{ setGiven() }](into.Addr()); ok {
			section.setGiven()
		}
	case into.Kind() == reflect.Map:
		d.entries(key, node, into)
	case into.Kind() == reflect.Slice:
		d.elements(key, node, into)
	default:
		d.scalar(key, at, node, into)
	}
}

// resolve follows an alias. The depth of Config's types is finite, so an alias that contains itself ends too.
func resolve(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null" }

type pair struct{ key, value *yaml.Node }

func (p pair) isMerge() bool { return isMerge(p.key) }

func isMerge(key *yaml.Node) bool { return key.ShortTag() == "!!merge" }

// pairs returns a mapping's pairs and reports duplicate names.
func (d *decoder) pairs(key string, node *yaml.Node) []pair {
	if node.Kind != yaml.MappingNode {
		d.add(key, placeOf(node), "must be keys and values, not %s", describe(node))
		return nil
	}
	var pairs []pair
	first := map[string]place{}
	for content := range slices.Chunk(node.Content, 2) {
		p := pair{resolve(content[0]), content[1]}
		if at, twice := first[p.key.Value]; twice {
			d.add("", placeOf(p.key), "mapping key %q already defined at [%d:%d]", p.key.Value, at.line, at.column)
			continue
		}
		first[p.key.Value] = placeOf(p.key)
		pairs = append(pairs, p)
	}
	return pairs
}

func (d *decoder) fields(key string, node *yaml.Node, into reflect.Value) {
	fields, isPath := map[string]reflect.Value{}, map[string]bool{}
	for field, value := range keyFields(into) {
		name := field.Tag.Get("yaml")
		fields[name], isPath[name] = value, field.Tag.Get("type") == "file"
	}
	pairs := d.pairs(key, node)
	for _, p := range pairs { // first, because any key of the mapping replaces a merged key
		switch source := resolve(p.value); {
		case !p.isMerge():
		case source.Kind != yaml.MappingNode || slices.ContainsFunc(source.Content, isMerge):
			d.add(join(key, "<<"), placeOf(p.key), "must be an alias of keys and values that contain no <<")
		default:
			d.fields(key, source, into)
		}
	}
	for _, p := range pairs {
		path := join(key, p.key.Value)
		switch field, known := fields[p.key.Value]; {
		case p.isMerge():
		case known:
			d.places[path] = placeOf(p.key)
			d.value(path, p.value, field)
			if isPath[p.key.Value] && field.String() != "" && resolve(p.value).Tag != "!!null" {
				field.SetString(d.inFolder(field.String()))
			}
		default:
			d.add(path, placeOf(p.key), "unknown key; known here are %s", strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
		}
	}
}

// field parses the name of a Field without a section.
func (d *decoder) field(key string, at place, node *yaml.Node, into reflect.Value) {
	var name string
	if !isNull(node) {
		d.scalar(key, at, node, reflect.ValueOf(&name).Elem())
	}
	into.Set(reflect.ValueOf(providers.VideoField{Name: name, Absent: name == ""}))
}

func (d *decoder) entries(key string, node *yaml.Node, into reflect.Value) {
	entries := reflect.MakeMap(into.Type())
	for _, p := range d.pairs(key, node) {
		path := join(key, p.key.Value)
		if p.isMerge() {
			d.add(path, placeOf(p.key), "<< is not supported in a map whose keys are names")
			continue
		}
		d.places[path] = placeOf(p.key)
		entry := newEntry(into.Type().Elem())
		d.value(path, p.value, entry)
		entries.SetMapIndex(reflect.ValueOf(p.key.Value), entry)
	}
	into.Set(entries)
}

func (d *decoder) elements(key string, node *yaml.Node, into reflect.Value) {
	if node.Kind != yaml.SequenceNode {
		d.add(key, placeOf(node), "must be a list, not %s", describe(node))
		return
	}
	elements := reflect.MakeSlice(into.Type(), 0, len(node.Content))
	for i, element := range node.Content {
		entry := newEntry(into.Type().Elem())
		d.value(key+"["+strconv.Itoa(i)+"]", element, entry)
		elements = reflect.Append(elements, entry)
	}
	into.Set(elements)
}

// newEntry returns a settable entry of a list or map, with its defaults.
func newEntry(t reflect.Type) reflect.Value {
	entry := reflect.New(t)
	if defaulter, ok := reflect.TypeAssert[interface{ setDefaults() }](entry); ok {
		defaulter.setDefaults()
	}
	return entry.Elem()
}

func describe(node *yaml.Node) string {
	switch node.Kind {
	case yaml.MappingNode:
		return "keys and values"
	case yaml.SequenceNode:
		return "a list"
	default:
		return "a single value"
	}
}

// quoted are the styles of scalars that are always text.
const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

func (d *decoder) scalar(key string, at place, node *yaml.Node, into reflect.Value) {
	if node.Kind != yaml.ScalarNode {
		d.add(key, at, "must be %s, not %s", expected(into.Type()), describe(node))
		return
	}
	raw := node.Value
	text, err := expand(raw, d.variable, d.file)
	if err != nil {
		d.add(key, at, "%v", err)
		return
	}
	// A quoted number is text, unless the quotes are needed for the braces of ${NAME}.
	if err := setScalar(into, text, node.Style&quoted != 0 && text == raw); err != nil {
		if text != raw { // the text came from the environment and may be a secret
			err = fmt.Errorf("%s does not contain %s", raw, expected(into.Type()))
		}
		d.add(key, at, "%v", err)
	}
}

func (d *decoder) variable(name string) (string, error) {
	value, ok := d.env(name)
	if !ok {
		return "", fmt.Errorf("the environment variable %s is not set", name)
	}
	return value, nil
}

// inFolder makes a relative path start from the configuration's folder.
func (d *decoder) inFolder(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(d.folder, path)
}

// file returns the text of a file without its trailing line end.
func (d *decoder) file(path string) (string, error) {
	path = d.inFolder(path)
	if !slices.Contains(d.files, path) {
		d.files = append(d.files, path)
	}
	text, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	switch {
	case err != nil:
		return "", fmt.Errorf("the file cannot be read: %w", err)
	case len(text) > maxSecretFile:
		return "", fmt.Errorf("the file %s is larger than %d KiB", path, maxSecretFile>>10)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

func setScalar(into reflect.Value, text string, isText bool) error {
	mismatch := func() error { return fmt.Errorf("must be %s, not %q", expected(into.Type()), text) }
	switch pointer := into.Addr().Interface().(type) {
	case *Size:
		return pointer.UnmarshalText([]byte(text))
	case *time.Duration:
		parsed, err := parseDuration(text)
		*pointer = parsed
		return err
	case *time.Time:
		parsed, err := ParseTime(text)
		*pointer = parsed
		return err
	case *bool:
		if isText || text != "true" && text != "false" {
			return mismatch()
		}
		*pointer = text == "true"
	case *int:
		parsed, err := strconv.Atoi(text)
		if err != nil || isText {
			return mismatch()
		}
		*pointer = parsed
	case *float64:
		parsed, err := strconv.ParseFloat(text, 64)
		if err != nil || isText || math.IsNaN(parsed) || math.IsInf(parsed, 0) {
			return mismatch()
		}
		*pointer = parsed
	default:
		into.SetString(text)
	}
	return nil
}

// expected describes the form of a type's values for operators.
func expected(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return "a duration such as 30s"
	case reflect.TypeFor[time.Time]():
		return "a date or an RFC 3339 time"
	case reflect.TypeFor[Size]():
		return "a size such as 64MiB"
	case reflect.TypeFor[Amount]():
		return "an amount such as 0.25"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	default:
		return "text"
	}
}
