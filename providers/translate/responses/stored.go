package responses

import (
	"bytes"
	"crypto/rand"
	"encoding/base32"
	"strings"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// idBytes bytes are the 26 characters of a response's id.
const idBytes = 16

// newResponseID returns a new id of a response, in the form of task ids.
func newResponseID() string {
	var b [idBytes]byte
	_, _ = rand.Read(b[:]) // never fails
	return "resp_" + strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))
}

// SplitInput copies the input of a call: its first items, whose number is earlier, and the others. Both are items separated by commas. A
// text is one message.
func SplitInput(input rawjson.Value, earlier int) (before, own []byte) {
	if text := input.Text(); text != nil {
		var out form.Out
		out.JSON(`{"type":"message","role":"user","content":?}`, text)
		return nil, out.Bytes()
	}
	var parts [2]struct{ from, to int }
	for i, item := range input.Items() {
		part := &parts[0]
		if i >= earlier {
			part = &parts[1]
		}
		at := input.Offset(item)
		if part.to == 0 {
			part.from = at
		}
		part.to = at + len(item)
	}
	return bytes.Clone(input[parts[0].from:parts[0].to]), bytes.Clone(input[parts[1].from:parts[1].to])
}
