package providers_test

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"testing"

	"modelrelay/providers"
)

// FuzzPayload: every byte of a body outside the edits goes upstream, in its order, whatever the body is.
func FuzzPayload(f *testing.F) {
	f.Add([]byte(`{"model":"m","n":1.0}`), "m", "up", uint16(9), uint16(12), uint16(1), uint16(1), []byte(`"z":0,`))
	f.Add([]byte(`{"model":"m"}`), "m", "m", uint16(9), uint16(12), uint16(0), uint16(0), []byte(nil))
	f.Add([]byte("\xff\x00\xfe{"), "a\"b", "\xff", uint16(0), uint16(1), uint16(4), uint16(4), []byte("}"))
	f.Fuzz(func(t *testing.T, body []byte, model, upstream string, a, b, c, d uint16, text []byte) {
		at := []int{int(a), int(b), int(c), int(d)}
		for i := range at {
			at[i] %= len(body) + 1
		}
		slices.Sort(at)
		// Two spans that do not overlap; the second may be the model's, the edits come in any order.
		first, second := providers.Span{From: at[0], To: at[1]}, providers.Span{From: at[2], To: at[3]}
		if first.To == second.From && (first.From == first.To || second.From == second.To) {
			return // the order of two insertions at one place is not defined
		}
		original := bytes.Clone(body)
		call := providers.Call{Model: model, Content: providers.Content{
			Body: body, ModelAt: second,
			Edits: []providers.Edit{{At: first, Text: text}},
		}}
		payload := call.Payload(upstream)

		name := body[second.From:second.To]
		if model != upstream && second != (providers.Span{}) {
			var err error
			if name, err = json.Marshal(upstream); err != nil {
				t.Fatal(err)
			}
		}
		want := slices.Concat(body[:first.From], text, body[first.To:second.From], name, body[second.To:])
		got, err := io.ReadAll(payload.Reader())
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
		if payload.Len() != int64(len(want)) {
			t.Errorf("got length %d, want %d", payload.Len(), len(want))
		}
		if !bytes.Equal(body, original) {
			t.Error("the body itself changed")
		}
	})
}
