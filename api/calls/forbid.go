package calls

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/upstream"
)

// forbids returns the features that the caller's group forbids.
func (c *Calls) forbids(x *edge.Request) []string {
	if c.options.Forbids == nil {
		return nil
	}
	return c.options.Forbids(x.Caller.Group)
}

// forbidden returns a fault if the call requests what the caller's group forbids. Only calls in JSON can request it.
func (c *Calls) forbidden(x *edge.Request, call *Call) error {
	words := c.forbids(x)
	if len(words) == 0 || call.ContentType != "application/json" {
		return nil
	}
	for _, header := range c.priced.Headers {
		if slices.Contains(words, header.Forbid) && lists(call.Header, header) {
			return forbiddenField(header.Name)
		}
	}
	return c.priced.find(words, call.Body)
}

func lists(header http.Header, priced providers.PricedHeader) bool {
	for _, line := range header.Values(priced.Name) {
		for word := range strings.SplitSeq(line, ",") {
			if strings.HasPrefix(strings.ToLower(strings.TrimSpace(word)), priced.Begins) {
				return true
			}
		}
	}
	return false
}

// Forbidden returns a *providers.Fault that names the member of a JSON object which requests what the group forbids; nil if there is none.
func (c *Calls) Forbidden(group string, object []byte) error {
	if c.options.Forbids == nil {
		return nil
	}
	return c.priced.find(c.options.Forbids(group), object)
}

// priced describes the features that vendors bill in addition to tokens.
type priced struct {
	providers.Priced

	members map[string][]providers.PricedMember // by name
}

func newPriced(all providers.Priced) priced {
	p := priced{all, make(map[string][]providers.PricedMember, len(all.Members))}
	for _, member := range all.Members {
		p.members[member.Name] = append(p.members[member.Name], member)
	}
	return p
}

// find returns the fault of the first member of a JSON object that the words forbid; nil if there is none.
func (p priced) find(words []string, body []byte) error {
	if len(words) == 0 {
		return nil
	}
	object := rawjson.Trim(body)
	if param := p.in(words, object, 0); param != "" {
		return forbiddenField(param)
	}
	if slices.Contains(words, providers.ForbidLongCache) {
		arguments := func(name rawjson.Text) bool { return slices.ContainsFunc(p.Tools.Arguments, name.Is) } // the client's own objects
		for _, mark := range p.Marks {
			for place, value := range object.Texts(arguments) {
				if place.Name().Is(mark.Name) && place.In().Is(mark.In) && !value.Is(mark.Usual) {
					return forbiddenField(place.String())
				}
			}
		}
	}
	return nil
}

func forbiddenField(param string) *providers.Fault {
	return providers.InvalidField(param, "Invalid request: '%s' may not be used with this API key.", param)
}

// withinMost bounds the depth of nested objects that are checked as the call itself is: each level reads the object again.
const withinMost = 2

// in returns the first member of an object that the words forbid, "" for none. within is the depth of the object: see withinMost.
func (p priced) in(words []string, object rawjson.Value, within int) (param string) {
	for name, value := range object.Members() {
		if param := p.member(words, name.String(), value, within); param != "" {
			return param
		}
	}
	return ""
}

// checker returns the check of a client's messages in a conversation; nil if its group forbids nothing.
func (c *Calls) checker(x *edge.Request, in Dialogue) *upstream.Check {
	if len(c.forbids(x)) == 0 {
		return nil
	}
	return &upstream.Check{
		Look: func(message []byte, text bool) []byte {
			if fault := c.priced.event(c.forbids(x), message, text); fault != nil {
				return in.Refusal(message, fault)
			}
			return nil
		},
		Hold: x.Hold, Release: x.ReleaseBody,
	}
}

// event returns the fault of a client's message in a conversation; nil: it may pass. message is nil if it was too large to be held. The
// features of answers are in "session" and "response". A binary message passes unless it is JSON, which some vendors accept as well.
func (p priced) event(words []string, message []byte, isText bool) *providers.Fault {
	switch {
	case message == nil:
		return providers.InvalidField("", "Invalid request: with this API key a message may be at most %d MiB long, "+
			"and all such messages in progress share limited memory.", upstream.MaxChecked>>20)
	case len(words) == 0: // the group forbids nothing any more
		return nil
	case json.Valid(message):
	case isText:
		return providers.InvalidField("", "Invalid request: the message is not JSON.")
	default:
		return nil
	}
	for name, value := range rawjson.Trim(message).Members() {
		switch field := name.String(); strings.ToLower(field) {
		case "session", "response":
			if param := p.in(words, value, 0); param != "" {
				return forbiddenField(field + "." + param)
			}
		}
	}
	return nil
}

// member returns the forbidden field in a member of a body, "" if it is allowed.
func (p priced) member(words []string, field string, value rawjson.Value, within int) (param string) {
	name := strings.ToLower(field)
	switch {
	case slices.Contains(p.Within, name):
		if within == withinMost {
			return ""
		}
		if param := p.in(words, value, within+1); param != "" {
			return field + "." + param
		}
		return ""
	case name == "tools" && slices.Contains(words, providers.ForbidHostedTools):
		return p.hostedTool(field, value)
	case name == "input" && slices.Contains(words, providers.ForbidHostedTools): // its items may contain tools
		return p.carriedTool(field, value)
	case string(value) == "null" || string(value) == "[]":
		return ""
	}
	for _, one := range p.members[name] {
		if slices.Contains(words, one.Forbid) && costs(one, value) {
			return field
		}
	}
	return ""
}

func costs(m providers.PricedMember, value rawjson.Value) bool {
	if m.Begins != 0 && value[0] != m.Begins {
		return false
	}
	if m.Of != "" {
		value = value.Get(m.Of)
	}
	is := func(other string) bool {
		return string(value) == other || other != "" && other[0] == '"' && value.Text().Is(strings.Trim(other, `"`))
	}
	return (m.Only == "" || is(m.Only)) && (m.Unless == "" || !is(m.Unless))
}
