package form

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
)

// The most that a Sequencer holds, in bytes: of one call, and of all together.
const (
	MaxCall = 4 << 20
	maxHeld = 16 << 20
)

// Sequencer orders an answer's events so that one block of a choice is open at a time. Upstreams of the chat dialect may interleave the
// inputs of several calls. The first call stays open until its input is one whole JSON value. The Sequencer holds the events of other
// blocks meanwhile, at most 4 MiB for a block and 16 MiB in all. More than that fails the answer. Between EventCallBegin and EventCallEnd
// of a call there are only its EventCallArgs, EventPing and EventCounts, and each call ends before EventStop. A Sequencer is for one answer
// and one goroutine.
type Sequencer struct {
	next    func(*Event)
	choices []*choiceState
	held    int // bytes
	failed  bool
	scratch []byte
}

// choiceState is the state of one choice.
type choiceState struct {
	choice int
	// open: the call of a block has begun and not ended. input scans its arguments.
	open  bool
	block int
	input inputScanner
	queue []heldEvent // the held events in order
	// begins has the positions of the calls in the queue by their blocks, counted from the first event that was ever in it. passed
	// counts the events that were removed.
	begins map[int]int
	passed int
}

// heldEvent is a copy of an event that waits.
type heldEvent struct {
	event Event
	text  []byte // of the events of one block, joined, without the last quote
	ended bool   // of a call: its end is held, too
}

// NewSequencer returns a Sequencer that passes events to next, which must not keep them.
func NewSequencer(next func(*Event)) *Sequencer { return &Sequencer{next: next} }

// Put accepts the next event of the answer.
func (s *Sequencer) Put(event *Event) {
	if s.failed {
		return
	}
	switch event.Kind {
	case EventStart, EventPing, EventCounts:
		s.next(event)
	case EventFailed:
		s.failed = true
		s.next(event)
	case EventStop:
		l := s.choice(event.Choice)
		s.drain(l, true)
		s.endCall(l)
		if !s.failed {
			s.next(event)
		}
	default:
		l := s.choice(event.Choice)
		s.put(l, event)
		s.drain(l, false)
	}
}

func (s *Sequencer) choice(choice int) *choiceState {
	for _, l := range s.choices {
		if l.choice == choice {
			return l
		}
	}
	l := &choiceState{choice: choice}
	s.choices = append(s.choices, l)
	return l
}

// put passes an event to next, or holds it.
func (s *Sequencer) put(l *choiceState, event *Event) {
	ofCall := event.Kind == EventCallArgs || event.Kind == EventCallEnd
	switch {
	case l.open && ofCall && event.Block == l.block:
		s.resume(l, event)
	case len(l.queue) > 0 || l.open && !l.input.whole:
		s.hold(l, event)
	default:
		s.endCall(l)
		s.pass(l, event)
	}
}

// pass passes an event to next while no call is open. It omits events after the end of their call.
func (s *Sequencer) pass(l *choiceState, event *Event) {
	switch event.Kind {
	case EventCallArgs, EventCallEnd:
	case EventCallBegin:
		l.open, l.block, l.input = true, event.Block, inputScanner{}
		s.next(event)
	default:
		s.next(event)
	}
}

// resume passes an event of the open call to next.
func (s *Sequencer) resume(l *choiceState, event *Event) {
	if event.Kind == EventCallEnd {
		s.endCall(l)
		return
	}
	s.scratch, _ = jsontext.AppendUnquote(s.scratch[:0], []byte(event.Text)) // a lone surrogate is in a string of the input
	l.input.scan(s.scratch)
	s.next(event)
}

// endCall ends the open call, if any.
func (s *Sequencer) endCall(l *choiceState) {
	if !l.open || s.failed {
		return
	}
	l.open = false
	s.next(&Event{Kind: EventCallEnd, Choice: l.choice, Block: l.block})
}

// hold keeps an event until the blocks before it have ended.
func (s *Sequencer) hold(l *choiceState, event *Event) {
	at := -1
	if place, is := l.begins[event.Block]; is {
		at = place - l.passed
	}
	switch event.Kind {
	case EventCallArgs:
		if at >= 0 && !l.queue[at].ended {
			s.keep(&l.queue[at], event.Text)
		}
		return
	case EventCallEnd:
		if at >= 0 {
			l.queue[at].ended = true
		}
		return
	}
	if last := len(l.queue) - 1; event.Text != nil && last >= 0 &&
		l.queue[last].event.Kind == event.Kind && l.queue[last].event.Block == event.Block {
		s.keep(&l.queue[last], event.Text)
		return
	}
	held := heldEvent{event: *event}
	held.event.Text, held.event.State.Text = nil, slices.Clone(event.State.Text)
	held.event.State.Data = slices.Clone(event.State.Data)
	s.count(len(event.State.Data)+len(event.State.Text), 0)
	if event.Text != nil {
		s.keep(&held, event.Text)
	}
	if event.Kind == EventCallBegin && at < 0 {
		if l.begins == nil {
			l.begins = make(map[int]int)
		}
		l.begins[event.Block] = l.passed + len(l.queue)
	}
	l.queue = append(l.queue, held)
}

// drain passes held events to next as far as the order permits; end: the answer ends, and drain passes all.
func (s *Sequencer) drain(l *choiceState, end bool) {
	for len(l.queue) > 0 && !s.failed && (!l.open || end || l.input.whole) {
		s.endCall(l)
		held := l.queue[0]
		l.queue[0] = heldEvent{}
		l.queue = l.queue[1:]
		if held.event.Kind == EventCallBegin && l.begins[held.event.Block] == l.passed {
			delete(l.begins, held.event.Block)
		}
		l.passed++
		s.held -= len(held.event.State.Data) + len(held.event.State.Text)
		text := s.release(&held)
		if held.event.Kind != EventCallBegin {
			held.event.Text = text
			s.pass(l, &held.event)
			continue
		}
		s.pass(l, &held.event)
		if !text.Empty() {
			s.resume(l, &Event{Kind: EventCallArgs, Choice: l.choice, Block: held.event.Block, Text: text})
		}
		if held.ended {
			s.endCall(l)
		}
	}
	if len(l.queue) == 0 {
		l.queue = nil
	}
}

// keep appends text to the held event of a block.
func (s *Sequencer) keep(held *heldEvent, text rawjson.Text) {
	if held.text == nil {
		held.text = append(held.text, '"')
	}
	held.text = append(held.text, text.Inner()...)
	s.count(len(text.Inner()), len(held.text))
}

func (s *Sequencer) release(held *heldEvent) rawjson.Text {
	if held.text == nil {
		return nil
	}
	s.held -= len(held.text) - 1
	text := append(held.text, '"')
	held.text = nil
	return text
}

// count adds to the number of held bytes, and fails the answer if there are too many.
func (s *Sequencer) count(more, block int) {
	s.held += more
	if !s.failed && (s.held > maxHeld || block > MaxCall) {
		s.failed = true
		s.next(&Event{Kind: EventFailed, Fault: CallsTooLong()})
	}
}

// CallsTooLong returns the fault of an answer whose held calls are too large.
func CallsTooLong() *providers.Fault {
	return providers.Faultf(providers.Upstream, "The upstream's answer has tool calls that are too long to translate.")
}

// inputScanner finds the end of a JSON object or array that arrives in pieces.
type inputScanner struct {
	depth           int
	inText, escaped bool
	whole           bool
}

func (i *inputScanner) scan(piece []byte) {
	for _, c := range piece {
		switch {
		case i.escaped:
			i.escaped = false
		case i.inText:
			i.escaped, i.inText = c == '\\', c != '"'
		case c == '"':
			i.inText = true
		case c == '{' || c == '[':
			i.depth++
		case c == '}' || c == ']':
			i.depth--
			i.whole = i.whole || i.depth == 0
		}
	}
}
