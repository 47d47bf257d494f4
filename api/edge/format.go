package edge

import (
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/providers"
	"modelrelay/storage/limits"
)

// Format is a client's dialect, as far as the edge speaks it: how a request of it is recognized, and how its faults and limits
// are shown. Each format makes its own. nil functions mean what is usual.
type Format struct {
	Name providers.Format
	// Title begins the names of its faults in the OpenAPI document.
	Title string
	// Speaks reports by path and headers whether a request is of this format. The last of the formats has none.
	Speaks func(r *http.Request) bool
	// SDK reports by headers whether a client of this format sent a request, at a path that any format may have; nil: it does not matter.
	SDK func(r *http.Request) bool
	// Credential is the key at a place where this format alone has it, "" for none.
	Credential func(r *http.Request) string
	// RequestID names a header next to X-Request-Id in which the vendor's SDKs look for the request's id; "" for none.
	RequestID string
	// Status is that of a kind of fault; nil: Status.
	Status func(kind providers.Kind) int
	// Fault is the body of a fault.
	Fault func(fault *providers.Fault, status int, requestID string) any
	// FaultSchema declares it.
	FaultSchema func(huma.Registry) *huma.Schema
	// StreamEvent begins the event that ends a stream with a fault's body, up to that body; "" for what is usual.
	StreamEvent string
	// StreamFault is the body of a fault within a stream; nil: Fault.
	StreamFault func(fault *providers.Fault, status int, requestID string) any
	// BareError: behind that event the body follows once more, as the stream's last line and without "data:".
	BareError bool
	// Limit shows the state of a limit, of requests or tokens, in an answer's header; nil: as most vendors do.
	Limit func(header http.Header, name string, window limits.Window)
}

// formatOf returns the format of a request.
func (e *Edge) formatOf(r *http.Request) *Format {
	last := len(e.formats) - 1
	for _, format := range e.formats[:last] {
		if format.Speaks(r) {
			return format
		}
	}
	return e.formats[last]
}

// status is that of a kind of fault in the format.
func (f *Format) status(kind providers.Kind) int {
	if f.Status != nil {
		return f.Status(kind)
	}
	return Status(kind)
}

// ShowLimits shows in the answer's header the state of those of two limits that the token has.
func (x *Request) ShowLimits(requests, tokens limits.Window) {
	show := x.Format.Limit
	if show == nil {
		show = showLimit
	}
	if requests.Limit > 0 {
		show(x.Header(), "requests", requests)
	}
	if tokens.Limit > 0 {
		show(x.Header(), "tokens", tokens)
	}
}

func showLimit(header http.Header, name string, window limits.Window) {
	values := []string{strconv.Itoa(window.Limit), strconv.Itoa(window.Remaining), resetText(window.Reset)}
	for i, name := range limitHeaders(name) {
		header[name] = values[i : i+1 : i+1]
	}
}

// limitHeaders are the names of the headers of a limit: what it is, what is left of it, and when it is whole again.
func limitHeaders(name string) [3]string {
	if name == "tokens" {
		return [3]string{"X-Ratelimit-Limit-Tokens", "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens"}
	}
	return [3]string{"X-Ratelimit-Limit-Requests", "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests"}
}

// resetText is a duration as the vendors write it: "120ms", "1s", "6m0s".
func resetText(d time.Duration) string {
	if d > time.Second {
		return (d + time.Second - 1).Truncate(time.Second).String()
	}
	return (d + time.Millisecond - 1).Truncate(time.Millisecond).String()
}
