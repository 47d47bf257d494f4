package usage

import "io"

const (
	// maxHeld bounds what is held back of one event until it is clear whether the client may see it. Events that carry
	// only counts are a small part of it.
	maxHeld = 16 << 10
	// minRoom is how much room for new bytes a caller's buffer must have to be worked in; readAhead is that of our own
	// where it has not.
	minRoom   = 512
	readAhead = 4 << 10
)

// Hider reads a stream without the events that carry counts and nothing else. Any other byte passes unchanged, and is
// held back only while its event may still turn out to be one of those.
type Hider struct {
	scanner *Scanner
	from    io.Reader

	held []byte // the undecided beginning of the current event
	open bool   // the current event was decided: it passes
	// trail: the last event ended in a CR, whose LF would share its fate; hid: it was hidden.
	trail, hid bool
	ready      []byte // decided bytes that no caller has taken yet
	err        error
}

// NewHider makes one of a stream whose usage the scanner counts.
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

// sift moves what may pass to the front of b, of which the first `from` bytes were held and seen before, and holds
// the undecided rest.
func (h *Hider) sift(b []byte, from int) []byte {
	kept := 0  // b[:kept] passes
	begin := 0 // of the current event, or of what has come of it since it was decided
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

// hidden reports whether the current event, as far as it was read, is one that the client must not see.
func (h *Hider) hidden() bool { return !h.open && h.scanner.doc.counted() && h.scanner.doc.hollow }
