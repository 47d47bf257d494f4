package calls

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"

	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/providers/relay"
	"modelrelay/providers/upstream"
)

const (
	// copyBuffer is how much of an answer is carried at once.
	copyBuffer = 32 << 10
	// eventBuffer holds the usual event of a stream. A stream that fills it continues with a copyBuffer; the many that never
	// do hold little memory while they wait.
	eventBuffer = 4 << 10
)

// errBroken marks an answer of one piece that broke off: its connection is cut, so that no client takes a part for
// the whole.
var errBroken = errors.New("the answer broke off")

// copyPlain carries an answer of one piece; inParts, if it is an array whose elements the client uses as they come. One
// that fails between two of them ends with the format's error as its last. The error of one that fails before anything
// was sent is what the client is answered.
func (c *Calls) copyPlain(ch *Charge, r *http.Request, answer *relay.Answer, inParts bool) error {
	x := ch.request
	out := x.Paced()
	buf := c.buffer()
	defer c.buffers.Put(buf)
	length, err := strconv.ParseInt(answer.Header.Get("Content-Length"), 10, 64)
	if err != nil {
		length = -1
	}
	isJSON := upstream.MediaType(answer.Header) == "application/json"
	// Sound and images of unknown length are played as they come; another JSON document is of no use before its end.
	eager := length < 0 && (inParts || !isJSON)
	whole := !eager && (isJSON || length <= copyBuffer)
	// An upstream that thinks for long sends blanks, so that no proxy closes the connection as idle: they are passed on as they come.
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
		if x.Status() == 0 {
			if err != nil && !errors.Is(err, io.EOF) {
				ch.unsent = int64(n)
				return err
			}
			x.WriteHeader(answer.Status)
		}
		if n > 0 {
			if err == nil && x.Sent()+int64(n) == length && n < len(buf) {
				var more int
				more, err = answer.Body.Read(buf[n : n+1]) // the end, so that the answer is counted
				n += more
			}
			if x.Sent()+int64(n) == length {
				ch.settle(answer, n, false)
			}
			ch.passes(answer)
			if _, failed := out.Write(buf[:n]); failed != nil {
				return edge.ClientGone(failed)
			}
			if inParts {
				array.saw(buf[:n])
			}
			// What is left to do for a call is done behind its answer: without a flush, net/http would keep the last bytes until
			// then. An answer of unknown length has its end to send as well, which goes with them.
			if eager || thinking || x.Sent() == length {
				_ = out.Flush() // what it meets, the next write or the end of the answer meets
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return nil
		case edge.Left(r.Context()):
			return r.Context().Err()
		default:
			fault := providers.AsFault(err)
			if end := array.end(x.FaultBody(fault)); end != nil && length < 0 {
				_, _ = out.Write(end) // a client that is gone needs no error
				return fault
			}
			return errors.Join(errBroken, err)
		}
	}
}

// blank reports whether there is nothing but the blanks of JSON.
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
func (c *Calls) buffer() *[copyBuffer]byte {
	if buf, ok := c.buffers.Get().(*[copyBuffer]byte); ok {
		return buf
	}
	return new([copyBuffer]byte)
}

// smallBuffer returns eventBuffer bytes, to be put back into eventBuffers.
func (c *Calls) smallBuffer() *[eventBuffer]byte {
	if buf, ok := c.eventBuffers.Get().(*[eventBuffer]byte); ok {
		return buf
	}
	return new([eventBuffer]byte)
}

// openArray follows a JSON array of objects that is sent element by element, to report whether another element may be put
// behind what was sent. It reads quotes and brackets only.
type openArray struct {
	depth           int
	quoted, escaped bool
	last            byte // of what was seen, white space apart
}

// saw follows the next bytes sent.
func (a *openArray) saw(p []byte) {
	for _, c := range p {
		switch {
		case a.escaped:
			a.escaped = false
		case a.quoted:
			a.escaped, a.quoted = c == '\\', c != '"'
		case c == '"':
			a.quoted = true
		case c == '[' || c == '{':
			a.depth++
		case c == ']' || c == '}':
			a.depth--
		case c == ' ' || c == '\n' || c == '\r' || c == '\t':
			continue
		}
		a.last = c
	}
}

// end is what closes the array behind one more element; nil within an element and behind the end.
func (a *openArray) end(element []byte) []byte {
	if a.depth != 1 {
		return nil
	}
	var end []byte
	if a.last == '}' {
		end = append(end, ',')
	}
	end = append(append(end, '\n'), element...)
	return append(end, "\n]"...)
}
