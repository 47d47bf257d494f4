package calls

import (
	"encoding/json"
	"net/http"
	"slices"
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
	// ForbidCachedContent is what Gemini, or Ark, keeps of earlier calls: nobody here sees it, and its storage is billed by the hour.
	ForbidCachedContent = "cached_content"
	// ForbidLongCache is a mark whose part of the prompt is kept for longer than five minutes. Anthropic bills what is written for
	// an hour at twice the price of input.
	ForbidLongCache = "long_cache"
	// ForbidLongContext is Anthropic's beta of prompts above 200,000 tokens, all of whose tokens cost up to twice as much.
	ForbidLongContext = "long_context"
	// ForbidOtherModels is a choice of models, or of their hosts, beside the one that the call names and is priced by.
	ForbidOtherModels = "other_models"
)

// Forbiddable lists what a group may forbid.
func Forbiddable() []string {
	return []string{
		ForbidBackground, ForbidServiceTier, ForbidHostedTools, ForbidInferenceGeo, ForbidCachedContent, ForbidLongCache, ForbidLongContext,
		ForbidOtherModels,
	}
}

// forbids are the words of the caller's group.
func (c *Calls) forbids(x *edge.Request) []string {
	if c.options.Forbids == nil {
		return nil
	}
	return c.options.Forbids(x.Caller.Group)
}

// forbidden refuses a call that asks for what its caller's group forbids, before anything is sent. Only calls in JSON can.
func (c *Calls) forbidden(x *edge.Request, call Call) error {
	words := c.forbids(x)
	if len(words) == 0 || call.ContentType != "application/json" {
		return nil
	}
	if slices.Contains(words, ForbidLongContext) && longContext(call.Header) {
		return forbiddenField(betaHeader)
	}
	return Forbidden(words, call.Body)
}

// betaHeader names features of Anthropic's that are not there for everyone yet; longContextBeta begins that of long prompts.
const (
	betaHeader      = "anthropic-beta"
	longContextBeta = "context-1m"
)

// longContext tells whether a call asks for Anthropic's beta of long prompts.
func longContext(header http.Header) bool {
	for _, line := range header.Values(betaHeader) {
		for beta := range strings.SplitSeq(line, ",") {
			if strings.HasPrefix(strings.ToLower(strings.TrimSpace(beta)), longContextBeta) {
				return true
			}
		}
	}
	return false
}

// Forbidden is nil for a JSON object that asks for nothing of what the words forbid, else a *providers.Fault that names the
// member.
func Forbidden(words []string, object []byte) error {
	if len(words) == 0 {
		return nil
	}
	if param := forbiddenIn(words, object, 0); param != "" {
		return forbiddenField(param)
	}
	if slices.Contains(words, ForbidLongCache) {
		if param := longMark(object); param != "" {
			return forbiddenField(param)
		}
	}
	return nil
}

// shortCache is how long a cache mark keeps its part of a prompt that does not say.
const shortCache = "5m"

// longMark names the first cache mark that lasts longer than the usual five minutes, "" where there is none. Marks stand beside
// parts of messages, of results and of instructions, beside tools, and beside all of them.
func longMark(object []byte) (param string) {
	for place, ttl := range body.TextsNamed(object, "ttl") {
		if in := place.In(); (in == "cache_control" || in == "prompt_cache_breakpoint") && string(ttl) != shortCache {
			return place.String()
		}
	}
	return ""
}

func forbiddenField(param string) *providers.Fault {
	return providers.InvalidField(param, "Invalid request: '%s' may not be used with this API key.", param)
}

// withinMost is how many objects of members that are read as the call's own stand in one another: Google's in extra_body. Each is
// read once more for every level, and a body may have thousands.
const withinMost = 2

// forbiddenIn names the first member of an object that the words forbid, "" where there is none. The object stands within so many
// others that are read as the call's own.
func forbiddenIn(words []string, object []byte, within int) (param string) {
	for name, value := range body.Members(object) {
		if param := forbiddenMember(words, text(object[name.From:name.To]), object[value.From:value.To], within); param != "" {
			return param
		}
	}
	return ""
}

// looker looks at what a client says in a conversation; nil: its group forbids nothing.
func (c *Calls) looker(x *edge.Request, in Dialogue) *upstream.Check {
	if len(c.forbids(x)) == 0 {
		return nil
	}
	return &upstream.Check{
		Look: func(message []byte, text bool) []byte {
			if fault := forbiddenEvent(c.forbids(x), message, text); fault != nil {
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
		switch field := text(message[name.From:name.To]); strings.ToLower(field) {
		case "session", "response":
			if param := forbiddenIn(words, message[value.From:value.To], 0); param != "" {
				return forbiddenField(field + "." + param)
			}
		}
	}
	return nil
}

// forbiddenMember is the field at fault where a member of a body is forbidden, "" where it is not. Upstreams differ in whether a name
// in another case is the same name, so it counts as the same.
func forbiddenMember(words []string, field string, value []byte, within int) (param string) {
	name := strings.ToLower(field)
	switch name {
	case "extra_body", "google": // Google reads its own members of OpenAI's calls there
		if within == withinMost {
			return ""
		}
		if param := forbiddenIn(words, value, within+1); param != "" {
			return field + "." + param
		}
		return ""
	case "tools":
		if !slices.Contains(words, ForbidHostedTools) {
			return ""
		}
		return hostedTool(field, value)
	case "input": // whose items may bring tools along
		if !slices.Contains(words, ForbidHostedTools) {
			return ""
		}
		return carriedTool(field, value)
	}
	empty := string(value) == "null" || string(value) == "[]"
	if word := wordOf(name, value); empty || word == "" || !slices.Contains(words, word) {
		return ""
	}
	return field
}

// wordOf is the word that forbids a member of that name, in small letters, with such a value; "" where none does.
func wordOf(name string, value []byte) string {
	switch name {
	case "background": // a picture's background is a text
		return when(string(value) == "true", ForbidBackground)
	case "service_tier", "servicetier":
		return ForbidServiceTier
	case "speed": // of Anthropic's messages a text, whose "fast" costs several times as much; of spoken text a number
		return when(value[0] == '"' && text(value) != "standard", ForbidServiceTier)
	case "inference_geo": // "global" is what it is without the field
		return when(text(value) != "global", ForbidInferenceGeo)
	case "cachedcontent", "cached_content":
		return ForbidCachedContent
	case "caching": // Ark's
		return when(text(member(value, "type")) != "disabled", ForbidCachedContent)
	case "models", "fallbacks": // OpenRouter's and Anthropic's: what answers is billed at its own price
		return when(value[0] == '[', ForbidOtherModels)
	case "provider", "provideroptions": // of gateways: who serves the model, at which price
		return when(value[0] == '{', ForbidOtherModels)
	case "preset": // OpenRouter's: what it keeps under a name, a model among it
		return when(value[0] == '"', ForbidOtherModels)
	}
	return when(searches(name, value), ForbidHostedTools)
}

// searches tells whether a member has the vendor search, or run something else that it bills by use, without a tool.
func searches(name string, value []byte) bool {
	switch name {
	case "web_search_options", "mcp_servers",
		"plugins",         // OpenRouter's, and MiniMax's
		"data_sources",    // Azure's
		"compound_custom": // Groq's
		return true
	case "prompt": // an object is one that the vendor keeps, with tools of its own
		return value[0] == '{'
	case "search_parameters": // xAI's
		return text(member(value, "mode")) != "off"
	case "enable_search", "enable_code_interpreter", // Qwen's
		"enable_enhancement", "force_search_enhancement": // Hunyuan's
		return string(value) != "false"
	case "web_search": // Qianfan's
		return value[0] == '{' && string(member(value, "enable")) != "false"
	case "connectors": // Cohere's
		return value[0] == '['
	}
	return false
}

// when is the word where something is so, else "".
func when(so bool, word string) string {
	if so {
		return word
	}
	return ""
}

// member is the raw value of an object's member, nil where there is none.
func member(object []byte, name string) []byte {
	at := body.Member(object, name)
	return object[at.From:at.To]
}

// text is a name or a text of JSON; "" for anything else.
func text(value []byte) string {
	var s string
	_ = json.Unmarshal(value, &s) // what is no text is ""
	return s
}
