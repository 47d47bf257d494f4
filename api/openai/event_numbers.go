package openai

import (
	"bytes"
	"strconv"
)

// numberWindow is how many bytes the next scan repeats: the length of the member's name, whitespace and the digits of any int.
const numberWindow = 48

// eventNumbers finds the last event number in a response's stream. The zero value has found none.
type eventNumbers struct {
	tail [numberWindow]byte // the last bytes of the stream
	kept int                // the length of tail
	seen bool
	last int
}

func (e *eventNumbers) scan(p []byte) {
	var seam [2 * numberWindow]byte
	n := copy(seam[:], e.tail[:e.kept])
	n += copy(seam[n:], p[:min(len(p), numberWindow)])
	e.find(seam[:n])
	if len(p) > numberWindow {
		e.find(p)
	}
	if len(p) >= numberWindow {
		e.kept = copy(e.tail[:], p[len(p)-numberWindow:])
		return
	}
	e.kept = copy(e.tail[:], seam[max(0, n-numberWindow):n])
}

// find finds the last number. It does not match within a JSON string, because quotes are escaped there.
func (e *eventNumbers) find(p []byte) {
	name := []byte(`"sequence_number"`)
	at := bytes.LastIndex(p, name)
	if at < 0 {
		return
	}
	rest := bytes.TrimLeft(p[at+len(name):], ": \t")
	digits := 0
	for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		digits++
	}
	if number, err := strconv.Atoi(string(rest[:digits])); err == nil {
		e.seen, e.last = true, number
	}
}

func (e *eventNumbers) next() int {
	if !e.seen {
		return 0
	}
	return e.last + 1
}
