package edge

import (
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/providers"
	"modelrelay/storage/limits"
)

// Format describes a client's wire format for the edge: how to recognize its requests, and how to render its faults and limits. Each
// format's package defines its own. Functions that may be nil have a default.
type Format struct {
	Name providers.Format
	// Title begins the names of its faults in the OpenAPI document.
	Title string
	// Speaks reports by path and headers whether a request is of this format. It is not called for the last format.
	Speaks func(r *http.Request) bool
	// SDK reports by headers whether an SDK of this format sent the request, for a path that several formats share; nil: never.
	SDK func(r *http.Request) bool
	// Credential returns the key at a place that only this format uses, "" for none.
	Credential func(r *http.Request) string
	// RequestID is the header, in addition to X-Request-Id, in which the vendor's SDKs expect the request's id; "" for none.
	RequestID string
	// Status returns the status of a kind of fault; nil: the function Status.
	Status func(kind providers.Kind) int
	// Fault returns the body of a fault.
	Fault func(fault *providers.Fault, status int, requestID string) any
	// FaultSchema declares that body.
	FaultSchema func(huma.Registry) *huma.Schema
	// StreamEvent is the name of the event that ends a failed stream; "": the event has no name.
	StreamEvent string
	// StreamFault returns the body of a fault within a stream; nil: Fault.
	StreamFault func(fault *providers.Fault, status int, requestID string) any
	// BareError: after that event, the stream's last line repeats the body without "data:".
	BareError bool
	// Limit adds the state of a limit, "requests" or "tokens", to an answer's header; nil: as most vendors do.
	Limit func(header http.Header, name string, window limits.Window)
}

func (e *Edge) formatOf(r *http.Request) *Format {
	last := len(e.formats) - 1
	for _, format := range e.formats[:last] {
		if format.Speaks(r) {
			return format
		}
	}
	return e.formats[last]
}

func (f *Format) status(kind providers.Kind) int {
	if f.Status != nil {
		return f.Status(kind)
	}
	return Status(kind)
}

// ShowLimits adds the state of the two limits to the answer's header, without a limit that the token does not have.
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

// limitHeaders returns the headers of a limit: its value, what remains of it, and the time until the window is unused.
func limitHeaders(name string) [3]string {
	if name == "tokens" {
		return [3]string{"X-Ratelimit-Limit-Tokens", "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens"}
	}
	return [3]string{"X-Ratelimit-Limit-Requests", "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests"}
}

// resetText formats a duration as the vendors do: "120ms", "1s", "6m0s".
func resetText(d time.Duration) string {
	if d > time.Second {
		return (d + time.Second - 1).Truncate(time.Second).String()
	}
	return (d + time.Millisecond - 1).Truncate(time.Millisecond).String()
}
