package config

import (
	"fmt"
	"reflect"
	"strings"
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
	case []providers.Secret, map[string]string, map[string][]string, map[string]providers.VideoFields:
		return ""
	default:
		return fmt.Sprint(v)
	}
}
