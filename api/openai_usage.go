package api

import (
	"modelrelay/api/body"
	"modelrelay/providers"
)

const askForUsage = `"include_usage":true`

// askUsage makes the upstream report what a stream used, by the smallest edit that says so. The client sees the report
// only where it asked for it itself.
func askUsage(call *providers.Call, b *body.JSON) {
	options := b.Span("stream_options")
	switch {
	case options == (providers.Span{}):
		call.Edits = append(call.Edits, body.InsertMember(b.Raw, 0, `"stream_options":{`+askForUsage+`}`))
	case b.Value("stream_options") == nil:
		call.Edits = append(call.Edits, providers.Edit{At: options, Text: []byte("{" + askForUsage + "}")})
	default:
		at := body.Member(b.Raw[options.From:options.To], "include_usage")
		if at == (providers.Span{}) {
			call.Edits = append(call.Edits, body.InsertMember(b.Raw, options.From, askForUsage))
			break
		}
		at.From, at.To = at.From+options.From, at.To+options.From
		switch string(b.Raw[at.From:at.To]) {
		case "false", "null":
			call.Edits = append(call.Edits, providers.Edit{At: at, Text: []byte("true")})
		default:
			return // asked for, or not a boolean, which is the upstream's to refuse
		}
	}
	call.HideUsage = true
}
