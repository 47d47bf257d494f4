package edge

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"modelrelay/providers"
)

// maxRequestID bounds a client's own request id, in bytes.
const maxRequestID = 128

// Probe is the operation of health checks, of browsers' preflights and of static files. Their log lines have level debug.
const Probe = "probe"

// answerPolicy is the Content-Security-Policy of answers: a browser runs nothing from a model, a vendor or a client. Pages set another.
const answerPolicy = "default-src 'none'; sandbox"

// The paths of the health routes, which are not traced.
const (
	AlivePath = "/healthz"
	ReadyPath = "/readyz"
)

// Handler returns the outermost handler: it makes the Request, recovers panics, frees the body's memory and writes the access log line.
func (e *Edge) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := e.begin(w, r)
		defer x.finish() //nolint:contextcheck // it reads the request's own context
		next.ServeHTTP(x, x.http)
	})
}

// begin creates the Request and sets the headers of every answer.
func (e *Edge) begin(w http.ResponseWriter, r *http.Request) *Request {
	x := &Request{
		answer: answer{ResponseWriter: w, writeTimeout: e.options.WriteTimeout},
		edge:   e, clientID: clientID(r), Start: time.Now(), Format: e.formatOf(r),
	}
	x.ID = newRequestID(x.Start)
	x.presence.source = e.options.Proxies.source(r)
	e.requests.Add(1)
	x.fixed = [...]string{x.AnswerID(), "nosniff", "private, no-store", answerPolicy}
	w.Header()["X-Request-Id"] = x.fixed[0:1:1]
	w.Header()["X-Content-Type-Options"] = x.fixed[1:2:2]
	w.Header()["Content-Security-Policy"] = x.fixed[3:4:4]
	if len(r.TransferEncoding) > 0 || !r.ProtoAtLeast(1, 1) {
		// With both Transfer-Encoding and Content-Length, a proxy may see another end of the request, so the connection must end. net/http
		// does not report whether there was a Content-Length.
		w.Header().Set("Connection", "close")
	}
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Time{}) // of the connection's last request
	if r.ContentLength != 0 {
		_ = control.SetReadDeadline(x.Start.Add(e.unreadTimeout()))
	}
	ctx, end := context.WithCancelCause(r.Context())
	ctx = e.trace(context.WithValue(ctx, requestKey{}, x), r, x)
	x.presence.ctx, x.presence.end = ctx, end
	x.http = r.WithContext(ctx)
	return x
}

// finish ends a request. It is deferred, and recovers a panic of the handler.
func (x *Request) finish() {
	panicked := recover()
	x.edge.callers.leave(&x.presence)
	x.presence.end(nil)
	aborted := x.edge.recovered(x, panicked)
	done := report{x}
	done.audit()
	done.log()
	done.endTrace()
	done.seen()
	done.called()
	x.ReleaseBody()
	if !aborted {
		x.edge.discard(x)
	}
	x.edge.requests.Add(-1)
	if aborted {
		panic(http.ErrAbortHandler)
	}
}

// recovered answers a panic in the format of the request. It reports whether the connection must be cut, because the answer had begun.
func (e *Edge) recovered(x *Request, panicked any) (aborted bool) {
	if panicked == nil {
		return false
	}
	if err, ok := panicked.(error); ok && err == http.ErrAbortHandler { //nolint:errorlint // net/http compares it so
		return true
	}
	e.options.Log.LogAttrs(x.presence.ctx, slog.LevelError, "handler panicked", slog.String("request_id", x.ID),
		slog.Any("panic", panicked), slog.String("stack", string(debug.Stack())))
	if x.status != 0 {
		return true
	}
	x.FailWith(0, providers.Faultf(providers.Internal, "The gateway failed to handle the request."))
	return false
}

// The parts of a request id: a prefix, the time of arrival in ms, and random bits, in base32 whose letters ascend: ids sort by time.
const (
	idPrefix        = "req_"
	idTimeLetters   = 9  // 45 bits, which last beyond the year 3000
	idRandomLetters = 16 // 80 bits
	idLetters       = "0123456789abcdefghijklmnopqrstuv"
)

func newRequestID(now time.Time) string {
	var id [len(idPrefix) + idTimeLetters + idRandomLetters]byte
	copy(id[:], idPrefix)
	ms := now.UnixMilli()
	for i := len(idPrefix) + idTimeLetters - 1; i >= len(idPrefix); i-- {
		id[i] = idLetters[ms&31]
		ms >>= 5
	}
	random := id[len(idPrefix)+idTimeLetters:]
	_, _ = rand.Read(random) // never fails
	for i, b := range random {
		random[i] = idLetters[b&31]
	}
	return string(id[:])
}

// RequestTime returns the time of arrival in a request id. It reports false if the gateway did not make the id.
func RequestTime(id string) (time.Time, bool) {
	letters, ok := strings.CutPrefix(id, idPrefix)
	if !ok || len(letters) != idTimeLetters+idRandomLetters || strings.Trim(letters, idLetters) != "" {
		return time.Time{}, false
	}
	ms := int64(0)
	for _, c := range []byte(letters[:idTimeLetters]) {
		ms = ms<<5 | int64(strings.IndexByte(idLetters, c))
	}
	return time.UnixMilli(ms).UTC(), true
}

// AnswerID returns the request id in the answer: the client's own if it sent one.
func (x *Request) AnswerID() string { return cmp.Or(x.clientID, x.ID) }

// clientID returns the client's own x-request-id, or "" if there is none or it is not safe.
func clientID(r *http.Request) string {
	const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/+=@"
	id := r.Header.Get("X-Request-Id")
	if len(id) > maxRequestID || strings.Trim(id, safe) != "" {
		return ""
	}
	return id
}
