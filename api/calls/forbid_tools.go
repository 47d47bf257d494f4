package calls

import (
	"slices"
	"strconv"
	"strings"

	"modelrelay/providers/rawjson"
)

// carriedTool names the first tool of an item of the input that is not run by the client itself, "" where all are.
func carriedTool(field string, input rawjson.Value) string {
	for at, item := range input.Items() {
		for name, value := range item.Members() {
			tools := name.String()
			if !strings.EqualFold(tools, "tools") {
				continue
			}
			if param := hostedTool(field+"["+strconv.Itoa(at)+"]."+tools, value); param != "" {
				return param
			}
		}
	}
	return ""
}

// hostedTool names the first of the tools in a field that is not run by the client itself, "" where all are. A tool that stands
// without an array is a tool as well: Google's APIs take it for the only one.
func hostedTool(field string, tools rawjson.Value) string {
	if tools.IsObject() && !ownTool(tools) {
		return field
	}
	for at, tool := range tools.Items() {
		if !ownTool(tool) {
			return field + "[" + strconv.Itoa(at) + "]"
		}
	}
	return ""
}

// ownTool tells whether a tool, in any format, is one that the client runs. What is not known to be counts as the vendor's,
// and so does a tool of two types, of which an upstream may read either.
func ownTool(tool rawjson.Value) bool {
	typed, named, others := false, false, false
	for name, value := range tool.Members() {
		switch strings.ToLower(name.String()) {
		case "type":
			kind := value.Text().String()
			if kind != "" && !ownType(kind) {
				return false
			}
			typed = typed || kind != ""
		case "name", "function":
			named = true
		case "functiondeclarations", "function_declarations", "computeruse", "computer_use":
		default:
			others = true
		}
	}
	return typed || named || !others
}

// ownType tells whether tools of a type are run by the client.
func ownType(kind string) bool {
	return slices.ContainsFunc(ownTools(), func(own string) bool {
		rest, is := strings.CutPrefix(kind, own)
		return is && (rest == "" || rest[0] == '_' || rest[0] == '-')
	})
}

// ownTools begin the types of tools that clients run, which vendors date behind: bash_20250124.
func ownTools() []string {
	return []string{"function", "custom", "local_shell", "apply_patch", "computer", "bash", "text_editor", "str_replace_based_edit_tool", "memory"}
}
