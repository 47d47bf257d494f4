package api

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"modelrelay/providers"
)

// maxRequestID is how much of a client's own request id is kept.
const maxRequestID = 128

// observe is the outermost layer: it gives the request its id, catches panics and writes the one access log line.
func (s *Server) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{ResponseWriter: w, id: requestID(r), start: time.Now(), format: formatOf(r), patience: s.writeTimeout}
		x.source = s.proxies.source(r)
		s.open.requests.Add(1)
		x.fixed = [...]string{x.id, "nosniff", "private, no-store"}
		w.Header()["X-Request-Id"] = x.fixed[0:1:1]
		w.Header()["X-Content-Type-Options"] = x.fixed[1:2:2]
		if len(r.TransferEncoding) > 0 || !r.ProtoAtLeast(1, 1) {
			// A length beside the encoding, in which somebody in front may see another end of the request, would have to end the
			// connection. net/http hides whether there was one.
			w.Header().Set("Connection", "close")
		}
		control := http.NewResponseController(w)
		_ = control.SetWriteDeadline(time.Time{}) // the connection's last request may have left one
		if r.ContentLength != 0 {
			_ = control.SetReadDeadline(x.start.Add(s.unreadTimeout()))
		}
		ctx, end := context.WithCancelCause(r.Context())
		x.end = end
		ctx = s.trace(context.WithValue(ctx, exchangeKey{}, x), r, x)
		x.ctx = ctx
		defer func() {
			s.callers.leave(&x.presence)
			end(nil)
			aborted := s.recovered(ctx, x, recover())
			s.logAccess(ctx, r, x)
			s.endTrace(r, x)
			s.tell(r, x)
			s.letGo(x)
			if !aborted {
				s.discard(x, r)
			}
			s.open.requests.Add(-1)
			if aborted {
				panic(http.ErrAbortHandler)
			}
		}()
		next.ServeHTTP(x, r.WithContext(ctx))
	})
}

// recovered answers a panic in the format of the request and tells whether the connection must be cut because the
// answer had begun.
func (s *Server) recovered(ctx context.Context, x *exchange, panicked any) (aborted bool) {
	if panicked == nil {
		return false
	}
	if err, ok := panicked.(error); ok && err == http.ErrAbortHandler { //nolint:errorlint // net/http compares it so
		return true
	}
	s.log.LogAttrs(ctx, slog.LevelError, "handler panicked", slog.String("request_id", x.id),
		slog.Any("panic", panicked), slog.String("stack", string(debug.Stack())))
	if x.status != 0 {
		return true
	}
	x.failWith(0, providers.Faultf(providers.Internal, "The gateway failed to handle the request."))
	return false
}

// requestID keeps a client's own safe id, else draws one.
func requestID(r *http.Request) string {
	id := r.Header.Get("X-Request-Id")
	if id == "" || len(id) > maxRequestID {
		return "req_" + rand.Text()
	}
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '-' || c == '_' || c == '.' || c == ':' || c == '/' || c == '+' || c == '=' || c == '@':
		default:
			return "req_" + rand.Text()
		}
	}
	return id
}

// logAccess writes the request's line: what was asked of whom and how it ended, never what was said.
func (s *Server) logAccess(ctx context.Context, r *http.Request, x *exchange) {
	level := slog.LevelInfo
	switch {
	case x.operation == probe:
		level = slog.LevelDebug
	case x.fault != nil && x.fault.Kind == providers.Internal:
		level = slog.LevelError // a defect, ours or an operator's
	}
	if !s.log.Enabled(ctx, level) {
		return
	}
	operation := x.operation
	if operation == "" {
		operation = "unknown"
	}
	var room [22]slog.Attr
	attrs := append(room[:0],
		slog.String("method", r.Method), slog.String("operation", operation), slog.Int("status", x.shownStatus()),
		slog.Float64("ms", float64(time.Since(x.start).Microseconds())/1000), slog.Int64("bytes", x.bytes),
		slog.String("request_id", x.id),
	)
	if id := x.traceID(); id != "" {
		attrs = append(attrs, slog.String("trace_id", id))
	}
	if x.caller != nil {
		attrs = append(attrs, slog.String("token", x.caller.Name))
	}
	if x.subject != "" {
		attrs = append(attrs, slog.String("subject", x.subject))
	}
	if x.model != "" {
		attrs = append(attrs, slog.String("model", x.model))
	}
	if x.channel != "" {
		attrs = append(attrs, slog.String("channel", x.channel), slog.Int("attempts", x.attempts))
	}
	if !x.sent.IsZero() {
		attrs = append(attrs, slog.Int64("before_us", x.since(x.sent).Microseconds()))
	}
	if !x.answered.IsZero() { // else the only byte is the fault's, and "ms" says when
		attrs = append(attrs, slog.Int64("first_byte_ms", x.since(x.first).Milliseconds()))
	}
	if x.usage != (providers.Usage{}) {
		attrs = append(attrs, slog.Int64("input_tokens", x.usage.Input), slog.Int64("output_tokens", x.usage.Output))
	}
	if x.usage.Cached > 0 {
		attrs = append(attrs, slog.Int64("cached_tokens", x.usage.Cached))
	}
	if x.priced {
		attrs = append(attrs, slog.String("cost", x.cost.String()))
	}
	if x.estimated {
		attrs = append(attrs, slog.Bool("estimated", true))
	}
	if x.fault != nil {
		attrs = logFault(attrs, x.fault)
		if turnedAway(x.fault) && x.source.IsValid() {
			attrs = append(attrs, slog.String("source", x.source.String()))
		}
	}
	s.log.LogAttrs(ctx, level, "request", attrs...)
}

// turnedAway tells the faults of which an operator wants to know where they come from.
func turnedAway(fault *providers.Fault) bool {
	return fault.Kind == providers.Unauthenticated || fault.Kind == providers.Forbidden || errors.Is(fault.Err, errWrongKey)
}
