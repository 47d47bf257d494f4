package config

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"modelrelay/providers"
	"modelrelay/storage/audit"
)

// leaf is a value of the file: as compared, and as shown in JSON.
type leaf struct {
	is    string
	shown json.RawMessage
}

// Changes returns what a reload of a changed file changes, key by key, for the audit log. It only reports that a secret differs.
func Changes(before, after Config) []audit.Change {
	old, now := map[string]leaf{}, map[string]leaf{}
	for _, side := range []struct {
		cfg  Config
		into map[string]leaf
	}{{before, old}, {after, now}} {
		eachSetting("", reflect.ValueOf(side.cfg), true, func(path string, value reflect.Value) { flatten(side.into, path, value) })
	}
	paths := slices.AppendSeq(slices.Collect(maps.Keys(old)), maps.Keys(now))
	slices.Sort(paths)
	var changes []audit.Change
	for _, path := range slices.Compact(paths) {
		if old[path].is != now[path].is {
			changes = append(changes, audit.Change{Field: path, Old: old[path].shown, New: now[path].shown})
		}
	}
	return changes
}

// entryPath returns the path of an entry of a list: with its name, or else its index.
func entryPath(list string, i int, entry reflect.Value) string {
	for _, field := range []string{"Name", "ID"} {
		if name := entry.FieldByName(field); name.IsValid() && name.String() != "" {
			return join(list, name.String())
		}
	}
	return key(list, i)
}

func flatten(into map[string]leaf, path string, value reflect.Value) {
	if value.IsZero() {
		return
	}
	switch v := value.Interface().(type) {
	case providers.Secret:
		into[path] = leaf{v.Reveal(), json.RawMessage(`"***"`)}
		return
	case []providers.Secret:
		all := make([]string, len(v))
		for i := range v {
			all[i] = v[i].Reveal()
		}
		into[path] = shownAs(strings.Join(all, "\n"), v)
		return
	case time.Duration:
		into[path] = shownAs(v.String(), formatDuration(v))
		return
	case time.Time:
		into[path] = shownAs(v.String(), v)
		return
	}
	switch {
	case value.Kind() == reflect.Struct:
		for field, inner := range keyFields(value) {
			flatten(into, join(path, field.Tag.Get("yaml")), inner)
		}
	case value.Kind() == reflect.Slice && value.Type().Elem().Kind() == reflect.Struct:
		for i := range value.Len() {
			flatten(into, entryPath(path, i, value.Index(i)), value.Index(i))
		}
	case value.Kind() == reflect.Map:
		for _, name := range value.MapKeys() {
			if inner := value.MapIndex(name); inner.IsZero() {
				into[join(path, name.String())] = shownAs(" ", "") // the key is present and empty
			} else {
				flatten(into, join(path, name.String()), inner)
			}
		}
	default:
		shown := value.Interface()
		if text, ok := shown.(string); ok && strings.HasSuffix(path, ".webhook_url") {
			shown, _, _ = strings.Cut(text, "?")
		}
		raw := shownAs("", value.Interface())
		into[path] = shownAs(string(raw.shown), shown)
	}
}

func shownAs(is string, shown any) leaf {
	raw, _ := json.Marshal(shown) // values of the file always encode
	return leaf{is, raw}
}
