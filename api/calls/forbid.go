package calls

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"modelrelay/api/body"
	"modelrelay/api/edge"
	"modelrelay/providers"
)

// What a group may forbid its tokens: fields of a call that change what it costs.
const (
	// ForbidBackground is a response that the vendor works on behind its answer.
	ForbidBackground = "background"
	// ForbidServiceTier is a choice of how soon, or how dear, a call is answered.
	ForbidServiceTier = "service_tier"
	// ForbidHostedTools are tools that the vendor runs, and bills by their use.
	ForbidHostedTools = "hosted_tools"
)

// forbidden refuses a call that asks for what its caller's group forbids, before anything is sent. Only calls in JSON can.
func (c *Calls) forbidden(x *edge.Request, call Call) error {
	if c.options.Forbids == nil || call.ContentType != "application/json" {
		return nil
	}
	words := c.options.Forbids(x.Caller.Group)
	if len(words) == 0 {
		return nil
	}
	for name, value := range body.Members(call.Body) {
		if param := forbiddenMember(words, text(call.Body[name.From:name.To]), call.Body[value.From:value.To]); param != "" {
			return providers.InvalidField(param, "Invalid request: '%s' may not be used with this API key.", param)
		}
	}
	return nil
}

// forbiddenMember is the field at fault where a member of a body is forbidden, "" where it is not.
func forbiddenMember(words []string, field string, value []byte) (param string) {
	word := ForbidHostedTools
	switch field {
	case "background":
		if string(value) != "true" { // a picture's background is a text
			return ""
		}
		word = ForbidBackground
	case "service_tier", "serviceTier":
		word = ForbidServiceTier
	case "speed": // of Anthropic's messages a text, whose "fast" costs several times as much; of spoken text a number
		if value[0] != '"' || text(value) == "standard" {
			return ""
		}
		word = ForbidServiceTier
	case "web_search_options", "mcp_servers":
	case "prompt":
		if value[0] != '{' { // else one that the vendor keeps, with tools of its own
			return ""
		}
	case "tools":
		if field = hostedTool(value); field == "" {
			return ""
		}
	default:
		return ""
	}
	if empty := string(value) == "null" || string(value) == "[]"; empty || !slices.Contains(words, word) {
		return ""
	}
	return field
}

// text is a name or a text of JSON; "" for anything else.
func text(value []byte) string {
	var s string
	_ = json.Unmarshal(value, &s) // what is no text is ""
	return s
}

// hostedTool names the first of a call's tools that is not run by the client itself, "" where all are. A tool that stands
// without an array is a tool as well: Google's APIs take it for the only one.
func hostedTool(tools []byte) string {
	if tools[0] == '{' && !ownTool(tools) {
		return "tools"
	}
	at := 0
	for item := range body.Items(tools) {
		if !ownTool(tools[item.From:item.To]) {
			return "tools[" + strconv.Itoa(at) + "]"
		}
		at++
	}
	return ""
}

// ownTool tells whether a tool, in any format, is one that the client runs. What is not known to be counts as the vendor's,
// and so does a tool of two types, of which an upstream may read either.
func ownTool(tool []byte) bool {
	typed, named, others := false, false, false
	for name, value := range body.Members(tool) {
		switch text(tool[name.From:name.To]) {
		case "type":
			kind := text(tool[value.From:value.To])
			if kind != "" && !ownType(kind) {
				return false
			}
			typed = typed || kind != ""
		case "name", "function":
			named = true
		case "functionDeclarations", "function_declarations", "computerUse", "computer_use":
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
