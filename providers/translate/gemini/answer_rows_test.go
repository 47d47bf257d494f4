package gemini_test

import (
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
	"modelrelay/providers/translate/gemini"
)

// TestReadsErrorCodes: the status alone decides; without a status, as from a proxy before the API, the code
// decides. The pairs are those of https://google.aip.dev/193 and google.rpc.Code; BILLING_DISABLED is an ErrorReason of google.api.
func TestReadsErrorCodes(t *testing.T) {
	t.Parallel()
	type meaning struct {
		kind  providers.Kind
		blame providers.Blame
		key   providers.KeyFault
	}
	refused := meaning{providers.Upstream, providers.BlameKey, providers.KeyRefused}
	forbidden := meaning{providers.Upstream, providers.BlameKey, providers.KeyForbidden}
	limited := meaning{providers.RateLimited, providers.BlameKey, providers.KeyBusy}
	overloaded := meaning{providers.Overloaded, providers.BlameChannel, 0}
	invalid := meaning{providers.Invalid, providers.BlameNone, 0}
	failed := meaning{providers.Upstream, providers.BlameChannel, 0}
	for err, want := range map[string]meaning{
		`"status":"UNAUTHENTICATED"`: refused,
		`"code":401`:                 refused,
		`"status":"FAILED_PRECONDITION","message":"User location is not supported for the API use."`:                  refused,
		`"status":"FAILED_PRECONDITION","message":"The File abc is not in an ACTIVE state and usage is not allowed."`: invalid,
		`"status":"PERMISSION_DENIED"`: forbidden,
		`"code":403`:                   forbidden,
		`"code":403,"status":"PERMISSION_DENIED","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"BILLING_DISABLED"}]`: {
			providers.Upstream, providers.BlameKey, providers.KeyExhausted,
		},
		`"status":"RESOURCE_EXHAUSTED"`: limited,
		`"code":429`:                    limited,
		`"status":"UNAVAILABLE"`:        overloaded,
		`"code":503`:                    overloaded,
		`"status":"OUT_OF_RANGE"`:       invalid,
		`"code":413`:                    invalid,
		`"code":500`:                    failed,
		`"status":"INTERNAL"`:           failed,
		`"message":"x"`:                 failed,
	} {
		events := gemini.NewReader().Event(nil, []byte(`{"error":{`+err+`}}`), nil)
		got := events[0].Fault
		if (meaning{got.Kind, got.Blame, got.Key}) != want {
			t.Errorf("%s: got %s, blame %d, key %d, want %+v", err, got.Kind, got.Blame, got.Key, want)
		}
	}
}

// TestReadsRows are answers of which each piece matters; the parts are those of https://ai.google.dev/api/caching#Part, the signatures
// of https://ai.google.dev/gemini-api/docs/thought-signatures. Signed text is no thought (aaif-goose/goose #7204), and a signature without
// a text is not lost (anomalyco/opencode #43984).
func TestReadsRows(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		pieces []string
		want   []string
	}{
		"a prompt that is blocked behind the first piece": {
			[]string{`{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`, `{"promptFeedback":{"blockReason":"SAFETY"}}`},
			[]string{"start", `text 0/0 "a"`, "stop 0 5"},
		},
		"a signature in front of everything": {
			[]string{`{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"QQ=="},{"functionCall":{"id":"c","name":"f"}}]},"finishReason":"STOP"}]}`},
			[]string{"start", "state 0/0 g QQ==", "call 0/0 c f", "args 0/0 {}", "end 0/0", "stop 0 3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compare(t, streamed(test.pieces...), test.want)
		})
	}
}

// TestReadsItsOwnSignatures: Google's signature of a text, and one of nothing that follows, go out as they came in.
func TestReadsItsOwnSignatures(t *testing.T) {
	t.Parallel()
	own := form.State{Kind: form.StateGemini, Data: []byte("QQ==")}
	for name, test := range map[string]struct {
		events []form.Event
		want   string
	}{
		"of a text":  {[]form.Event{state(0, own), text(0, "a"), stop(form.StopEnd)}, `{"text":"a","thoughtSignature":"QQ=="}`},
		"of nothing": {[]form.Event{text(0, "a"), state(1, own), stop(form.StopEnd)}, `{"text":"","thoughtSignature":"QQ=="}`},
	} {
		for _, ask := range []form.Ask{{Model: "m"}, {Model: "m", Stream: true}} {
			if got := string(answerOf(ask, test.events...)); strings.Count(got, test.want) != 1 {
				t.Errorf("%s, streamed %t: got %s, want %s in it", name, ask.Stream, got, test.want)
			}
		}
	}
}

// TestGivesUp: a call is held until it is whole, and no longer than 4 MiB. A whole answer has at most 16 MiB.
func TestGivesUp(t *testing.T) {
	t.Parallel()
	w := gemini.NewWriter(form.Ask{Model: "m", Stream: true})
	w.Write(&form.Event{Kind: form.EventCallBegin, Call: form.Call{ID: "c", Name: "f"}})
	piece := rawjson.Quote(strings.Repeat("x", 1<<20))
	for range 3 {
		w.Write(&form.Event{Kind: form.EventCallArgs, Text: piece})
	}
	if w.Fault() != nil || w.Take() != nil {
		t.Fatalf("gave up early: %v", w.Fault())
	}
	w.Write(&form.Event{Kind: form.EventCallArgs, Text: piece})
	if w.Fault() == nil || w.Take() != nil {
		t.Errorf("got %v behind 4 MiB", w.Fault())
	}
	for stream, want := range map[bool]bool{true: false, false: true} {
		w := gemini.NewWriter(form.Ask{Model: "m", Stream: stream})
		for range 17 {
			w.Write(&form.Event{Kind: form.EventText, Text: piece})
			_ = w.Take()
		}
		if gaveUp := w.Fault() != nil; gaveUp != want {
			t.Errorf("streamed %t: gave up behind 16 MiB: %t", stream, gaveUp)
		}
	}
}
