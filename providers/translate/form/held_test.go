package form_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"modelrelay/providers/translate/form"
)

// TestSequencerLetsGo: what was handed on is no longer counted as held, and what calls want back counts as what they are called with
// does. Upstreams of the chat dialect number the calls of one answer without a bound.
func TestSequencerLetsGo(t *testing.T) {
	t.Parallel()
	const mebibyte = 1 << 20
	long := form.Quote(strings.Repeat("x", 3*mebibyte))
	open, closes := form.Quote("{"), form.Quote("}")
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
			s := form.NewSequencer(false, func(*form.Event) {})
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
			if failed := s.Fault() != nil; failed != test.failed {
				t.Errorf("failed %v, want %v", failed, test.failed)
			}
		})
	}
}

// TestStreamReadsTogether: events that come one by one need 1 KiB of room, and those that come at once are read 4 KiB at a time.
func TestStreamReadsTogether(t *testing.T) {
	t.Parallel()
	const event = "data: 0123456789012345678901234567890123456789\n\n"
	for name, test := range map[string]struct{ pieces, events, reads int }{"one by one": {100, 1, 101}, "at once": {1, 1000, 2 + 1000*len(event)/(4<<10) + 1}} {
		from, reads, most := strings.NewReader(strings.Repeat(event, test.pieces*test.events)), 0, 0
		stream := form.NewStream(readFunc(func(p []byte) (int, error) {
			reads, most = reads+1, max(most, len(p))
			return from.Read(p[:min(len(p), test.events*len(event))])
		}))
		got := 0
		for {
			if _, err := stream.Next(); err != nil {
				break
			}
			got++
		}
		if got != test.pieces*test.events || reads > test.reads || test.events == 1 && most > 1<<10 {
			t.Errorf("%s: %d events in %d reads of at most %d bytes, want %d in %d", name, got, reads, most, test.pieces*test.events, test.reads)
		}
	}
}

// TestStreamRoom: a stream that waits asks for a few KiB, also behind a long event, whose memory is given back, and takes an event of
// 15 MiB, as a picture within one is.
func TestStreamRoom(t *testing.T) {
	t.Parallel()
	const room = 4 << 10
	long := strings.Repeat("x", 15<<20)
	var asked []int
	pieces := []string{"data: a\n\n", "data: " + long + "\n\n", "data: b\n\n", "data: c\n\n"}
	stream := form.NewStream(readFunc(func(p []byte) (int, error) {
		if len(pieces) == 0 {
			return 0, io.EOF
		}
		asked = append(asked, len(p))
		n := copy(p, pieces[0])
		if pieces[0] = pieces[0][n:]; pieces[0] == "" {
			pieces = pieces[1:]
		}
		return n, nil
	}))
	for _, want := range []int{1, len(long), 1, 1} {
		sent, err := stream.Next()
		if err != nil || len(sent.Data) != want {
			t.Fatalf("got %d bytes, %v, want %d", len(sent.Data), err, want)
		}
	}
	if _, err := stream.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
	if first, last := asked[0], asked[len(asked)-1]; first > room || last > room {
		t.Errorf("waits with %d bytes at first and %d in the end, want at most %d", first, last, room)
	}
}
