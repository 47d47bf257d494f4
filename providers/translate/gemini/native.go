package gemini

import (
	"bytes"

	"modelrelay/providers"
)

// ForeignState are the edits of a body in this vendor's own format that make it fit for the vendor where a conversation began
// at another one: signatures that are that one's state become the stand-in for a signature. Almost every body has none, which
// one search tells. The body is valid JSON.
func ForeignState(body []byte) (edits []providers.Edit) {
	begins := []byte(`"` + sealedPrefix)
	for at := 0; ; {
		found := bytes.Index(body[at:], begins)
		if found < 0 {
			return edits
		}
		from := at + found
		at = from + len(begins)
		length := bytes.IndexByte(body[at:], '"') // base64 has neither quotes nor escapes
		if length < 0 {
			return edits
		}
		if isSignature(body[:from]) && len(openSignature(body[from+1:at+length])) > 0 {
			at += length + 1
			edits = append(edits, providers.Edit{At: providers.Span{From: from, To: at}, Text: []byte(`"` + standIn + `"`)})
		}
	}
}

// isSignature tells whether what follows is the value of a signature. Within a text the quotes of a name are escaped.
func isSignature(before []byte) bool {
	const spaces = " \t\r\n"
	name, found := bytes.CutSuffix(bytes.TrimRight(before, spaces), []byte(":"))
	name = bytes.TrimRight(name, spaces)
	return found && (bytes.HasSuffix(name, []byte(`"thoughtSignature"`)) || bytes.HasSuffix(name, []byte(`"thought_signature"`)))
}
