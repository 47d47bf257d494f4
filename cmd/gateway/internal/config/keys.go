package config

import (
	"iter"
	"reflect"
	"sync"
)

// RestartKeys returns the keys with different values that take effect only after a restart.
func RestartKeys(before, after Config) []string {
	var changed []string
	now := make(map[string]any)
	eachSetting("", reflect.ValueOf(after), false, func(path string, value reflect.Value) { now[path] = value.Interface() })
	eachSetting("", reflect.ValueOf(before), false, func(path string, value reflect.Value) {
		if !reflect.DeepEqual(value.Interface(), now[path]) {
			changed = append(changed, path)
		}
	})
	if before.Temporal.Secure() != after.Temporal.Secure() {
		changed = append(changed, "temporal.tls")
	}
	return changed
}

// eachSetting visits the keys of a section that have a value: with live, those that a reload applies, else those that require a restart.
func eachSetting(path string, section reflect.Value, live bool, visit func(path string, value reflect.Value)) {
	for field, value := range keyFields(section) {
		at := join(path, field.Tag.Get("yaml"))
		_, isLeaf := field.Tag.Lookup("doc")
		switch isLive := field.Tag.Get("live") == "true"; {
		case !isLive && value.Kind() == reflect.Struct && !isLeaf:
			eachSetting(at, value, live, visit)
		case isLive == live:
			visit(at, value)
		}
	}
}

// visibleFields has reflect.VisibleFields of each type: a configuration has thousands of sections of a few types.
var visibleFields sync.Map //nolint:gochecknoglobals // types live as long as the process

// keyFields yields the fields of a section that are keys of the file, also those of embedded structs.
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
