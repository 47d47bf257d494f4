package config

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

func (d *decoder) scalar(key string, at place, node ast.Node, into reflect.Value) {
	leaf, ok := node.(ast.ScalarNode)
	if !ok {
		d.add(key, at, "wants %s, not %s", wanted(into.Type()), describe(node))
		return
	}
	raw := leaf.GetToken().Value
	quoted := leaf.GetToken().Type == token.SingleQuoteType || leaf.GetToken().Type == token.DoubleQuoteType
	if block, ok := leaf.(*ast.LiteralNode); ok {
		raw, quoted = block.Value.Value, true
	}
	text, err := expand(raw, d.env)
	if err != nil {
		d.add(key, at, "%v", err)
		return
	}
	// A quoted number is text, unless the quotes are there for the braces of ${NAME}.
	if err := setScalar(into, text, quoted && text == raw); err != nil {
		if text != raw { // the text came from the environment and may be a secret
			err = fmt.Errorf("%s does not hold %s", raw, wanted(into.Type()))
		}
		d.add(key, at, "%v", err)
	}
}

// setScalar converts the text to the type of the field.
func setScalar(into reflect.Value, text string, isText bool) error {
	mismatch := func() error { return fmt.Errorf("wants %s, not %q", wanted(into.Type()), text) }
	if reader, ok := reflect.TypeAssert[encoding.TextUnmarshaler](into.Addr()); ok && into.Type() != reflect.TypeFor[time.Time]() {
		return reader.UnmarshalText([]byte(text))
	}
	switch pointer := into.Addr().Interface().(type) {
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

// wanted says in an operator's words what a type is written like.
func wanted(t reflect.Type) string {
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
