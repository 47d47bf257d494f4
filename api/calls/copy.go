package calls

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"

	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/providers/relay"
	"modelrelay/providers/upstream"
)

const (
	// copyBuffer is the size of the buffer for an answer, in bytes.
	copyBuffer = 32 << 10
	// eventBuffer is the size of the first buffer of a stream, in bytes. A usual event fits. A stream that fills it continues with a
	// copyBuffer, so most streams occupy little memory while they wait.
	eventBuffer = 4 << 10
)

// errBroken reports that an answer which is not a stream broke off. The connection is closed, so that the client detects this.
var errBroken = errors.New("the answer ended early")

// copyPlain copies an answer that is not a stream. inParts: the answer is a JSON array, and the client uses its elements as they arrive. If
// it fails between two elements, it ends with the format's error as the last one. If it fails before anything was sent, copyPlain returns
// the error for the client.
func (c *Calls) copyPlain(ch *Charge, r *http.Request, answer *relay.Answer, inParts bool) error {
	x := ch.request
	out := x.Paced()
	buf := pooled[[copyBuffer]byte](&c.buffers)
	defer c.buffers.Put(buf)
	length, err := strconv.ParseInt(answer.Header.Get("Content-Length"), 10, 64)
	if err != nil {
		length = -1
	}
	isJSON := upstream.MediaType(answer.Header) == "application/json"
	// Clients play sound and show images of unknown length as they arrive. A JSON document is of no use before its end.
	eager := length < 0 && (inParts || !isJSON)
	whole := !eager && (isJSON || length <= copyBuffer)
	// An upstream may send whitespace before a slow JSON answer, so that no proxy closes the idle connection. It is passed on immediately.
	onlyBlank := isJSON
	var array openArray
	for {
		n, err := answer.Body.Read(buf[:])
		onlyBlank = onlyBlank && blank(buf[:n])
		if whole && !onlyBlank && err == nil {
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
				more, err = answer.Body.Read(buf[n : n+1]) // this reads the end, which completes the usage
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
				array.scan(buf[:n])
			}
			// Work for the call continues after its answer, and without a flush net/http would hold the last bytes until then. The end of an
			// answer of unknown length is sent with its last bytes.
			if eager || onlyBlank || x.Sent() == length {
				_ = out.Flush() // the next write, or the end of the answer, has the same error
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return nil
		case edge.IsClientGone(r.Context()):
			return r.Context().Err()
		default:
			fault := providers.AsFault(err)
			if end := array.end(x.FaultBody(fault)); end != nil && length < 0 {
				_, _ = out.Write(end) // the client may have left
				return fault
			}
			return errors.Join(errBroken, err)
		}
	}
}

// blank reports whether p has only whitespace of JSON.
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

// pooled returns a value of a pool of pointers to T, or a new one. The caller puts it back.
func pooled[T any](pool *sync.Pool) *T {
	if value, ok := pool.Get().(*T); ok {
		return value
	}
	return new(T)
}

// openArray scans a JSON array of objects that is sent in parts, to determine whether another element may be appended. It reads only quotes
// and brackets.
type openArray struct {
	depth           int
	quoted, escaped bool
	last            byte // the last byte that is not whitespace
}

// scan reads the next bytes that were sent.
func (a *openArray) scan(p []byte) {
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

// end returns the text that appends one element and closes the array; nil within an element and after the end.
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
