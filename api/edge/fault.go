package edge

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"modelrelay/providers"
)

// statusClientGone is the status in the log of a request whose client left before the answer.
const statusClientGone = 499

// Status returns the HTTP status of a kind of fault. A format may have another one.
func Status(kind providers.Kind) int {
	return cmp.Or(map[providers.Kind]int{
		providers.Invalid:          http.StatusBadRequest,
		providers.Unauthenticated:  http.StatusUnauthorized,
		providers.Forbidden:        http.StatusForbidden,
		providers.ModelNotFound:    http.StatusNotFound,
		providers.NotFound:         http.StatusNotFound,
		providers.MethodNotAllowed: http.StatusMethodNotAllowed,
		providers.Conflict:         http.StatusConflict,
		providers.TooLarge:         http.StatusRequestEntityTooLarge,
		providers.Mismatch:         http.StatusUnprocessableEntity,
		providers.UnsupportedMedia: http.StatusUnsupportedMediaType,
		providers.RateLimited:      http.StatusTooManyRequests,
		providers.Quota:            http.StatusTooManyRequests,
		providers.Canceled:         statusClientGone,
		providers.Upstream:         http.StatusBadGateway,
		providers.Overloaded:       http.StatusServiceUnavailable,
		providers.Timeout:          http.StatusGatewayTimeout,
	}[kind], http.StatusInternalServerError)
}

// problem is a fault that is rendered in one format.
type problem struct {
	status int
	body   []byte
	fault  *providers.Fault
}

// GetStatus implements huma.StatusError.
func (p *problem) GetStatus() int { return p.status }

// Error implements huma.StatusError.
func (p *problem) Error() string { return p.fault.Error() }

// MarshalJSON makes huma write the body as it is.
func (p *problem) MarshalJSON() ([]byte, error) { return p.body, nil }

// render renders a fault in the format. The body is the upstream's own error if the vendor itself would have sent the client the same. It
// is always JSON, whatever its Content-Type: this server must not send the page of another.
func (f *Format) render(fault *providers.Fault, requestID string) *problem {
	if reply := f.passable(fault); reply != nil {
		return &problem{status: reply.Status, body: reply.Body, fault: fault}
	}
	status := f.status(fault.Kind)
	if fault.UpstreamMessage != "" && fault.Upstream != nil {
		status = fault.Upstream.Status
	}
	return &problem{status: status, body: f.body(fault, status, requestID), fault: fault}
}

// passable returns the upstream's answer if it is a 4xx in this format about the client's request; else nil. Clients must not see errors
// about the gateway's own key, quota or account.
func (f *Format) passable(fault *providers.Fault) *providers.Reply {
	reply := fault.Upstream
	if reply == nil || reply.Format != f.Name || reply.Status < 400 || reply.Status > 499 {
		return nil
	}
	switch fault.Kind {
	case providers.Invalid, providers.Forbidden, providers.ModelNotFound, providers.NotFound, providers.Conflict,
		providers.TooLarge, providers.Mismatch:
	default:
		return nil
	}
	if body := bytes.TrimSpace(reply.Body); len(body) == 0 || body[0] != '{' || !json.Valid(body) {
		return nil
	}
	return reply
}

// body returns the format's body of a fault. Its message is that of an upstream of another format, if the fault has one.
func (f *Format) body(fault *providers.Fault, status int, requestID string) []byte {
	return encodeFault(f.Fault, fault, status, requestID)
}

func encodeFault(show func(*providers.Fault, int, string) any, fault *providers.Fault, status int, requestID string) []byte {
	if fault.UpstreamMessage != "" {
		public := *fault
		public.Message, fault = fault.UpstreamMessage, &public
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(show(fault, status, requestID)) // plain structs of strings always encode
	return bytes.TrimRight(out.Bytes(), "\n")
}

// setHeaders adds the headers by which a client decides whether and when to retry.
func (p *problem) setHeaders(header http.Header) {
	switch {
	case p.fault.Unrepeatable:
	case p.fault.RetryAfter > 0, p.status == http.StatusTooManyRequests, p.fault.Kind == providers.Overloaded:
		header.Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(p.fault.RetryAfter.Seconds())))))
	}
	if p.fault.Kind == providers.Mismatch || p.fault.Kind == providers.Quota || p.fault.Unrepeatable {
		header.Set("X-Should-Retry", "false")
	}
	if p.fault.Kind == providers.Unauthenticated {
		header.Set("WWW-Authenticate", "Bearer")
	}
}

// Fail answers a request with a fault in its format. If the header has been sent, it only records the fault.
func (x *Request) Fail(err error) {
	x.FailWith(0, x.presence.recorded(providers.AsFault(err)))
}

// recorded returns the fault for the log line and the counters of a request. If the client disconnected, a failure of the gateway or of an
// upstream becomes ClientGone, because the disconnect may have caused it.
func (p *presence) recorded(fault *providers.Fault) *providers.Fault {
	if !IsClientGone(p.ctx) {
		return fault
	}
	switch fault.Kind {
	case providers.Internal, providers.Upstream, providers.Overloaded, providers.Timeout:
		return ClientGone(fault)
	default:
		return fault
	}
}

// FailWith is Fail with a status that no kind has; 0 means the kind's own.
func (x *Request) FailWith(status int, fault *providers.Fault) {
	x.Fault = fault
	if x.status != 0 {
		return
	}
	p := x.Format.render(fault, x.AnswerID())
	if status == 0 {
		status = p.status
	}
	header := x.Header()
	// With a length, the client or a proxy sees the end of the answer while the request's body is still being read.
	header.Set("Content-Length", strconv.Itoa(len(p.body)))
	p.setHeaders(header)
	header.Set("Content-Type", "application/json")
	x.WriteHeader(status)
	_, _ = x.Write(p.body) // the client may have left
}

// FaultBody returns the body of a fault in the request's format, for an answer that has begun.
func (x *Request) FaultBody(fault *providers.Fault) []byte {
	return x.Format.body(fault, x.Format.status(fault.Kind), x.AnswerID())
}

// FaultEvents returns the events that end a failed stream in the request's format. The caller flushes each separately.
func (x *Request) FaultEvents(fault *providers.Fault) [][]byte {
	return x.Format.events(fault, x.AnswerID())
}

// FaultEvents returns the events that end a failed stream in the format.
func (e *Edge) FaultEvents(name providers.Format, fault *providers.Fault, requestID string) []byte {
	return slices.Concat(e.formatNamed(name).events(fault, requestID)...)
}

func (f *Format) events(fault *providers.Fault, requestID string) [][]byte {
	begin := "data: "
	if f.StreamEvent != "" {
		begin = "event: " + f.StreamEvent + "\ndata: "
	}
	status, show := f.status(fault.Kind), f.Fault
	if f.StreamFault != nil {
		show = f.StreamFault
	}
	body := encodeFault(show, f.ForStream(fault), status, requestID)
	parts := [][]byte{slices.Concat([]byte(begin), body, []byte("\n\n"))}
	if f.BareError {
		parts = append(parts, append(body, '\n'))
	}
	return parts
}

// ForStream returns the fault with a message for the middle of a stream. There is no status at that point, and agents decide by the message
// whether to retry: they search it for words such as "server error" and for the status.
func (f *Format) ForStream(fault *providers.Fault) *providers.Fault {
	status := f.status(fault.Kind)
	if status < http.StatusInternalServerError || fault.Message == "" {
		return fault
	}
	streamed := *fault
	message := strings.TrimSuffix(fault.Message, ".")
	streamed.Message = "server error: " + strings.ToLower(message[:1]) + message[1:] + " (" + strconv.Itoa(status) + ")"
	return &streamed
}

// IsClientGone reports whether the client disconnected. If the context ended with a fault, this process ended it, and the client is still
// there.
func IsClientGone(ctx context.Context) bool {
	var fault *providers.Fault
	return ctx.Err() != nil && !errors.As(context.Cause(ctx), &fault)
}

// ClientGone returns the fault of a request whose client has left.
func ClientGone(err error) *providers.Fault {
	return &providers.Fault{Kind: providers.Canceled, Message: "The client disconnected.", Err: err}
}
