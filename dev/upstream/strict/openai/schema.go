package openai

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// functionFault says what of a schema of a function, or of an answer, is not taken; empty: nothing,
// https://platform.openai.com/docs/guides/structured-outputs#supported-schemas.
func functionFault(schema map[string]any, strictly bool) string {
	if schema == nil {
		return ""
	}
	kind := "None"
	if schema["type"] != nil {
		kind = fmt.Sprint(schema["type"])
	}
	if kind != "object" {
		return fmt.Sprintf("schema must be a JSON Schema of 'type: \"object\"', got 'type: \"%s\"'.", kind)
	}
	for _, word := range []string{"oneOf", "anyOf", "allOf", "enum", "not"} {
		if schema[word] != nil {
			return "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
		}
	}
	return fault(schema, nil, strictly)
}

// fault walks a schema; path is how the vendor names the place.
func fault(v any, path []string, strictly bool) string {
	schema, ok := v.(map[string]any)
	if !ok {
		return ""
	}
	said := func(format string, args ...any) string {
		quoted := make([]string, len(path))
		for i, step := range path {
			quoted[i] = "'" + step + "'"
		}
		at := strings.Join(quoted, ", ")
		if len(path) == 1 {
			at += ","
		}
		return fmt.Sprintf("In context=(%s), ", at) + fmt.Sprintf(format, args...)
	}
	if schema["type"] == "array" && schema["items"] == nil && schema["prefixItems"] == nil {
		return said("array schema missing items.")
	}
	if schema["type"] == "object" && schema["properties"] == nil && !strictly && schema["additionalProperties"] == nil && len(path) == 0 {
		return said("object schema missing properties.")
	}
	if strictly {
		if words := strictFault(schema); words != "" {
			return said("%s", words)
		}
	}
	for _, group := range []string{"properties", "$defs", "definitions"} {
		members, _ := schema[group].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if words := fault(members[name], append(slices.Clone(path), group, name), strictly); words != "" {
				return words
			}
		}
	}
	for _, group := range []string{"anyOf", "oneOf", "allOf"} {
		list, _ := schema[group].([]any)
		for i, one := range list {
			if words := fault(one, append(slices.Clone(path), group, fmt.Sprint(i)), strictly); words != "" {
				return words
			}
		}
	}
	return fault(schema["items"], append(slices.Clone(path), "items"), strictly)
}

// strictFault says what of one schema "strict" does not take.
func strictFault(schema map[string]any) string {
	for _, word := range []string{
		"allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "patternProperties", "propertyNames",
		"uniqueItems", "contains",
		"minProperties", "maxProperties", "unevaluatedProperties",
	} {
		if schema[word] != nil {
			return fmt.Sprintf("'%s' is not permitted.", word)
		}
	}
	if schema["$ref"] != nil && len(schema) > 1 {
		var others []string
		for name := range schema {
			if name != "$ref" && name != "$defs" && name != "definitions" {
				others = append(others, "'"+name+"'")
			}
		}
		if len(others) > 0 {
			slices.Sort(others)
			return fmt.Sprintf("$ref cannot have keywords {%s}.", strings.Join(others, ", "))
		}
	}
	if format, ok := schema["format"].(string); ok && !slices.Contains([]string{
		"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid",
	}, format) && schema["type"] == "string" {
		return fmt.Sprintf("'%s' is not a valid format.", format)
	}
	properties, has := schema["properties"].(map[string]any)
	if schema["type"] != "object" && !has {
		return ""
	}
	if schema["additionalProperties"] != false {
		return "'additionalProperties' is required to be supplied and to be false."
	}
	required, _ := schema["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !slices.Contains(required, any(name)) {
			return fmt.Sprintf("'required' is required to be supplied and to be an array including every key in properties. Missing '%s'.", name)
		}
	}
	for _, name := range required {
		if s, _ := name.(string); properties[s] == nil {
			return fmt.Sprintf("'required' is required to be supplied and to be an array including every key in properties. Extra required key '%s' supplied.", s)
		}
	}
	return ""
}
