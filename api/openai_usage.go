package api

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"modelrelay/providers"
)

const askForUsage = `"include_usage":true`

// askUsage makes the upstream report what a stream used, by the smallest edit that says so. The client sees the report
// only where it asked for it itself.
func askUsage(call *providers.Call, b *body) {
	options := b.span("stream_options")
	switch {
	case options == (providers.Span{}):
		call.Edits = append(call.Edits, insertMember(b.raw, 0, `"stream_options":{`+askForUsage+`}`))
	case b.value("stream_options") == nil:
		call.Edits = append(call.Edits, providers.Edit{At: options, Text: []byte("{" + askForUsage + "}")})
	default:
		at := memberOf(b.raw[options.From:options.To], "include_usage")
		if at == (providers.Span{}) {
			call.Edits = append(call.Edits, insertMember(b.raw, options.From, askForUsage))
			break
		}
		at.From, at.To = at.From+options.From, at.To+options.From
		switch string(b.raw[at.From:at.To]) {
		case "false", "null":
			call.Edits = append(call.Edits, providers.Edit{At: at, Text: []byte("true")})
		default:
			return // asked for, or not a boolean, which is the upstream's to refuse
		}
	}
	call.HideUsage = true
}

// insertMember adds a member in front of the others of the object that begins at or after from.
func insertMember(raw []byte, from int, member string) providers.Edit {
	inside := from + bytes.IndexByte(raw[from:], '{') + 1
	if rest := bytes.TrimLeft(raw[inside:], " \t\r\n"); rest[0] != '}' {
		member += ","
	}
	return providers.Edit{At: providers.Span{From: inside, To: inside}, Text: []byte(member)}
}

// memberOf finds the last value of a member, by any of its names, in a valid object; the zero Span when it has none.
func memberOf(object []byte, names ...string) (at providers.Span) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(object), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if _, err := dec.ReadToken(); err != nil {
		return at
	}
	for dec.PeekKind() == jsontext.KindString {
		member, err := dec.ReadValue()
		if err != nil {
			return at
		}
		spelt := unquoted(member)
		found := slices.ContainsFunc(names, func(name string) bool { return name == string(spelt) })
		value, err := dec.ReadValue()
		if err != nil {
			return at
		}
		if found {
			to := int(dec.InputOffset())
			at = providers.Span{From: to - len(value), To: to}
		}
	}
	return at
}
