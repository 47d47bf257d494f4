package providers_test

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"modelrelay/providers"
)

func TestPayload(t *testing.T) {
	t.Parallel()
	edit := func(from, to int, text string) providers.Edit {
		return providers.Edit{At: providers.Span{From: from, To: to}, Text: []byte(text)}
	}
	for _, tc := range []struct {
		name, body, model, want string
		at                      providers.Span
		names                   []providers.Span
		edits                   []providers.Edit
		unset                   bool
		encode                  func(string) []byte
	}{
		{name: "untouched", body: `{"model":"m"}`, model: "m", at: providers.Span{From: 9, To: 12}, want: `{"model":"m"}`},
		{name: "mapped", body: `{"model":"m","n":1.0}`, model: `a"b`, at: providers.Span{From: 9, To: 12}, want: `{"model":"a\"b","n":1.0}`},
		{name: "no model in the body", body: `{}`, model: "x", want: `{}`},
		{name: "not named yet", body: `{"n":1}`, model: "m", at: providers.Span{From: 1, To: 1}, unset: true, encode: func(model string) []byte {
			return []byte(`"model":"` + model + `",`)
		}, want: `{"model":"m","n":1}`},
		{name: "another one named", body: `{"model":"x"}`, model: "m", at: providers.Span{From: 9, To: 12}, unset: true, want: `{"model":"m"}`},
		{
			name: "within longer strings", body: `{"a":"models/m","b":"models/m"}`, model: `x"y`,
			names: []providers.Span{{From: 13, To: 14}, {From: 28, To: 29}}, want: `{"a":"models/x\"y","b":"models/x\"y"}`,
		},
		{
			name: "within longer strings, untouched", body: `{"a":"models/m"}`, model: "m",
			names: []providers.Span{{From: 13, To: 14}}, want: `{"a":"models/m"}`,
		},
		{name: "text", body: `--b m --b`, model: "up", at: providers.Span{From: 4, To: 5}, encode: func(model string) []byte {
			return []byte(model)
		}, want: `--b up --b`},
		{
			name: "edits on both sides", body: `{"a":1,"model":"m","b":2}`, model: "x", at: providers.Span{From: 15, To: 18},
			edits: []providers.Edit{edit(23, 24, "3"), edit(1, 1, `"z":0,`)}, want: `{"z":0,"a":1,"model":"x","b":3}`,
		},
	} {
		for how, filler := range map[string]string{"small": "", "large": strings.Repeat(" ", 100<<10)} {
			t.Run(tc.name+", "+how, func(t *testing.T) {
				t.Parallel()
				call := providers.Call{
					Model: "m", Content: providers.Content{
						Body: []byte(tc.body + filler), ModelAt: tc.at, Edits: tc.edits,
						ModelUnset: tc.unset, EncodeModel: tc.encode, NamesAt: tc.names,
					},
				}
				payload := call.Payload(tc.model)
				want := tc.want + filler
				if got := payload.Len(); got != int64(len(want)) {
					t.Errorf("got length %d, want %d", got, len(want))
				}
				for range 2 { // each attempt reads from the start
					if err := iotest.TestReader(payload.Reader(), []byte(want)); err != nil {
						t.Error(err)
					}
				}
				if got := string(call.Body); got != tc.body+filler {
					t.Errorf("the body itself changed to %.100q", got)
				}
			})
		}
	}
}

// TestPayloadLetsGo: what is closed gives nothing more.
func TestPayloadLetsGo(t *testing.T) {
	t.Parallel()
	body := (&providers.Call{Content: providers.Content{Body: make([]byte, 100<<10)}}).Payload("").Reader()
	if n, err := body.Read(make([]byte, 10)); n != 10 || err != nil {
		t.Fatalf("got %d bytes, %v", n, err)
	}
	body.Close()
	if n, err := body.Read(make([]byte, 10)); n != 0 || err != io.EOF {
		t.Errorf("got %d bytes, %v after Close", n, err)
	}
}
