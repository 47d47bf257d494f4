package config

import (
	"iter"
	"reflect"
	"sync"
)

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
var visibleFields sync.Map //nolint:gochecknoglobals // types live as long as the process

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
