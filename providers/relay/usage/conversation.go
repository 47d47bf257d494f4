package usage

import (
	"bytes"
	"slices"

	"modelrelay/providers"
)

// Conversation counts the usage of a realtime conversation's events, each at its end.
type Conversation struct {
	scanner *Scanner
	turn    turn
}

// NewConversation returns the counter of one conversation.
func NewConversation(shape *Shape) *Conversation {
	return &Conversation{scanner: NewScanner(shape, false), turn: newTurn(shape.turn)}
}

// Observe reads the next piece of an event of the upstream; last ends the event. false: the event has no usage or continues.
func (c *Conversation) Observe(piece []byte, last bool) (providers.Usage, bool) {
	c.scanner.Observe(piece)
	c.turn.observe(piece, last)
	if !last {
		return providers.Usage{}, false
	}
	c.scanner.End()
	usage, counted := c.scanner.usage, c.scanner.counted || c.scanner.usage.Audio > 0
	if counted {
		c.turn.counted()
	}
	c.scanner.usage, c.scanner.counted, c.scanner.all = providers.Usage{}, false, tally{}
	return usage, counted
}

// Unfinished returns the approximate number of output tokens of the current turn; 0 if there is no turn.
func (c *Conversation) Unfinished() int64 { return c.turn.tokens() }

// markWithin is how many bytes of an event's beginning are searched for marks. They include its id.
const markWithin = 256

// turn follows the current turn of a conversation until its usage event.
type turn struct {
	shape providers.TurnShape
	end   []byte
	marks [][][]byte // of each part
	bytes []int64    // of each part's events

	within bool // an event
	part   int  // its index in the shape, -1 for none
	ends   bool // the event is the turn's end
}

func newTurn(shape providers.TurnShape) turn {
	t := turn{shape: shape, end: []byte(shape.End), bytes: make([]int64, len(shape.Parts))}
	for _, part := range shape.Parts {
		var marks [][]byte
		for _, mark := range part.Marks {
			marks = append(marks, []byte(mark))
		}
		t.marks = append(t.marks, marks)
	}
	return t
}

// observe reads the next piece of an event.
func (t *turn) observe(piece []byte, last bool) {
	if !t.within {
		head := piece[:min(len(piece), markWithin)]
		marked := func(mark []byte) bool { return bytes.Contains(head, mark) }
		t.ends = len(t.end) > 0 && marked(t.end)
		t.part = slices.IndexFunc(t.marks, func(marks [][]byte) bool { return slices.ContainsFunc(marks, marked) })
	}
	t.within = !last
	if t.part >= 0 {
		t.bytes[t.part] += int64(len(piece))
	}
}

// counted records that the event contained its usage.
func (t *turn) counted() {
	if t.ends {
		clear(t.bytes)
	}
}

// tokens returns the approximate number of the turn's output tokens so far.
func (t *turn) tokens() int64 {
	var sum int64
	for i, part := range t.shape.Parts {
		sum += (t.bytes[i] + part.TokenBytes - 1) / max(1, part.TokenBytes)
	}
	return sum
}
