package gemini_test

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/translate/form"
	"modelrelay/providers/translate/gemini"
)

func TestForeignState(t *testing.T) {
	t.Parallel()
	signed := form.State{Kind: form.StateAnthropic, Data: []byte("s"), Text: form.Quote("plan")}
	sealed := base64.StdEncoding.EncodeToString([]byte(signed.Envelope()))
	const stand = "skip_thought_signature_validator"
	for name, test := range map[string]struct{ body, want string }{
		"none":           {`{"contents":[{"parts":[{"text":"a","thoughtSignature":"QUJD"}]}]}`, ""},
		"calls":          {`{"parts":[{"thoughtSignature":"SEALED","functionCall":{"name":"f"}},{"thought_signature" : "SEALED"}]}`, `{"parts":[{"thoughtSignature":"STAND","functionCall":{"name":"f"}},{"thought_signature" : "STAND"}]}`},
		"other fields":   {`{"data":"SEALED"}`, ""},
		"within a text":  {`{"text":"{\"thoughtSignature\":\"SEALED\"}"}`, ""},
		"of our letters": {`{"thoughtSignature":"bXIxLnguIQ=="}`, ""},
		"cut off":        {`{"thoughtSignature":"bXIxL`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := strings.ReplaceAll(test.body, "SEALED", sealed)
			want := body
			if test.want != "" {
				want = strings.ReplaceAll(test.want, "STAND", stand)
			}
			call := providers.Call{Model: "m", Body: []byte(body), Edits: gemini.ForeignState([]byte(body))}
			if got := string(slices.Concat(call.Payload("m")...)); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}
