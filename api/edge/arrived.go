package edge

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// A call whose body has come together with its header is admitted, and its money reserved, in one round trip, once the body says
// what the call may cost. Whoever waits for a body waits as a call that was admitted: a body that is still to come is not
// awaited before its caller's limits were asked.

// arrivedMost is the longest body, in bytes, that is read in the hope that all of it has come.
const arrivedMost = 16 << 10

// Connection is what requests come over, one at a time, where it can tell what has arrived.
type Connection interface {
	// Await tells whether reads wait for bytes, as they do at first. Reads that do not take what is there; where nothing is, they
	// return no byte and no error.
	Await(wait bool)
	// LastReceived is when the system last received data, the zero time if that is not known.
	LastReceived() time.Time
}

// Arrived returns when the request reached this machine. That is earlier than Start if its data waited in the socket of a process that
// stood still.
func (x *Request) Arrived(ctx context.Context) time.Time {
	if c := ConnectionOf(ctx); c != nil {
		if at := c.LastReceived(); !at.IsZero() && at.Before(x.Start) {
			return at
		}
	}
	return x.Start
}

type connectionKey struct{}

// WithConnection notes in the context of a connection's requests what they come over.
func WithConnection(ctx context.Context, c Connection) context.Context {
	return context.WithValue(ctx, connectionKey{}, c)
}

// ConnectionOf is what WithConnection noted, nil where it did not.
func ConnectionOf(ctx context.Context) Connection {
	c, _ := ctx.Value(connectionKey{}).(Connection)
	return c
}

// arriving is the connection of a request whose body may have arrived, nil for any other: those that are long, encoded or of
// unknown length, that wait for a word of the server, that share their connection with others, or that come from within.
func arriving(x *Request, r *http.Request) Connection {
	if n := r.ContentLength; n <= 0 || n > min(arrivedMost, x.edge.options.MaxBody) || r.ProtoMajor != 1 || r.TLS != nil ||
		InsiderOf(r.Context()) != nil || len(r.Header["Expect"]) > 0 || len(r.Header["Content-Encoding"]) > 0 {
		return nil
	}
	return ConnectionOf(r.Context())
}

// admitsLater tells whether the call is admitted where its handler reserves.
func admitsLater(x *Request, r *http.Request) bool {
	return x.Caller.Budget > 0 && arriving(x, r) != nil
}

// readArrived reads what has come of a body, into a buffer for all of it; nil where that is not known. It does not wait.
func readArrived(x *Request, r *http.Request) (raw []byte, have int, err error) {
	from := arriving(x, r)
	if from == nil {
		return nil, 0, nil
	}
	if err := x.growBody(int(r.ContentLength)); err != nil {
		return nil, 0, err
	}
	raw = make([]byte, r.ContentLength)
	from.Await(false)
	defer from.Await(true)
	for have < len(raw) {
		n, err := r.Body.Read(raw[have:])
		have += n
		if err != nil && (have < len(raw) || !errors.Is(err, io.EOF)) {
			return nil, 0, readFault(r, err)
		}
		if n == 0 {
			break
		}
	}
	if have == len(raw) {
		_ = http.NewResponseController(x.ResponseWriter).SetReadDeadline(time.Time{}) // of the body
	}
	return raw, have, nil
}
