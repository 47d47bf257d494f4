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

// Request is the state of one request and the ResponseWriter of its answer, for one goroutine, until the access log line is written.
type Request struct {
	answer

	edge *Edge
	http *http.Request
	// ID is the request's id, which this process made. clientID is the value of the client's x-request-id, "" for none.
	ID, clientID string
	// Start is when its header was read.
	Start  time.Time
	Format *Format
	route
	// Caller is the authenticated token, nil on routes that need none.
	Caller *tokens.Token
	// Act is the action of an operator's request; zero for others.
	Act Act
	// Fault is the fault of the request, nil for none.
	Fault    *providers.Fault
	Outcome  Outcome
	presence presence
	// span is the request's span, nil without a tracer.
	span trace.Span
	// held is the size of its body in the memory for bodies, in bytes.
	held int64
}

type route struct {
	// Operation is the pattern of its path, "" if none matched.
	Operation string
	// operationID is its name in the OpenAPI document.
	operationID string
	Access      Access
	// Recorded: the call log has requests of this operation.
	Recorded bool
}

type answer struct {
	http.ResponseWriter

	status int       // 0 until the header is sent
	bytes  int64     // of the body, sent
	first  time.Time // when the first byte was sent
	// writeTimeout is how long the client may leave an answer unread. A Writer writes an answer of any length.
	writeTimeout time.Duration
	// fixed are the values of headers that most answers have. The header's slices point into it.
	fixed [4]string
}

type requestKey struct{}

// Of returns the request of a context; nil if there is none.
func Of(ctx context.Context) *Request {
	x, _ := ctx.Value(requestKey{}).(*Request)
	return x
}

// At returns the request of a handler within Edge.Handler.
func At(w http.ResponseWriter) *Request {
	x, ok := w.(*Request)
	if !ok {
		panic("edge: a handler was called past Edge.Handler")
	}
	return x
}

func unwrap(ctx huma.Context) (*http.Request, *Request) {
	r, w := humachi.Unwrap(ctx)
	return r, At(w)
}

// Source returns the source address of the request, also through trusted proxies; the zero Addr if unknown.
func (x *Request) Source() netip.Addr { return x.presence.source }

// Status returns the status of the answer; 0 until its header is sent.
func (a *answer) Status() int { return a.status }

// Sent returns how many bytes of the answer's body were sent.
func (a *answer) Sent() int64 { return a.bytes }

// Hijacked records how many bytes were sent over a hijacked connection.
func (a *answer) Hijacked(sent int64) { a.bytes = sent }

// WriteHeader sends the header once. It passes informational statuses on.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		a.begin(status)
	}
	a.ResponseWriter.WriteHeader(status)
}

// begin records the start of the answer, and sets the deadline for the client's reads.
func (a *answer) begin(status int) {
	a.status, a.first = status, time.Now()
	_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(a.first.Add(a.writeTimeout)) // the writer of a test has no deadlines
}

// Write sends bytes of the body, after status 200 if no header was sent.
func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.begin(http.StatusOK)
	}
	n, err := a.ResponseWriter.Write(p) //nolint:gosec // browsers do not treat answers as pages: answerPolicy
	a.bytes += int64(n)
	return n, err
}

// Unwrap returns the server's own writer, for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// JSON answers 200 with a value that can always be marshalled.
func (a *answer) JSON(value any) error { return a.JSONStatus(http.StatusOK, value) }

// JSONStatus is JSON with another status.
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

// Document answers 200 with a JSON text.
func (a *answer) Document(text []byte) error {
	a.Header().Set("Content-Type", "application/json")
	a.Header().Set("Content-Length", strconv.Itoa(len(text)))
	if _, err := a.Write(text); err != nil {
		return ClientGone(err)
	}
	return nil
}

// Writer writes an answer of any length. The write timeout bounds each write, not the whole answer.
type Writer struct {
	answer   *answer
	control  *http.ResponseController
	deadline time.Time
}

// Paced returns a Writer for the answer.
func (a *answer) Paced() *Writer {
	return &Writer{answer: a, control: http.NewResponseController(a.ResponseWriter)}
}

// Write extends the deadline when half of it has passed. The deadline stays after the last write, for the server's own flush. Edge.Handler
// removes it before the next request of the connection.
func (w *Writer) Write(p []byte) (int, error) {
	if now := time.Now(); w.deadline.Sub(now) < w.answer.writeTimeout/2 {
		w.deadline = now.Add(w.answer.writeTimeout)
		_ = w.control.SetWriteDeadline(w.deadline) // the writer of a test has no deadlines
	}
	return w.answer.Write(p)
}

// Flush sends the written bytes.
func (w *Writer) Flush() error { return w.control.Flush() }
