package relay

import (
	"bytes"
	"slices"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// markWithin is how far from the beginning of an event its marks are looked for, in bytes: past its own id.
const markWithin = 256

// turn follows the turn of a conversation whose counts have not come.
type turn struct {
	shape providers.TurnShape
	end   []byte
	marks [][][]byte // of each part
	bytes []int64    // of each part's events

	within bool // an event
	part   int  // its place in the shape, -1 where it is none
	ends   bool // the event is the turn's end
}

func newTurn(shape providers.TurnShape) *turn {
	t := &turn{shape: shape, end: []byte(shape.End), bytes: make([]int64, len(shape.Parts))}
	for _, part := range shape.Parts {
		var marks [][]byte
		for _, mark := range part.Marks {
			marks = append(marks, []byte(mark))
		}
		t.marks = append(t.marks, marks)
	}
	return t
}

// saw takes the next piece of an event.
func (t *turn) saw(piece upstream.Piece) {
	if !t.within {
		head := piece.Bytes[:min(len(piece.Bytes), markWithin)]
		marked := func(mark []byte) bool { return bytes.Contains(head, mark) }
		t.ends = len(t.end) > 0 && marked(t.end)
		t.part = slices.IndexFunc(t.marks, func(marks [][]byte) bool { return slices.ContainsFunc(marks, marked) })
	}
	t.within = !piece.Last
	if t.part >= 0 {
		t.bytes[t.part] += int64(len(piece.Bytes))
	}
}

// counted tells that the event has said what it used.
func (t *turn) counted() {
	if t.ends {
		clear(t.bytes)
	}
}

// tokens is about how many of output the turn has made so far.
func (t *turn) tokens() int64 {
	var sum int64
	for i, part := range t.shape.Parts {
		sum += (t.bytes[i] + part.TokenBytes - 1) / max(1, part.TokenBytes)
	}
	return sum
}
