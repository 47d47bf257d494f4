package calls

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"modelrelay/api/body"
	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// What a group may forbid its tokens: fields of a call that change what it costs.
const (
	// ForbidBackground is a response that the vendor works on behind its answer.
	ForbidBackground = "background"
	// ForbidServiceTier is a choice of how soon, or how dear, a call is answered.
	ForbidServiceTier = "service_tier"
	// ForbidHostedTools are tools that the vendor runs, and bills by their use.
	ForbidHostedTools = "hosted_tools"
	// ForbidInferenceGeo is a choice of where a call is worked on, which Anthropic bills higher than anywhere.
	ForbidInferenceGeo = "inference_geo"
	// ForbidCachedContent is what Gemini keeps of earlier calls: nobody here sees it, and its storage is billed by the hour.
	ForbidCachedContent = "cached_content"
)

// Forbiddable lists what a group may forbid.
func Forbiddable() []string {
	return []string{ForbidBackground, ForbidServiceTier, ForbidHostedTools, ForbidInferenceGeo, ForbidCachedContent}
}

// forbidden refuses a call that asks for what its caller's group forbids, before anything is sent. Only calls in JSON can.
func (c *Calls) forbidden(x *edge.Request, call Call) error {
	if c.options.Forbids == nil || call.ContentType != "application/json" {
		return nil
	}
	return Forbidden(c.options.Forbids(x.Caller.Group), call.Body)
}

// Forbidden is nil for a JSON object that asks for nothing of what the words forbid, else a *providers.Fault that names the
// member.
func Forbidden(words []string, object []byte) error {
	if len(words) == 0 {
		return nil
	}
	if param := forbiddenIn(words, object); param != "" {
		return forbiddenField(param)
	}
	return nil
}

func forbiddenField(param string) *providers.Fault {
	return providers.InvalidField(param, "Invalid request: '%s' may not be used with this API key.", param)
}

// forbiddenIn names the first member of an object that the words forbid, "" where there is none.
func forbiddenIn(words []string, object []byte) (param string) {
	for name, value := range body.Members(object) {
		if param := forbiddenMember(words, text(object[name.From:name.To]), object[value.From:value.To]); param != "" {
			return param
		}
	}
	return ""
}

// looker looks at what a client says in a conversation; nil: its group forbids nothing.
func (c *Calls) looker(x *edge.Request, in Dialogue) *upstream.Check {
	if c.options.Forbids == nil || len(c.options.Forbids(x.Caller.Group)) == 0 {
		return nil
	}
	return &upstream.Check{
		Look: func(message []byte, text bool) []byte {
			if fault := forbiddenEvent(c.options.Forbids(x.Caller.Group), message, text); fault != nil {
				return in.Refusal(message, fault)
			}
			return nil
		},
		Hold: x.Hold, Release: x.ReleaseBody,
	}
}

// forbiddenEvent is why a message of a conversation, nil for one that was not held, goes no further; nil: it may go on. What a
// vendor does for its answers stands in the members of the session, and in those of an answer that is asked for. Some vendors take
// events in binary messages as well; one that is no JSON is none.
func forbiddenEvent(words []string, message []byte, isText bool) *providers.Fault {
	switch {
	case message == nil:
		return providers.InvalidField("", "Invalid request: with this API key a message may be at most %d MiB long, and there is room for only so many under way together.", upstream.MaxChecked>>20)
	case len(words) == 0: // nothing is forbidden any more
		return nil
	case json.Valid(message):
	case isText:
		return providers.InvalidField("", "Invalid request: the message is not JSON.")
	default:
		return nil
	}
	for name, value := range body.Members(message) {
		switch field := text(message[name.From:name.To]); field {
		case "session", "response":
			if param := forbiddenIn(words, message[value.From:value.To]); param != "" {
				return forbiddenField(field + "." + param)
			}
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
	case "inference_geo":
		if text(value) == "global" { // what it is without the field
			return ""
		}
		word = ForbidInferenceGeo
	case "cachedContent", "cached_content":
		word = ForbidCachedContent
	case "web_search_options", "mcp_servers", "plugins": // plugins are OpenRouter's
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
