package usage

import "io"

const (
	// maxHeld bounds the bytes of one event that are held until it is decided whether the client receives it. Events of usage are smaller.
	maxHeld = 16 << 10
	// minRoom is the least free space of a caller's buffer that is used directly, readAhead the size of the own buffer, in bytes.
	minRoom   = 512
	readAhead = 4 << 10
)

// Hider reads a stream without the events that contain only usage. Others pass unchanged, held only until their event is decided.
type Hider struct {
	scanner *Scanner
	from    io.Reader

	held []byte // the undecided beginning of the current event
	open bool   // the current event was decided: it passes
	// trail: the last event ended in a CR; an LF after it belongs to the event. hid: the event was hidden.
	trail, hid bool
	ready      []byte // decided bytes that Read has not returned yet
	err        error
}

// NewHider returns the Hider of a stream whose usage the scanner counts.
func NewHider(scanner *Scanner, from io.Reader) *Hider { return &Hider{scanner: scanner, from: from} }

// Read implements io.Reader.
func (h *Hider) Read(p []byte) (int, error) {
	for {
		if len(h.ready) > 0 {
			n := copy(p, h.ready)
			h.ready = h.ready[n:]
			return n, nil
		}
		if h.err != nil || len(p) == 0 {
			return 0, h.err
		}
		work, own := p, len(p) < len(h.held)+minRoom
		if own {
			work = make([]byte, len(h.held)+readAhead)
		}
		from := copy(work, h.held)
		n, err := h.from.Read(work[from:])
		h.err = err
		out := h.sift(work[:from+n], from)
		if own {
			h.ready = out
			continue
		}
		if len(out) > 0 {
			return len(out), nil
		}
	}
}

// sift moves the bytes that pass to the front of b and holds the undecided rest. The first from bytes of b were held and scanned before.
func (h *Hider) sift(b []byte, from int) []byte {
	kept := 0  // b[:kept] passes
	begin := 0 // of the current event, or of its bytes since it was decided
	if h.trail && len(b) > 0 {
		h.trail = false
		if b[0] == '\n' {
			begin = 1
			if !h.hid {
				kept = 1
			}
		}
	}
	for at := from; at < len(b); {
		n, ended := h.scanner.advance(b[at:])
		at += n
		if ended {
			h.trail, h.hid = h.scanner.lines.AfterCR() && at == len(b), h.hidden()
			if !h.hid {
				kept += copy(b[kept:], b[begin:at])
			}
			h.scanner.End()
			h.open = false
			begin = at
		}
	}
	h.held = h.held[:0]
	rest := b[begin:]
	switch {
	case h.err != nil && h.hidden():
		h.scanner.End()
	case h.err != nil || h.open || h.scanner.doc.content || len(rest) > maxHeld:
		h.open = h.open || len(rest) > 0
		kept += copy(b[kept:], rest)
		if h.err != nil {
			h.scanner.End()
		}
	default:
		h.held = append(h.held, rest...)
	}
	return b[:kept]
}

// hidden reports whether the client must not receive the current event, as far as it was read.
func (h *Hider) hidden() bool { return !h.open && h.scanner.doc.counted() && h.scanner.doc.hollow }
