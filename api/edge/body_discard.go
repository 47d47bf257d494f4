package edge

import (
	"io"
	"net/http"
	"time"

	"modelrelay/storage/fair"
)

// The gateway reads on for a while from a client that it refuses before the end of the body. If it closed the connection with unread
// bytes, the connection would be reset, and the client or a proxy would lose the answer. HTTP/2 needs no such read: it asks the client
// to stop and keeps the connection.
const (
	// serverReads is the part of a body, in bytes, that net/http itself reads before it answers.
	serverReads = 256 << 10
	// beyondLargest is how many bytes above the largest body are read, so that a client whose body is a little too large gets the answer.
	beyondLargest = 1 << 20
	// discardTime bounds the read. It suffices for the largest body at 50 Mbit/s, or for the client to see the answer and stop.
	discardTime = 10 * time.Second
	// discardsAtOnce bounds the concurrent reads, each of a connection, discardsOfOne those of one token, or of a network without a token.
	discardsAtOnce = 128
	discardsOfOne  = 16
)

// discard sends the answer of a refused request and then reads more of its body, within these bounds.
func (e *Edge) discard(x *Request) {
	r := x.http
	unread := r.ContentLength > serverReads || r.ContentLength < 0
	if x.status < http.StatusBadRequest || !unread || r.ProtoMajor > 1 || r.Header.Get("Expect") != "" || e.Draining() {
		return // a client with Expect has sent nothing
	}
	source := "network " + fair.NetworkOf(x.Source()).String()
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
	_, _ = io.CopyN(io.Discard, r.Body, e.options.MaxBody+beyondLargest) // after any error the answer has been sent
}
