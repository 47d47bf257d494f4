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
	for _, header := range c.priced.Headers {
		if slices.Contains(words, header.Forbid) && lists(call.Header, header) {
			return forbiddenField(header.Name)
		}
	}
	return c.priced.find(words, call.Body)
}

// lists reports whether a call's header lists a word that costs more.
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

// Forbidden is nil for a JSON object that asks for nothing of what the group forbids, else a *providers.Fault that names the
// member.
func (c *Calls) Forbidden(group string, object []byte) error {
	if c.options.Forbids == nil {
		return nil
	}
	return c.priced.find(c.options.Forbids(group), object)
}

// priced is what the vendors bill next to tokens.
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

// find is the fault of the first member of a JSON object that the words forbid, nil where there is none.
func (p priced) find(words []string, body []byte) error {
	if len(words) == 0 {
		return nil
	}
	object := rawjson.Trim(body)
	if param := p.in(words, object, 0); param != "" {
		return forbiddenField(param)
	}
	if slices.Contains(words, providers.ForbidLongCache) {
		for _, mark := range p.Marks {
			for place, value := range object.Texts(p.isArguments) {
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

// withinMost is how many objects of members that are read as the call's own are in one another. Each is read once more for every level,
// and a body may have thousands.
const withinMost = 2

// in names the first member of an object that the words forbid, "" where there is none. The object is within so many others that are read
// as the call's own.
func (p priced) in(words []string, object rawjson.Value, within int) (param string) {
	for name, value := range object.Members() {
		if param := p.member(words, name.String(), value, within); param != "" {
			return param
		}
	}
	return ""
}

// checker checks the messages of a client in a conversation; nil: its group forbids nothing.
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

// event is why a message of a conversation, nil for one that was not held, goes no further; nil: it may go on. What a
// vendor does for its answers is in the members of the session, and in those of an answer that is asked for. Some vendors take
// events in binary messages as well; one that is no JSON is none.
func (p priced) event(words []string, message []byte, isText bool) *providers.Fault {
	switch {
	case message == nil:
		return providers.InvalidField("", "Invalid request: with this API key a message may be at most %d MiB long, "+
			"and there is room for only so many under way together.", upstream.MaxChecked>>20)
	case len(words) == 0: // nothing is forbidden any more
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

// member is the field at fault where a member of a body is forbidden, "" where it is not.
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
	case name == "input" && slices.Contains(words, providers.ForbidHostedTools): // its items may bring tools along
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

// costs reports whether a value of a member costs something.
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

// isArguments reports whether a member's objects are the client's own.
func (p priced) isArguments(name rawjson.Text) bool {
	return slices.ContainsFunc(p.Tools.Arguments, name.Is)
}
