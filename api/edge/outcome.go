package edge

import (
	"time"

	"modelrelay/providers"
	"modelrelay/providers/pricing"
)

// Seen is an ended request for counters. It names no token and has no text of prompts or answers.
type Seen struct {
	Method string
	// Route is the pattern of the operation's path, "" if none matched.
	Route  string
	Status int
	Times

	Format providers.Format
	// Fault is the kind of its fault, "" for none.
	Fault providers.Kind
	Counted
}

// Times are the durations of a request.
type Times struct {
	Took time.Duration
	// Sent is the time until the call was passed to the relay, and First the time until the upstream's answer began, both from the arrival
	// of the request. 0: that did not happen.
	Sent, First time.Duration
}

// Limit is one of a token's limits.
type Limit string

// The limits that refuse requests.
const (
	LimitRequests    Limit = "requests"
	LimitTokens      Limit = "tokens"
	LimitConcurrency Limit = "concurrency"
	LimitSockets     Limit = "sockets"
	LimitTasks       Limit = "tasks"
	LimitReads       Limit = "reads"
	LimitWatchers    Limit = "watchers"
	LimitBudget      Limit = "budget"
	LimitBodies      Limit = "bodies"
)

// Counted is what the handlers of a request record for the counters.
type Counted struct {
	// Operation is that of a relayed call or conversation, "" of any other request. Model is the public name as the caller wrote it, also
	// for requests about tasks.
	Operation providers.Operation
	Model     string
	// Channel is the channel that answered, "" for none.
	Channel string
	// Translated is the upstream's endpoint if it has another format; else zero.
	Translated providers.Endpoint
	// Stream: the answer was a stream of events.
	Stream bool
	Bill
	// Refused is the limit that refused the request, "" for none.
	Refused Limit
}

// Outcome is what the handlers of a request record about it.
type Outcome struct {
	Counted

	// Provider is the vendor's name in OpenTelemetry's conventions. Task is the id of the task that a create makes, or that a worker serves.
	Provider, Task string
	Attempts       int
	// Trail has the attempts of a call.
	Trail providers.Trail
	// Sent is when a call was passed to the relay, and Answered when its answer began. Zero: that did not happen.
	Sent, Answered time.Time
}

// Bill is the usage of a call and its cost.
type Bill struct {
	Usage providers.Usage
	Cost  pricing.Money
	// Priced: the model has a price. Estimated: the usage is estimated, because the upstream did not report it.
	Priced, Estimated bool
}

// report records an ended request in the log, the trace, the audit log, the counters and the call log.
type report struct{ *Request }

func (x report) seen() {
	e := x.edge
	if e.options.Seen == nil || x.Operation == Probe {
		return
	}
	o := &x.Outcome
	seen := Seen{
		Method: x.http.Method, Route: x.Operation, Status: x.shownStatus(),
		Times:  Times{Took: time.Since(x.Start), Sent: x.since(o.Sent), First: x.since(o.Answered)},
		Format: x.Format.Name, Counted: o.Counted,
	}
	if x.Fault != nil {
		seen.Fault = x.Fault.Kind
	}
	e.options.Seen(seen)
}

// since returns the time from the arrival of the request to at; 0 if at is zero.
func (x report) since(at time.Time) time.Duration {
	if at.IsZero() {
		return 0
	}
	return at.Sub(x.Start)
}

// shownStatus returns the status of the answer, or statusClientGone if the client left before it.
func (x report) shownStatus() int {
	if x.Fault != nil && x.Fault.Kind == providers.Canceled {
		return statusClientGone
	}
	return x.status
}
