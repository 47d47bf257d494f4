package edge

import (
	"io"
	"net/http"
	"time"
)

// A client that is refused while it still sends its body may send on for a while: closing a connection with
// bytes unread resets it, and the client, or a proxy in front, loses the answer. HTTP/2 asks such a client to stop, and keeps the
// connection.
const (
	// serverReads is how much of a body net/http reads by itself before it answers, in bytes.
	serverReads = 256 << 10
	// beyondLargest is how much more than the largest body is read, in bytes, so that the client of one a little too large gets the answer.
	beyondLargest = 1 << 20
	// discardTime is how long a client may send on: enough for the largest body at 50 Mbit/s, and for a client to see its
	// answer and stop.
	discardTime = 10 * time.Second
	// discardsAtOnce bounds the bodies that are discarded at a time, discardsOfOne those of one token, or of one network where
	// there is no token. They hold a connection and no memory.
	discardsAtOnce = 128
	discardsOfOne  = 16
)

// discard sends the answer of a refused request and reads on of its body, within bounds.
func (e *Edge) discard(x *Request) {
	r := x.http
	unread := r.ContentLength > serverReads || r.ContentLength < 0
	if x.status < http.StatusBadRequest || !unread || r.ProtoMajor > 1 || r.Header.Get("Expect") != "" || e.Draining() {
		return // a client with Expect has sent nothing
	}
	source := "network " + NetworkOf(x.Source()).String()
	if x.Caller != nil {
		source = "token " + x.Caller.ID
	}
	if e.discards.Try(source, 1) != nil {
		return
	}
	defer e.discards.Release(source, 1)
	control := http.NewResponseController(x.ResponseWriter)
	if control.Flush() != nil || control.SetReadDeadline(time.Now().Add(min(discardTime, e.options.BodyTimeout))) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, r.Body, e.options.MaxBody+beyondLargest) // whatever ends it, the answer is out
}
