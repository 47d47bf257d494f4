package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"strconv"

	"modelrelay/providers"
	"modelrelay/providers/relay"
	"modelrelay/storage"
)

const (
	// copyBuffer is how much of an answer is carried at once.
	copyBuffer = 32 << 10
	// eventBuffer holds the usual event of a stream. A stream whose reads fill it goes on with a copyBuffer; the many
	// that never do hold little memory while they wait.
	eventBuffer = 4 << 10
)

// Relay sends synchronous calls, and conversations, to a channel of the group.
type Relay interface {
	// Do returns once the first byte of the answer has come; the caller closes its body. Errors are *providers.Fault.
	Do(ctx context.Context, group string, call providers.Call) (*relay.Answer, error)
	// Realtime returns once an upstream has taken the conversation; the caller runs or closes it. Errors are
	// *providers.Fault.
	Realtime(ctx context.Context, group string, call providers.RealtimeCall) (*relay.Session, error)
}

// call relays one call and copies its answer out.
func (s *Server) call(x *exchange, r *http.Request, call providers.Call) error {
	x.model = call.Model
	if !x.caller.Allows(call.Model) {
		return modelNotFound(call.Model)
	}
	call.RequestID = x.id
	answer, err := s.relay.Do(r.Context(), x.caller.Group, call)
	if err != nil {
		if kind := providers.AsFault(err).Kind; kind != providers.ModelNotFound && kind != providers.NotFound {
			s.record(x, true) // names of a client's own making would grow the ledger
		}
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	x.channel, x.attempts = answer.Channel, answer.Attempts
	if x.spent = tokensUnknown; call.Endpoint.Operation == providers.CountTokens {
		x.spent = 0 // counting makes no tokens
	}
	maps.Copy(x.Header(), answer.Header)
	if answer.Stream {
		err = s.copyStream(x, r, answer)
	} else {
		err = s.copyPlain(x, r, answer, call.Endpoint.Operation == providers.StreamContent)
	}
	_ = answer.Body.Close() // what was read has been counted
	x.count(answer)
	s.record(x, err != nil)
	if err != nil {
		x.fault = providers.AsFault(err)
		if errors.Is(err, errBroken) {
			panic(http.ErrAbortHandler)
		}
	}
	return nil
}

// callChecked is call for a body that was checked.
func (s *Server) callChecked(x *exchange, r *http.Request, call providers.Call, b *body) error {
	return s.callListed(x, r, call, b.unlisted)
}

// callListed is call for a body with a value the contract does not list, nil for none: it is refused where no channel
// is open to such.
func (s *Server) callListed(x *exchange, r *http.Request, call providers.Call, unlisted *providers.Fault) error {
	want := providers.Want{Group: x.caller.Group, Model: call.Model, Endpoint: call.Endpoint}
	if unlisted != nil && x.caller.Allows(call.Model) && s.router.Serves(want) {
		if want.OpenValues = true; !s.router.Serves(want) {
			return unlisted
		}
	}
	return s.call(x, r, call)
}

// errBroken marks an answer of one piece that broke off: its connection is cut, so that no client takes a part for
// the whole.
var errBroken = errors.New("the answer broke off")

// copyPlain carries an answer of one piece; inParts, if it is an array whose elements the client uses as they come. One
// that fails between two of them ends with the format's error as its last.
func (s *Server) copyPlain(x *exchange, r *http.Request, answer *relay.Answer, inParts bool) error {
	out := s.paced(x)
	buf := s.buffer()
	defer s.buffers.Put(buf)
	length, err := strconv.ParseInt(answer.Header.Get("Content-Length"), 10, 64)
	if err != nil {
		length = -1
	}
	// Sound and images of unknown length are played as they come; another JSON document is of no use before its end.
	eager := length < 0 && (inParts || providers.MediaType(answer.Header) != "application/json")
	x.WriteHeader(answer.Status)
	var array openArray
	for {
		n, err := answer.Body.Read(buf[:])
		if n > 0 {
			if err == nil && x.bytes+int64(n) == length && n < len(buf) {
				var more int
				more, err = answer.Body.Read(buf[n : n+1]) // the end, so that the answer is counted
				n += more
			}
			if x.bytes+int64(n) == length {
				x.release(answer)
			}
			if _, failed := out.Write(buf[:n]); failed != nil {
				return clientGone(failed)
			}
			if inParts {
				array.saw(buf[:n])
			}
			if eager {
				_ = out.control.Flush() // what it meets, the next write meets
			}
		}
		switch {
		case err == nil:
		case err == io.EOF:
			return nil
		case left(r.Context()):
			return r.Context().Err()
		default:
			fault := providers.AsFault(err)
			if end := array.end(renderBody(x.format, classOf(fault.Kind), fault, x.id)); end != nil && length < 0 {
				_, _ = out.Write(end) // a client that is gone needs no error
				return fault
			}
			return errors.Join(errBroken, err)
		}
	}
}

// copyStream carries an event stream and flushes what came at once. A stream that fails ends with the format's error
// event; one whose client is gone just ends.
func (s *Server) copyStream(x *exchange, r *http.Request, answer *relay.Answer) error {
	out := s.paced(x)
	small := s.smallBuffer()
	defer s.eventBuffers.Put(small)
	buf := small[:]
	x.Header().Set("X-Accel-Buffering", "no")
	x.WriteHeader(answer.Status)
	var numbers eventNumbers
	complete, crlf := true, false // the last bytes sent end an event; its lines end in CR and LF
	for {
		n, err := answer.Body.Read(buf)
		if n > 0 {
			if x.operation == responsesPath {
				numbers.saw(buf[:n])
			}
			if endsStream(x.format, buf[:n]) || x.operation == responsesPath && counted(answer) {
				x.release(answer)
			}
			if _, failed := out.Write(buf[:n]); failed != nil {
				return clientGone(failed)
			}
			if failed := out.control.Flush(); failed != nil {
				return clientGone(failed)
			}
			complete = bytes.HasSuffix(buf[:n], []byte("\n\n")) || bytes.HasSuffix(buf[:n], []byte("\r\n\r\n")) || n == 1 && buf[0] == '\n'
			if buf[n-1] == '\n' {
				crlf = n > 1 && buf[n-2] == '\r'
			}
			if n == eventBuffer && len(buf) == eventBuffer {
				large := s.buffer()
				defer s.buffers.Put(large) // once at most: buf is large from here on
				buf = large[:]
			}
		}
		switch {
		case err == nil:
		case err == io.EOF:
			return nil
		case left(r.Context()):
			return r.Context().Err()
		default:
			event := x.streamError(providers.AsFault(err), numbers.next())
			if !complete {
				event = append([]byte("\n\n"), event...)
			}
			if crlf { // a client that saw one end of lines need not look for another
				event = bytes.ReplaceAll(event, []byte("\n"), []byte("\r\n"))
			}
			_, _ = out.Write(event)
			_ = out.control.Flush()
			return err
		}
	}
}

// counted tells whether the answer has said what it used, which a response's stream does in its last event.
func counted(answer *relay.Answer) bool {
	_, ok := answer.Usage()
	return ok
}

// endsStream tells the bytes after which a format's client may send its next call without waiting for the end.
func endsStream(format providers.Format, events []byte) bool {
	switch format {
	case providers.OpenAI:
		return bytes.HasSuffix(bytes.TrimRight(events, "\r\n"), []byte("data: [DONE]"))
	case providers.Anthropic:
		return bytes.Contains(events[max(0, len(events)-256):], []byte("event: message_stop"))
	default:
		return false
	}
}

// buffer returns copyBuffer bytes, to be put back into buffers.
func (s *Server) buffer() *[copyBuffer]byte {
	if buf, ok := s.buffers.Get().(*[copyBuffer]byte); ok {
		return buf
	}
	return new([copyBuffer]byte)
}

// smallBuffer returns eventBuffer bytes, to be put back into eventBuffers.
func (s *Server) smallBuffer() *[eventBuffer]byte {
	if buf, ok := s.eventBuffers.Get().(*[eventBuffer]byte); ok {
		return buf
	}
	return new([eventBuffer]byte)
}

// left tells whether nobody takes the answer any more. A context that ended with a fault was ended by this process, whose
// client learns of it.
func left(ctx context.Context) bool {
	var fault *providers.Fault
	return ctx.Err() != nil && !errors.As(context.Cause(ctx), &fault)
}

// clientGone is the fault of an answer nobody takes.
func clientGone(err error) *providers.Fault {
	return &providers.Fault{Kind: providers.Canceled, Message: "The client has left.", Err: err}
}

// count takes over what the answer counted so far.
func (x *exchange) count(answer *relay.Answer) {
	if usage, counted := answer.Usage(); counted {
		x.usage, x.spent = usage, int(usage.Input+usage.Output)
	}
}

// release settles the caller's limits before the answer's last byte, after which the client may call again.
func (x *exchange) release(answer *relay.Answer) {
	x.count(answer)
	x.grant.Release(x.spent)
}

// record puts a call into the ledger.
func (s *Server) record(x *exchange, failed bool) {
	s.ledger.Record(storage.Entry{
		Token: x.caller.ID, Model: x.model, Channel: x.channel, Requests: 1, Failed: failed,
		InputTokens: x.usage.Input, CachedTokens: x.usage.Cached, OutputTokens: x.usage.Output,
	})
}

func modelNotFound(model string) *providers.Fault {
	fault := providers.Faultf(providers.ModelNotFound, "The model %q does not exist, or you do not have access to it.", model)
	fault.Param, fault.Taken = "model", providers.TakenNo
	return fault
}
