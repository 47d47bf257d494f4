package form_test

import (
	"fmt"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// say writes an event as the tests below write it: "b1" begins call 1, "a1:TEXT" is a piece of its input, "e1" its end,
// "t2:TEXT" text of block 2, "s:DATA" state, "stop", "ping", "failed".
func say(e *form.Event) string {
	switch e.Kind {
	case form.EventCallBegin:
		return fmt.Sprintf("b%d", e.Block)
	case form.EventCallArgs:
		return fmt.Sprintf("a%d:%s", e.Block, e.Text.String())
	case form.EventCallEnd:
		return fmt.Sprintf("e%d", e.Block)
	case form.EventText:
		return fmt.Sprintf("t%d:%s", e.Block, e.Text.String())
	case form.EventState:
		return "s:" + string(e.State.Data)
	case form.EventStop:
		return "stop"
	case form.EventPing:
		return "ping"
	case form.EventFailed:
		return "failed"
	default:
		return "?"
	}
}

func heard(t *testing.T, word string) *form.Event {
	t.Helper()
	event := new(form.Event)
	head, text, _ := strings.Cut(word, ":")
	switch head {
	case "stop":
		event.Kind = form.EventStop
		return event
	case "ping":
		event.Kind = form.EventPing
		return event
	case "failed":
		event.Kind, event.Fault = form.EventFailed, new(providers.Fault)
		return event
	case "s":
		event.Kind, event.State = form.EventState, form.State{Kind: form.StateGemini, Data: []byte(text)}
		return event
	}
	kinds := map[byte]form.EventKind{'b': form.EventCallBegin, 'a': form.EventCallArgs, 'e': form.EventCallEnd, 't': form.EventText}
	kind, ok := kinds[head[0]]
	if !ok {
		t.Fatalf("no event %q", word)
	}
	event.Kind = kind
	if _, err := fmt.Sscan(head[1:], &event.Block); err != nil {
		t.Fatalf("event %q: %v", word, err)
	}
	if text != "" {
		event.Text = rawjson.Quote(text)
	}
	return event
}

func sequence(t *testing.T, words string) string {
	t.Helper()
	var got []string
	s := form.NewSequencer(func(e *form.Event) { got = append(got, say(e)) })
	for word := range strings.FieldsSeq(words) {
		event := heard(t, word)
		s.Put(event)
		// What an event points to changes when the next is read.
		clear(event.Text)
		clear(event.State.Data)
	}
	return strings.Join(got, " ")
}

func TestSequencer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		in, want string
	}{
		"in order already": {in: "t0:a b1 a1:{ a1:} e1 b2 a2:{} e2 stop", want: "t0:a b1 a1:{ a1:} e1 b2 a2:{} e2 stop"},
		// QuantumNous/new-api #6394, BerriAI/litellm #15315: inputs of parallel calls in turns.
		"in turns": {
			in:   `b0 b1 a0:{"x": a1:{"y": a0:"}"} a1:2} e0 e1 stop`,
			want: `b0 a0:{"x": a0:"}"} e0 b1 a1:{"y": a1:2} e1 stop`,
		},
		"the second goes on once the first is whole": {
			in:   `b0 b1 a0:{ a1:{ a0:} a1:"x" a1:} stop`,
			want: `b0 a0:{ a0:} e0 b1 a1:{ a1:"x" a1:} e1 stop`,
		},
		"three, the last of them first": {in: `b0 b1 b2 a2:{} e2 a1:{} e1 a0:{} e0 stop`, want: `b0 a0:{} e0 b1 a1:{} e1 b2 a2:{} e2 stop`},
		"braces within strings": {
			in:   `b0 a0:{"x":"}\" a0:}" b1 a1:{} a0:} stop`,
			want: `b0 a0:{"x":"}\" a0:}" a0:} e0 b1 a1:{} e1 stop`,
		},
		"text while a call is open":        {in: `b0 a0:{ t1:a t1:b a0:} t1:c stop`, want: `b0 a0:{ a0:} e0 t1:ab t1:c stop`},
		"state belongs to what follows it": {in: `s:x b0 s:y b1 a0:{} a1:{} stop`, want: `s:x b0 a0:{} e0 s:y b1 a1:{} e1 stop`},
		"calls without input":              {in: `b0 b1 b2 stop`, want: `b0 e0 b1 e1 b2 e2 stop`},
		"a call that is cut off":           {in: `b0 a0:{ b1 a1:{ stop`, want: `b0 a0:{ e0 b1 a1:{ e1 stop`},
		"what follows the end of a call":   {in: `b0 a0:{} e0 a0:{} e0 t1:x stop`, want: `b0 a0:{} e0 t1:x stop`},
		"signs of life pass":               {in: `b0 a0:{ b1 ping a0:} stop`, want: `b0 a0:{ ping a0:} e0 b1 e1 stop`},
		"nothing follows a failure":        {in: `b0 a0:{ failed a0:} stop`, want: `b0 a0:{ failed`},
		"a call without input":             {in: `b0 e0 t1:x stop`, want: `b0 e0 t1:x stop`},
		"text around a call":               {in: `t0:a b1 a1:{} t2:b stop`, want: `t0:a b1 a1:{} e1 t2:b stop`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := sequence(t, test.in); got != test.want {
				t.Errorf("%s\ngave %s\nwant %s", test.in, got, test.want)
			}
		})
	}
}

func TestSequencerChoices(t *testing.T) {
	t.Parallel()
	var got []string
	s := form.NewSequencer(func(e *form.Event) { got = append(got, fmt.Sprint(e.Choice, say(e))) })
	for _, e := range []form.Event{
		{Kind: form.EventCallBegin, Choice: 0},
		{Kind: form.EventText, Choice: 1, Text: rawjson.Text(`"x"`)},
		{Kind: form.EventStop, Choice: 1},
		{Kind: form.EventStop, Choice: 0},
	} {
		s.Put(&e)
	}
	if got, want := strings.Join(got, " "), "0b0 1t0:x 1stop 0e0 0stop"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSequencerLimits(t *testing.T) {
	t.Parallel()
	const mebibyte = 1 << 20
	piece := rawjson.Quote(strings.Repeat("x", mebibyte))
	for name, test := range map[string]struct {
		calls, pieces int // held, and of each
		failed        bool
	}{
		"a call below its limit":  {1, 3, false},
		"a call above its limit":  {1, 4, true},
		"calls below their limit": {5, 3, false},
		"calls above their limit": {6, 3, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var last form.EventKind
			var faults int
			s := form.NewSequencer(func(e *form.Event) {
				if last = e.Kind; e.Fault != nil {
					faults++
				}
			})
			s.Put(&form.Event{Kind: form.EventCallBegin})
			for call := 1; call <= test.calls; call++ {
				s.Put(&form.Event{Kind: form.EventCallBegin, Block: call})
				for range test.pieces {
					s.Put(&form.Event{Kind: form.EventCallArgs, Block: call, Text: piece})
				}
			}
			s.Put(&form.Event{Kind: form.EventStop})
			if failed := last == form.EventFailed; failed != test.failed || faults > 1 || failed != (faults == 1) {
				t.Errorf("failed %v with %d faults, want %v", failed, faults, test.failed)
			}
		})
	}
}

func TestSequencerAllocatesNothing(t *testing.T) {
	s := form.NewSequencer(func(*form.Event) {})
	text := &form.Event{Kind: form.EventText, Text: rawjson.Text(`"some text"`)}
	args := &form.Event{Kind: form.EventCallArgs, Block: 1, Text: rawjson.Text(`"\"x\""`)}
	s.Put(text)
	if n := testing.AllocsPerRun(100, func() { s.Put(text) }); n > 0 {
		t.Errorf("%v allocations for a piece of text", n)
	}
	s.Put(&form.Event{Kind: form.EventCallBegin, Block: 1})
	s.Put(args)
	if n := testing.AllocsPerRun(100, func() { s.Put(args) }); n > 0 {
		t.Errorf("%v allocations for a piece of input", n)
	}
}
