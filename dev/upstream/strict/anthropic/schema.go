package anthropic

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// schemaFault says what of a schema the vendor's grammar does not take; empty: nothing,
// https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations.
func schemaFault(schema map[string]any) string {
	s := schemas{root: schema}
	return s.fault(schema, nil)
}

type schemas struct{ root map[string]any }

// fault walks a schema; open are the definitions it is inside of.
func (s *schemas) fault(v any, open []string) string {
	schema, ok := v.(map[string]any)
	if !ok {
		return "" // a boolean
	}
	if ref, ok := schema["$ref"].(string); ok {
		return s.reference(ref, open)
	}
	if fault := keywords(schema); fault != "" {
		return fault
	}
	for _, key := range []string{"properties", "$defs", "definitions"} {
		group, _ := schema[key].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(group)) {
			inside := open
			if key != "properties" {
				inside = append(slices.Clone(open), "#/"+key+"/"+name)
			}
			if fault := s.fault(group[name], inside); fault != "" {
				return fault
			}
		}
	}
	for _, key := range []string{"anyOf", "allOf"} {
		list, _ := schema[key].([]any)
		for _, one := range list {
			if fault := s.fault(one, open); fault != "" {
				return fault
			}
		}
	}
	return s.fault(schema["items"], open)
}

func (s *schemas) reference(ref string, open []string) string {
	if slices.Contains(open, ref) || ref == "#" {
		return fmt.Sprintf("Circular reference detected in schema definitions: %s", ref)
	}
	path, local := strings.CutPrefix(ref, "#/")
	if !local {
		return fmt.Sprintf("External $ref '%s' is not supported", ref)
	}
	var at any = s.root
	for step := range strings.SplitSeq(path, "/") {
		m, _ := at.(map[string]any)
		if at = m[step]; at == nil {
			return fmt.Sprintf("$ref '%s' not found", ref)
		}
	}
	return s.fault(at, append(slices.Clone(open), ref))
}

// keywords says which of one schema's own words are not taken.
func keywords(schema map[string]any) string {
	kind, _ := schema["type"].(string)
	unsupported := map[string][]string{
		"integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
		"number":  {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
		"string":  {"minLength", "maxLength"},
		"array":   {"maxItems", "uniqueItems", "contains", "prefixItems"},
		"object":  {"patternProperties", "minProperties", "maxProperties", "propertyNames", "unevaluatedProperties"},
	}[kind]
	var found []string
	for _, word := range unsupported {
		if schema[word] != nil {
			found = append(found, word)
		}
	}
	slices.Sort(found)
	switch len(found) {
	case 0:
	case 1:
		return fmt.Sprintf("For '%s' type, property '%s' is not supported", kind, found[0])
	default:
		return fmt.Sprintf("For '%s' type, properties %s are not supported", kind, strings.Join(found, ", "))
	}
	for _, word := range []string{"oneOf", "not", "if", "then", "else", "dependentSchemas", "dependentRequired"} {
		if schema[word] != nil {
			return fmt.Sprintf("Schema type '%s' is not supported", word)
		}
	}
	least, bounded := schema["minItems"].(float64)
	switch {
	case kind == "object" && schema["additionalProperties"] != false:
		return "For 'object' type, 'additionalProperties' must be explicitly set to false"
	case bounded && least != 0 && least != 1:
		return "For 'array' type, 'minItems' values other than 0 or 1 are not supported"
	case kind == "string" && schema["format"] != nil:
		return format(schema["format"])
	}
	return ""
}

func format(v any) string {
	word, _ := v.(string)
	switch word {
	case "date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid":
		return ""
	}
	return fmt.Sprintf("For 'string' type, format '%v' is not supported", v)
}
