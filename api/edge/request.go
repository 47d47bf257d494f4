package edge

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"go.opentelemetry.io/otel/trace"

	"modelrelay/providers"
	"modelrelay/storage/tokens"
)

// Request is one request as the gateway follows it, and the ResponseWriter of its answer. What is found out of it stands
// here until its access log line is written. One goroutine uses it.
type Request struct {
	answer

	edge *Edge
	http *http.Request
	// ID is the request's id, which this process made. clientID is the value of the client's x-request-id, "" for none.
	ID, clientID string
	// Start is when it came.
	Start  time.Time
	Format *Format
	route
	// Caller is the authenticated token, nil on routes that need none.
	Caller *tokens.Token
	// Act is what an operator's operation does; zero for all others.
	Act Act
	// Fault is how it failed, nil as long as it did not.
	Fault    *providers.Fault
	Outcome  Outcome
	presence presence
	// span is the request's in a trace, nil where nothing is traced.
	span trace.Span
	// held is what its body counts for in the memory of all bodies, in bytes.
	held int64
}

// route is which of the operations of the document a request asks for.
type route struct {
	// Operation is the pattern of its path, "" where none matched.
	Operation string
	// operationID is its name in the document.
	operationID string
	Access      Access
	// Recorded: it is one of those that the log of calls has.
	Recorded bool
}

// answer is the ResponseWriter of one request.
type answer struct {
	http.ResponseWriter

	status int       // 0 until the header is sent
	bytes  int64     // of the body, sent
	first  time.Time // when the client was sent the first byte
	// patience is how long the client may leave an answer unread; one of any length is written through a Writer.
	patience time.Duration
	// fixed are the values of headers that most answers have. The header's slices point into it.
	fixed [4]string
}

type requestKey struct{}

// Of returns the request of a context; nil outside of one.
func Of(ctx context.Context) *Request {
	x, _ := ctx.Value(requestKey{}).(*Request)
	return x
}

// At returns the request that a handler behind Edge.Handler answers.
func At(w http.ResponseWriter) *Request {
	x, ok := w.(*Request)
	if !ok {
		panic("edge: a handler was called past Edge.Handler")
	}
	return x
}

// unwrap returns what is after huma's context.
func unwrap(ctx huma.Context) (*http.Request, *Request) {
	r, w := humachi.Unwrap(ctx)
	return r, At(w)
}

// Source is the address that the request comes from, as far as proxies are trusted; the zero Addr where it is not known.
func (x *Request) Source() netip.Addr { return x.presence.source }

// Status is the answer's; 0 until its header is sent.
func (a *answer) Status() int { return a.status }

// Sent is how many bytes of the answer's body were sent.
func (a *answer) Sent() int64 { return a.bytes }

// Hijacked notes what was sent over a connection that was taken over.
func (a *answer) Hijacked(sent int64) { a.bytes = sent }

// WriteHeader sends the header once; informational ones pass.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		a.begin(status)
	}
	a.ResponseWriter.WriteHeader(status)
}

// begin starts the answer, and the time in which the client must take it.
func (a *answer) begin(status int) {
	a.status, a.first = status, time.Now()
	_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(a.first.Add(a.patience)) // a writer without deadlines has none
}

// Write sends body bytes, after a 200 when no header was sent.
func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.begin(http.StatusOK)
	}
	n, err := a.ResponseWriter.Write(p) //nolint:gosec // it carries answers, and none of ours is a page of a client's making
	a.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the server's own writer.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// JSON answers 200 with a value that always encodes.
func (a *answer) JSON(value any) error { return a.JSONStatus(http.StatusOK, value) }

// JSONStatus is JSON with a status of its own.
func (a *answer) JSONStatus(status int, value any) error {
	a.Header().Set("Content-Type", "application/json")
	a.WriteHeader(status)
	encoder := json.NewEncoder(a)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return ClientGone(err)
	}
	return nil
}

// Document answers with a JSON text as it is.
func (a *answer) Document(text []byte) error {
	a.Header().Set("Content-Type", "application/json")
	a.Header().Set("Content-Length", strconv.Itoa(len(text)))
	if _, err := a.Write(text); err != nil {
		return ClientGone(err)
	}
	return nil
}

// Writer writes an answer of any length to a client that keeps reading: no write may wait longer than the write timeout,
// however long the whole takes.
type Writer struct {
	answer   *answer
	control  *http.ResponseController
	deadline time.Time
}

// Paced returns the writer of an answer of any length.
func (a *answer) Paced() *Writer {
	return &Writer{answer: a, control: http.NewResponseController(a.ResponseWriter)}
}

// Write moves the deadline on when half of it is gone. It stays set after the last write, for what the server still
// has to flush; Edge.Handler lifts it before the next request of the connection.
func (w *Writer) Write(p []byte) (int, error) {
	if now := time.Now(); w.deadline.Sub(now) < w.answer.patience/2 {
		w.deadline = now.Add(w.answer.patience)
		_ = w.control.SetWriteDeadline(w.deadline) // a writer without deadlines has none
	}
	return w.answer.Write(p)
}

// Flush sends what was written.
func (w *Writer) Flush() error { return w.control.Flush() }
