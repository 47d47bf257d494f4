package calls

import (
	"slices"
	"strconv"
	"strings"

	"modelrelay/providers/rawjson"
)

// carriedTool returns the first tool in the items of the input that the client does not run itself; "" for none.
func (p priced) carriedTool(field string, input rawjson.Value) string {
	for at, item := range input.Items() {
		for name, value := range item.Members() {
			tools := name.String()
			if !strings.EqualFold(tools, "tools") {
				continue
			}
			if param := p.hostedTool(field+"["+strconv.Itoa(at)+"]."+tools, value); param != "" {
				return param
			}
		}
	}
	return ""
}

// hostedTool returns the first of the tools in a field that the client does not run itself; "" for none. A tool that is not in an array
// counts too: some APIs accept it as the only one.
func (p priced) hostedTool(field string, tools rawjson.Value) string {
	if tools.IsObject() && !p.isClients(tools) {
		return field
	}
	for at, tool := range tools.Items() {
		if !p.isClients(tool) {
			return field + "[" + strconv.Itoa(at) + "]"
		}
	}
	return ""
}

// isClients reports whether the client runs a tool. An unknown tool, and one with two types, of which an upstream may read either, is not.
func (p priced) isClients(tool rawjson.Value) bool {
	typed, named, others := false, false, false
	for name, value := range tool.Members() {
		switch member := strings.ToLower(name.String()); {
		case member == "type":
			kind := value.Text().String()
			if kind != "" && !p.isClientType(kind) {
				return false
			}
			typed = typed || kind != ""
		case member == "name", member == "function":
			named = true
		case !slices.Contains(p.Tools.Members, member):
			others = true
		}
	}
	return typed || named || !others
}

func (p priced) isClientType(kind string) bool {
	return slices.ContainsFunc(p.Tools.Types, func(begins string) bool {
		rest, is := strings.CutPrefix(kind, begins)
		return is && (rest == "" || rest[0] == '_' || rest[0] == '-')
	})
}
