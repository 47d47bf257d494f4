package form

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
)

// What a Sequencer holds at most, in bytes: of one call, and in all.
const (
	MaxCall = 4 << 20
	maxHeld = 16 << 20
)

// Sequencer puts an answer's events in an order in which one block of a choice is open at a time. Upstreams of the chat
// dialect may give the inputs of several calls in turns: the first call stays open until its input is one whole JSON value,
// and what comes of other blocks meanwhile is held, at most 4 MiB a block and 16 MiB in all; beyond that the answer has
// failed. Between EventCallBegin and EventCallEnd of a call come only its EventCallArgs, EventPing and EventCounts, and each
// call that begins ends before EventStop. A Sequencer is of one answer, and one goroutine.
type Sequencer struct {
	next    func(*Event)
	lanes   []*lane
	held    int // bytes
	failed  bool
	scratch []byte
}

// lane is the state of one choice.
type lane struct {
	choice int
	// open: the call of a block has begun and not ended, and input scans what it is called with.
	open  bool
	block int
	input inputScanner
	queue []heldEvent // what follows, in order
	// begins are the places of the calls in the queue by their blocks, counted from the first event that was ever in it. passed are
	// those that are not in it any more.
	begins map[int]int
	passed int
}

// heldEvent is an event that waits, with bytes of its own.
type heldEvent struct {
	event Event
	text  []byte // of the events of one block, joined, without its last quote
	ended bool   // of a call: its end is held as well
}

// NewSequencer returns a Sequencer that hands events to next, which must not keep them.
func NewSequencer(next func(*Event)) *Sequencer { return &Sequencer{next: next} }

// Put takes the next event of the answer.
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
		l := s.lane(event.Choice)
		s.drain(l, true)
		s.endCall(l)
		if !s.failed {
			s.next(event)
		}
	default:
		l := s.lane(event.Choice)
		s.put(l, event)
		s.drain(l, false)
	}
}

func (s *Sequencer) lane(choice int) *lane {
	for _, l := range s.lanes {
		if l.choice == choice {
			return l
		}
	}
	l := &lane{choice: choice}
	s.lanes = append(s.lanes, l)
	return l
}

// put hands an event on, or holds it.
func (s *Sequencer) put(l *lane, event *Event) {
	ofCall := event.Kind == EventCallArgs || event.Kind == EventCallEnd
	switch {
	case l.open && ofCall && event.Block == l.block:
		s.goOn(l, event)
	case len(l.queue) > 0 || l.open && !l.input.whole:
		s.hold(l, event)
	default:
		s.endCall(l)
		s.pass(l, event)
	}
}

// pass hands on an event while no call is open. What comes behind the end of its call is left out.
func (s *Sequencer) pass(l *lane, event *Event) {
	switch event.Kind {
	case EventCallArgs, EventCallEnd:
	case EventCallBegin:
		l.open, l.block, l.input = true, event.Block, inputScanner{}
		s.next(event)
	default:
		s.next(event)
	}
}

// goOn takes an event of the call that is open.
func (s *Sequencer) goOn(l *lane, event *Event) {
	if event.Kind == EventCallEnd {
		s.endCall(l)
		return
	}
	s.scratch, _ = jsontext.AppendUnquote(s.scratch[:0], []byte(event.Text)) // a lone surrogate is in a string of the input
	l.input.scan(s.scratch)
	s.next(event)
}

// endCall ends the call that is open, if any.
func (s *Sequencer) endCall(l *lane) {
	if !l.open || s.failed {
		return
	}
	l.open = false
	s.next(&Event{Kind: EventCallEnd, Choice: l.choice, Block: l.block})
}

// hold keeps an event until what stands before it has ended.
func (s *Sequencer) hold(l *lane, event *Event) {
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

// drain hands on what is held as far as it may follow: all of it where the answer ends.
func (s *Sequencer) drain(l *lane, end bool) {
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
			s.goOn(l, &Event{Kind: EventCallArgs, Choice: l.choice, Block: held.event.Block, Text: text})
		}
		if held.ended {
			s.endCall(l)
		}
	}
	if len(l.queue) == 0 {
		l.queue = nil
	}
}

// keep appends text to what is held of a block.
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

// count adds to what is held, and fails the answer where that is too much.
func (s *Sequencer) count(more, block int) {
	s.held += more
	if !s.failed && (s.held > maxHeld || block > MaxCall) {
		s.failed = true
		s.next(&Event{Kind: EventFailed, Fault: CallsTooLong()})
	}
}

// CallsTooLong is the fault of an answer whose calls would have to be held too long.
func CallsTooLong() *providers.Fault {
	return providers.Faultf(providers.Upstream, "The upstream's answer has tool calls that are too long to translate.")
}

// inputScanner finds the end of a JSON object or array that comes in pieces.
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
