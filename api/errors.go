package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/providers"
)

// statusClientGone is what the log says of a request whose client left before the answer.
const statusClientGone = 499

// statusOverloadedA is format A's own status for an overloaded service.
const statusOverloadedA = 529

// class is how a kind of fault looks on the wire: one row of the contract's table.
type class struct {
	status                                 int
	openAIType, openAICode, aType, bStatus string
}

func classOf(kind providers.Kind) class {
	const invalid, serverError = "invalid_request_error", "api_error"
	switch kind {
	case providers.Invalid:
		return class{400, invalid, "invalid_request", invalid, "INVALID_ARGUMENT"}
	case providers.Unauthenticated:
		return class{401, "authentication_error", "invalid_api_key", "authentication_error", "UNAUTHENTICATED"}
	case providers.Forbidden:
		return class{403, "permission_error", "permission_denied", "permission_error", "PERMISSION_DENIED"}
	case providers.ModelNotFound:
		return class{404, invalid, "model_not_found", "not_found_error", "NOT_FOUND"}
	case providers.NotFound:
		return class{404, invalid, "not_found", "not_found_error", "NOT_FOUND"}
	case providers.MethodNotAllowed:
		return class{405, invalid, "method_not_allowed", invalid, "INVALID_ARGUMENT"}
	case providers.Conflict:
		return class{409, invalid, "conflict", invalid, "ABORTED"}
	case providers.TooLarge:
		return class{413, invalid, "request_too_large", "request_too_large", "INVALID_ARGUMENT"}
	case providers.Mismatch:
		return class{422, invalid, "idempotency_mismatch", invalid, "INVALID_ARGUMENT"}
	case providers.RateLimited:
		return class{429, "rate_limit_error", "rate_limit_exceeded", "rate_limit_error", "RESOURCE_EXHAUSTED"}
	case providers.Quota:
		return class{429, "insufficient_quota", "insufficient_quota", "rate_limit_error", "RESOURCE_EXHAUSTED"}
	case providers.Canceled:
		return class{statusClientGone, "", "canceled", "", "CANCELLED"}
	case providers.Upstream:
		return class{502, serverError, "upstream_error", serverError, "INTERNAL"}
	case providers.Overloaded:
		return class{503, serverError, "overloaded", "overloaded_error", "UNAVAILABLE"}
	case providers.Timeout:
		return class{504, serverError, "upstream_timeout", serverError, "DEADLINE_EXCEEDED"}
	default:
		return class{500, serverError, "internal_error", serverError, "INTERNAL"}
	}
}

// problem is a fault as one format shows it.
type problem struct {
	status      int
	contentType string
	body        []byte
	fault       *providers.Fault
}

// GetStatus implements huma.StatusError.
func (p *problem) GetStatus() int { return p.status }

// Error implements huma.StatusError.
func (p *problem) Error() string { return p.fault.Error() }

// MarshalJSON makes huma write the body as it is.
func (p *problem) MarshalJSON() ([]byte, error) { return p.body, nil }

// render shows a fault in a format. The upstream's own answer stands in for ours where the client would have got just
// that from the vendor itself.
func render(format providers.Format, fault *providers.Fault, requestID string) *problem {
	if reply := passable(format, fault); reply != nil {
		// It is JSON, whatever it is called: a page must not come from this server's address.
		return &problem{status: reply.Status, contentType: "application/json", body: reply.Body, fault: fault}
	}
	c := classOf(fault.Kind)
	if format == providers.Anthropic && fault.Kind == providers.Overloaded {
		c.status = statusOverloadedA
	}
	return &problem{
		status: c.status, contentType: "application/json", fault: fault,
		body: renderBody(format, c, fault, requestID),
	}
}

// passable returns the upstream's answer when it is a 4xx of its own in the caller's format about the caller's own
// request. What it says of our key, our quota or our account is ours to know.
func passable(format providers.Format, fault *providers.Fault) *providers.Reply {
	reply := fault.Upstream
	if reply == nil || reply.Format != format || reply.Status < 400 || reply.Status > 499 {
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

// renderBody writes the shared fault body of a format.
func renderBody(format providers.Format, c class, fault *providers.Fault, requestID string) []byte {
	var body any
	switch format {
	case providers.Anthropic:
		body = anthropicError{Type: "error", Error: anthropicErrorBody{Type: orNull(c.aType), Message: fault.Message}, RequestID: requestID}
	case providers.Gemini:
		body = geminiError{Error: geminiErrorBody{Code: c.status, Message: fault.Message, Status: c.bStatus, Details: []any{}}}
	case providers.VendorC:
		body = vendorCError{Code: vendorCCode(c, fault), Message: fault.Message, RequestID: requestID}
	default:
		body = openAIError{Error: openAIErrorBody{
			Message: fault.Message, Type: orNull(c.openAIType), Param: orNull(fault.Param), Code: c.openAICode,
		}}
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(body) // plain structs of strings always encode
	return bytes.TrimRight(out.Bytes(), "\n")
}

// vendorCCode is the vendor's own numbering: 50200 for a bad request, else 50000 plus the HTTP status.
func vendorCCode(c class, fault *providers.Fault) int {
	if fault.Kind == providers.Invalid {
		return 50200
	}
	return 50000 + c.status
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// setFaultHeaders adds what tells a client whether and when to come back.
func setFaultHeaders(header http.Header, p *problem) {
	switch {
	case p.fault.RetryAfter > 0 || p.status == http.StatusTooManyRequests ||
		p.status == http.StatusServiceUnavailable || p.status == statusOverloadedA:
		header.Set("Retry-After", strconv.Itoa(wholeSeconds(p.fault.RetryAfter)))
	}
	if p.fault.Kind == providers.Mismatch || p.fault.Kind == providers.Quota {
		header.Set("X-Should-Retry", "false")
	}
	if p.fault.Kind == providers.Unauthenticated {
		header.Set("WWW-Authenticate", "Bearer")
	}
}

// wholeSeconds rounds up, to one at least.
func wholeSeconds(d time.Duration) int {
	return max(1, int(math.Ceil(d.Seconds())))
}

// fail answers a request with a fault in its format. After the header is sent it only notes the fault.
func (s *Server) fail(x *exchange, err error) { x.failWith(0, x.whose(providers.AsFault(err))) }

// whose is the fault of a request as its log line and its count have it: what failed when its client had left failed because
// of that, whatever the part that was asked calls it, and speaks against no part.
func (x *exchange) whose(fault *providers.Fault) *providers.Fault {
	if x.ctx == nil || !left(x.ctx) {
		return fault
	}
	switch fault.Kind {
	case providers.Internal, providers.Upstream, providers.Overloaded, providers.Timeout:
		return clientGone(fault)
	default:
		return fault
	}
}

// failWith is fail with a status that no kind has; 0 means the kind's own.
func (x *exchange) failWith(status int, fault *providers.Fault) {
	x.fault = fault
	if x.status != 0 {
		return
	}
	p := render(x.format, fault, x.id)
	if status == 0 {
		status = p.status
	}
	header := x.Header()
	// The end of the answer must not wait for that of the request's body: a proxy in front ends the call with it.
	header.Set("Content-Length", strconv.Itoa(len(p.body)))
	setFaultHeaders(header, p)
	header.Set("Content-Type", p.contentType)
	x.WriteHeader(status)
	_, _ = x.Write(p.body) // a client that is gone needs no answer
}

// streamError is the event that ends a stream that failed, in the words of its format.
func streamError(format providers.Format, fault *providers.Fault, requestID string) []byte {
	body := renderBody(format, classOf(fault.Kind), fault, requestID)
	var event []byte
	if format == providers.Anthropic {
		event = append(event, "event: error\n"...)
	}
	event = append(event, "data: "...)
	event = append(event, body...)
	return append(event, "\n\n"...)
}

// streamError is the event that ends this exchange's stream. Events of a response have a shape of their own within the
// OpenAI format, and are numbered.
func (x *exchange) streamError(fault *providers.Fault, number int) []byte {
	if x.operation == responsesPath {
		return responseError(fault, number)
	}
	return streamError(x.format, fault, x.id)
}

// hookErrors routes every error huma writes through render. huma has one such hook per process, so it is set once.
var hookErrors = sync.OnceFunc(func() { //nolint:gochecknoglobals // huma.NewErrorWithContext is a global, see DESIGN.md
	huma.NewErrorWithContext = func(ctx huma.Context, status int, message string, errs ...error) huma.StatusError {
		fault := faultOf(status, message, errs)
		format, requestID := providers.OpenAI, ""
		if ctx == nil {
			return render(format, fault, requestID)
		}
		if x := exchangeOf(ctx.Context()); x != nil {
			format, requestID = x.format, x.id
			fault = x.whose(fault)
			x.fault = fault
		}
		p := render(format, fault, requestID)
		header := make(http.Header, 2)
		setFaultHeaders(header, p)
		for name := range header {
			ctx.SetHeader(name, header.Get(name))
		}
		return p
	}
})

// faultOf turns what huma found into a fault. Of a validation error only place and rule are used: its text repeats the
// offending value.
func faultOf(status int, message string, errs []error) *providers.Fault {
	for _, err := range errs {
		if fault, ok := errors.AsType[*providers.Fault](err); ok {
			return fault
		}
	}
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestTimeout,
		http.StatusUnsupportedMediaType, http.StatusNotAcceptable:
		for _, err := range errs {
			var detail huma.ErrorDetailer
			if errors.As(err, &detail) {
				return fieldFault(detail.ErrorDetail())
			}
		}
		if strings.HasSuffix(message, "body is required") {
			return providers.InvalidField("", "The request body is empty: a JSON object is wanted.")
		}
		return providers.InvalidField("", "The request is not valid.")
	case http.StatusNotFound:
		return providers.Faultf(providers.NotFound, "Not found.")
	case http.StatusRequestEntityTooLarge:
		return providers.Faultf(providers.TooLarge, "The request body is too large.")
	}
	if len(errs) > 0 && errs[0] != nil {
		return providers.AsFault(errs[0])
	}
	return providers.AsFault(errors.New(message))
}

// fieldFault names the field that huma found at fault. What is missing it finds in what it is missing from.
func fieldFault(d *huma.ErrorDetail) *providers.Fault {
	param := trimLocation(d.Location)
	if param == "body" {
		param = ""
	}
	if missing, ok := strings.CutPrefix(d.Message, "expected required property "); ok {
		name, _, _ := strings.Cut(missing, " ")
		param = strings.TrimPrefix(param+"."+name, ".")
		return providers.InvalidField(param, "Invalid request: '%s' is required.", param)
	}
	// The schema had no objection, so it is a number that does not fit. The rest of these words is Go's and the client's.
	if _, place, found := strings.Cut(d.Message, "into Go struct field "); found {
		place, _, _ = strings.Cut(place, " of type ")
		param = place[strings.LastIndexByte(place, '.')+1:]
		return providers.InvalidField(param, "Invalid value for %q: out of range.", param)
	}
	if param == "" {
		return providers.InvalidField("", "The request body is not valid: %s.", d.Message)
	}
	return providers.InvalidField(param, "Invalid value for %q: %s.", param, d.Message)
}

// trimLocation drops huma's first word (query, path, body) from a place.
func trimLocation(location string) string {
	if _, rest, found := strings.Cut(location, "."); found {
		return rest
	}
	return location
}

// logFault adds what a fault says beyond its kind to the access log line.
func logFault(attrs []slog.Attr, fault *providers.Fault) []slog.Attr {
	attrs = append(attrs, slog.String("fault", string(fault.Kind)))
	if fault.Param != "" {
		attrs = append(attrs, slog.String("param", fault.Param))
	}
	if fault.Err != nil {
		attrs = append(attrs, slog.Any("error", fault.Err))
	}
	return attrs
}
