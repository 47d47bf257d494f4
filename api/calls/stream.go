package calls

import (
	"errors"
	"io"
	"net/http"

	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/providers/relay"
	"modelrelay/providers/sse"
)

// copyStream copies an event stream and flushes each event at once. A stream that fails ends with the format's error event, which replaces
// the incomplete one. If the stream fails before its first event is complete, copyStream returns the error for the client.
func (c *Calls) copyStream(ch *Charge, r *http.Request, answer *relay.Answer, format Events) error {
	x := ch.request
	out := x.Paced()
	small := pooled[[eventBuffer]byte](&c.eventBuffers)
	defer c.eventBuffers.Put(small)
	buf, held := small[:], 0 // buf[:held] is the beginning of an event
	most := copyBuffer
	if ch.run != nil { // the events of a background call are stored one by one
		most = sse.MaxEvent + 1
	}
	var events sse.Passer
	for {
		n, err := answer.Body.Read(buf[held:])
		have, ended := held+n, errors.Is(err, io.EOF)
		pass := events.Next(buf[:have], held, most)
		switch {
		case ended:
			pass = have
		case pass == 0 && have == sse.MaxEvent:
			err = &providers.Fault{Kind: providers.Upstream, Message: "The upstream sent an event that is too large.", Err: sse.ErrTooLong}
		}
		if pass > 0 || ended {
			if format.Saw != nil {
				format.Saw(buf[:pass])
			}
			if failed := ch.sendEvents(out, answer, buf[:pass], format); failed != nil {
				return edge.ClientGone(failed)
			}
		}
		held = copy(buf, buf[pass:have])
		switch {
		case have == eventBuffer && len(buf) == eventBuffer:
			large := pooled[[copyBuffer]byte](&c.buffers)
			defer c.buffers.Put(large) // runs at most once: buf is never small again
			copy(large[:], buf[:held])
			buf = large[:]
		case err == nil && held == len(buf) && len(buf) < sse.MaxEvent: // a background call has a longer event
			buf = append(make([]byte, 0, 2*len(buf)), buf...)
			buf = buf[:cap(buf)]
		case len(buf) > copyBuffer && held < copyBuffer:
			buf = append(make([]byte, 0, copyBuffer), buf[:held]...)[:copyBuffer]
		}
		switch {
		case err == nil:
		case ended:
			return nil
		case edge.IsClientGone(r.Context()):
			ch.unsent = int64(held)
			return r.Context().Err()
		case x.Status() == 0:
			return err
		default:
			fault := providers.AsFault(err)
			parts := x.FaultEvents(fault)
			if format.Fault != nil {
				parts = [][]byte{format.Fault(x.Format.ForStream(fault))}
			}
			for _, part := range parts {
				_, _ = out.Write(events.Failure(part)) // the client may have left
				_ = out.Flush()
			}
			return err
		}
	}
}

// sendEvents sends the next events of a stream. An error means that the client disconnected.
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

// Events describes the event streams of a call's format.
type Events struct {
	// Last reports whether events ends with the event after which a client may send its next call without waiting for the end; nil: never.
	Last func(events []byte) bool
	// LastCounts: the last event reports the usage.
	LastCounts bool
	// Saw receives all events that are sent; nil: none.
	Saw func(events []byte)
	// Fault returns the event that ends a failed stream; nil: the format's own.
	Fault func(fault *providers.Fault) []byte
}
