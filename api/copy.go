package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"

	"modelrelay/providers"
	"modelrelay/providers/relay"
	"modelrelay/providers/upstream"
)

const (
	// copyBuffer is how much of an answer is carried at once.
	copyBuffer = 32 << 10
	// eventBuffer holds the usual event of a stream. A stream that fills it goes on with a copyBuffer; the many that never
	// do hold little memory while they wait.
	eventBuffer = 4 << 10
)

// errBroken marks an answer of one piece that broke off: its connection is cut, so that no client takes a part for
// the whole.
var errBroken = errors.New("the answer broke off")

// copyPlain carries an answer of one piece; inParts, if it is an array whose elements the client uses as they come. One
// that fails between two of them ends with the format's error as its last. The error of one that fails before anything
// was sent is what the client is answered.
func (s *Server) copyPlain(x *exchange, r *http.Request, answer *relay.Answer, inParts bool) error {
	out := s.paced(x)
	buf := s.buffer()
	defer s.buffers.Put(buf)
	length, err := strconv.ParseInt(answer.Header.Get("Content-Length"), 10, 64)
	if err != nil {
		length = -1
	}
	isJSON := upstream.MediaType(answer.Header) == "application/json"
	// Sound and images of unknown length are played as they come; another JSON document is of no use before its end.
	eager := length < 0 && (inParts || !isJSON)
	whole := !eager && (isJSON || length <= copyBuffer)
	// An upstream that thinks for long sends blanks, so that nobody in between takes the line for dead: they go on as they come.
	thinking := isJSON
	var array openArray
	for {
		n, err := answer.Body.Read(buf[:])
		thinking = thinking && blank(buf[:n])
		if whole && !thinking && err == nil {
			var more int
			more, err = fill(answer.Body, buf[n:])
			n += more
		}
		if x.status == 0 {
			if err != nil && !errors.Is(err, io.EOF) {
				x.unsent = int64(n)
				return err
			}
			x.WriteHeader(answer.Status)
		}
		if n > 0 {
			if err == nil && x.bytes+int64(n) == length && n < len(buf) {
				var more int
				more, err = answer.Body.Read(buf[n : n+1]) // the end, so that the answer is counted
				n += more
			}
			if x.bytes+int64(n) == length {
				x.settle(answer, n, false)
			}
			if _, failed := out.Write(buf[:n]); failed != nil {
				return clientGone(failed)
			}
			if inParts {
				array.saw(buf[:n])
			}
			if eager || thinking {
				_ = out.control.Flush() // what it meets, the next write meets
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
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

// blank tells whether there is nothing but the blanks of JSON.
func blank(p []byte) bool { return len(bytes.TrimLeft(p, " \t\r\n")) == 0 }

// fill reads until p is full or the reader ends.
func fill(r io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var more int
		more, err = r.Read(p[n:])
		n += more
	}
	return n, err
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
