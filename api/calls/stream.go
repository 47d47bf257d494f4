package calls

import (
	"bytes"
	"io"
	"net/http"

	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/providers/relay"
)

// copyStream carries an event stream and flushes each event at once. A stream that fails ends with the format's error
// event, in place of the one it broke off in; one whose client is gone just ends. The error of a stream that fails in
// its first event is what the client is answered.
func (c *Calls) copyStream(ch *Charge, r *http.Request, answer *relay.Answer, format Events) error {
	x := ch.request
	out := x.Paced()
	small := c.smallBuffer()
	defer c.eventBuffers.Put(small)
	buf, held := small[:], 0 // buf[:held] is the beginning of an event
	var events eventEnds
	for {
		n, err := answer.Body.Read(buf[held:])
		have := held + n
		pass := events.next(buf[:have], held)
		if err == io.EOF {
			pass = have
		}
		if pass > 0 || err == io.EOF {
			if format.Saw != nil {
				format.Saw(buf[:pass])
			}
			if failed := ch.sendEvents(out, answer, buf[:pass], format); failed != nil {
				return edge.ClientGone(failed)
			}
		}
		held = copy(buf, buf[pass:have])
		if have == eventBuffer && len(buf) == eventBuffer {
			large := c.buffer()
			defer c.buffers.Put(large) // once at most: buf is large from here on
			copy(large[:], buf[:held])
			buf = large[:]
		}
		switch {
		case err == nil:
		case err == io.EOF:
			return nil
		case edge.Left(r.Context()):
			ch.unsent = int64(held)
			return r.Context().Err()
		case x.Status() == 0:
			return err
		default:
			fault := providers.AsFault(err)
			parts := x.FaultEvents(fault)
			if format.Fault != nil {
				parts = [][]byte{format.Fault(x.Format.StreamWords(fault))}
			}
			for _, part := range parts {
				_, _ = out.Write(events.failure(part)) // a client that is gone needs no error
				_ = out.Flush()
			}
			return err
		}
	}
}

// sendEvents sends the next events of a stream. The error is that of a client that is gone.
func (ch *Charge) sendEvents(out *edge.Writer, answer *relay.Answer, events []byte, format Events) error {
	x := ch.request
	if x.Status() == 0 {
		x.Header().Set("X-Accel-Buffering", "no")
		x.WriteHeader(answer.Status)
	}
	ch.passes(answer)
	if format.Last != nil && format.Last(events) || format.LastCounts && answer.Settled() {
		ch.settle(answer, len(events), false)
	}
	if _, err := out.Write(events); err != nil {
		return err
	}
	return out.Flush()
}

// Events is what the format of a call says of its event streams.
type Events struct {
	// Last tells the bytes after which a client may send its next call without waiting for the end; nil: none.
	Last func(events []byte) bool
	// LastCounts: it is the last event that says what was used.
	LastCounts bool
	// Saw, where it is set, is told all events that pass.
	Saw func(events []byte)
	// Fault is the event that ends a stream that failed; nil: the format's own.
	Fault func(fault *providers.Fault) []byte
}

// eventEnds follows a stream of server-sent events on its way to a client that must not be left with a part of one:
// clients read what stands before a blank line as an event, and one that was cut off as broken JSON, whatever error
// follows. The zero value is ready.
type eventEnds struct {
	within bool // what passed ends within an event, one too large to be held
	last   byte // of what passed
	crlf   bool // the lines that passed end in CR and LF
}

// next returns how much of b passes now: up to the end of its last event, and the whole lines of comment behind it,
// which clients take for a sign of life. An event that alone fills a copyBuffer passes as it comes. b begins behind what
// passed before; its first held bytes are what next has left of it.
func (e *eventEnds) next(b []byte, held int) int {
	end := 0
	for i := len(b) - 1; i >= held && end == 0; i-- {
		if isLineEnd(b[i]) && e.blank(b, i) {
			end = i + 1
		}
	}
	if end > 0 {
		e.within = false
	}
	if !e.within {
		end += comments(b[end:])
	}
	if e.within || end == 0 && len(b) == copyBuffer {
		e.within = true
		end = len(b)
	}
	if end > 0 {
		e.last = b[end-1]
		e.crlf = e.last == '\n' && end > 1 && b[end-2] == '\r' || e.crlf && (e.last != '\n' || end == 1)
	}
	return end
}

// blank tells whether the line that ends at i is empty, which ends an event.
func (e *eventEnds) blank(b []byte, i int) bool {
	if i > 0 && b[i] == '\n' && b[i-1] == '\r' {
		i--
	}
	switch {
	case i > 0:
		return isLineEnd(b[i-1])
	case e.within:
		return e.last == '\n' || e.last == '\r' && b[i] == '\r'
	default:
		return true
	}
}

// failure is the event that ends a stream that failed, in the stream's own line ends.
func (e *eventEnds) failure(event []byte) []byte {
	if e.within {
		event = append([]byte("\n\n"), event...)
	}
	if e.crlf { // a client that saw one end of lines need not look for another
		event = bytes.ReplaceAll(event, []byte("\n"), []byte("\r\n"))
	}
	return event
}

// comments returns the length of the whole lines of comment that b begins with.
func comments(b []byte) int {
	n := 0
	for n < len(b) && b[n] == ':' {
		line := bytes.IndexAny(b[n:], "\r\n")
		if line < 0 {
			break
		}
		n += line + 1
		if n < len(b) && b[n-1] == '\r' && b[n] == '\n' {
			n++
		}
	}
	return n
}

func isLineEnd(c byte) bool { return c == '\n' || c == '\r' }
