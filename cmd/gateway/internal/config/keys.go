package config

import (
	"fmt"
	"iter"
	"reflect"
	"strings"
	"sync"
	"time"

	"modelrelay/providers"
)

// Key describes one key of the configuration file.
type Key struct {
	// Path is the key's path: [] stands for an entry of a list, <name> for one of a map.
	Path string
	// Default is written as in the file; "" means empty or absent.
	Default string
	Doc     string
	// Live reports whether a reload takes a change, without a restart.
	Live bool
}

// Keys lists every key the file may hold, in the order of Config.
func Keys() []Key {
	var keys []Key
	listKeys(&keys, "", reflect.ValueOf(Default()), false)
	return keys
}

func listKeys(keys *[]Key, path string, section reflect.Value, live bool) {
	for field, value := range keyFields(section) {
		at := join(path, field.Tag.Get("yaml"))
		live := live || field.Tag.Get("live") == "true"
		doc, isLeaf := field.Tag.Lookup("doc")
		switch {
		case isLeaf:
			*keys = append(*keys, Key{Path: at, Default: written(value), Doc: doc, Live: live})
		case field.Type.Kind() == reflect.Slice:
			listKeys(keys, at+"[]", newEntry(field.Type.Elem()), live)
		case field.Type.Kind() == reflect.Map:
			listKeys(keys, at+".<name>", newEntry(field.Type.Elem()), live)
		default:
			listKeys(keys, at, value, live)
		}
	}
}

// written writes a value as the file does; "" for an empty one.
func written(value reflect.Value) string {
	switch v := value.Interface().(type) {
	case providers.Secret:
		return v.Reveal() // of defaults only, which hold no secret
	case time.Duration:
		return formatDuration(v)
	case time.Time:
		return ""
	case []string:
		if len(v) == 0 {
			return ""
		}
		return `["` + strings.Join(v, `", "`) + `"]`
	case []providers.Secret, map[string]string, map[string][]string, map[string]map[string]Field:
		return ""
	default:
		return fmt.Sprint(v)
	}
}

// RestartKeys names the keys whose values differ and that only a restart takes.
func RestartKeys(before, after Config) []string {
	var changed []string
	diffKeys(&changed, "", reflect.ValueOf(before), reflect.ValueOf(after))
	if before.Temporal.Secure() != after.Temporal.Secure() {
		changed = append(changed, "temporal.tls")
	}
	return changed
}

func diffKeys(changed *[]string, path string, before, after reflect.Value) {
	for field, old := range keyFields(before) {
		at := join(path, field.Tag.Get("yaml"))
		now := after.FieldByIndex(field.Index)
		_, isLeaf := field.Tag.Lookup("doc")
		switch {
		case field.Tag.Get("live") == "true":
		case field.Type.Kind() == reflect.Struct && !isLeaf:
			diffKeys(changed, at, old, now)
		case !reflect.DeepEqual(old.Interface(), now.Interface()):
			*changed = append(*changed, at)
		}
	}
}

// visibleFields holds reflect.VisibleFields of each type: a configuration has thousands of sections of a few types.
var visibleFields sync.Map

// keyFields are the fields of a section that keys of the file stand for, those of embedded structs among them.
func keyFields(section reflect.Value) iter.Seq2[reflect.StructField, reflect.Value] {
	return func(yield func(reflect.StructField, reflect.Value) bool) {
		fields, known := visibleFields.Load(section.Type())
		if !known {
			fields, _ = visibleFields.LoadOrStore(section.Type(), reflect.VisibleFields(section.Type()))
		}
		for _, field := range fields.([]reflect.StructField) {
			if key := field.Tag.Get("yaml"); key != "" && !field.Anonymous && !yield(field, section.FieldByIndex(field.Index)) {
				return
			}
		}
	}
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}
