package form_test

import (
	"bytes"
	"strings"
	"testing"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// TestSequencerLetsGo: what was handed on is no longer counted as held, and what calls want back counts as what they are called with
// does. Upstreams of the chat dialect number the calls of one answer without a bound.
func TestSequencerLetsGo(t *testing.T) {
	t.Parallel()
	const mebibyte = 1 << 20
	long := rawjson.Quote(strings.Repeat("x", 3*mebibyte))
	open, closes := rawjson.Quote("{"), rawjson.Quote("}")
	state := form.State{Kind: form.StateGemini, Data: bytes.Repeat([]byte("s"), 3*mebibyte)}
	for name, test := range map[string]struct {
		calls  int // held at a time
		rounds int
		state  bool
		failed bool
	}{
		"inputs, again and again": {calls: 2, rounds: 10},
		"state, again and again":  {calls: 2, rounds: 10, state: true},
		"state that is too much":  {calls: 6, rounds: 1, state: true, failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failed := false
			s := form.NewSequencer(func(e *form.Event) { failed = failed || e.Kind == form.EventFailed })
			block := 0
			for range test.rounds {
				first := block
				s.Put(&form.Event{Kind: form.EventCallBegin, Block: first})
				s.Put(&form.Event{Kind: form.EventCallArgs, Block: first, Text: open})
				for range test.calls {
					block++
					if test.state {
						s.Put(&form.Event{Kind: form.EventState, Block: block, State: state})
					}
					s.Put(&form.Event{Kind: form.EventCallBegin, Block: block})
					if !test.state {
						s.Put(&form.Event{Kind: form.EventCallArgs, Block: block, Text: long})
					}
					s.Put(&form.Event{Kind: form.EventCallEnd, Block: block})
				}
				s.Put(&form.Event{Kind: form.EventCallArgs, Block: first, Text: closes})
				s.Put(&form.Event{Kind: form.EventCallEnd, Block: first})
				block++
			}
			if failed != test.failed {
				t.Errorf("failed %v, want %v", failed, test.failed)
			}
		})
	}
}
