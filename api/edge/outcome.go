package edge

import (
	"time"

	"modelrelay/providers"
	"modelrelay/providers/pricing"
)

// Seen is one request that has ended, as counters get it. It names no token, and nothing that was said.
type Seen struct {
	Method string
	// Route is the pattern of the operation's path, "" where none matched.
	Route  string
	Status int
	Times

	// Operation is what a relayed call or conversation asked for, "" of everything else. Model is the public name, as the
	// caller wrote it; of a task's requests too.
	Operation providers.Operation
	Format    providers.Format
	Model     string
	// Channel answered, "" where none did.
	Channel string
	// Translated is the upstream's endpoint where that is of another format; zero where it is not.
	Translated providers.Endpoint
	// Stream: the answer was a stream of events.
	Stream bool
	Usage  providers.Usage
	Cost   pricing.Money
	// Fault is how it failed, "" where it did not.
	Fault providers.Kind
	// Refused names the limit that refused it, "" where none did.
	Refused Limit
}

// Times are how long a request took.
type Times struct {
	Took time.Duration
	// Sent is when the call was handed to the relay, and First when the upstream's answer began, both since the request
	// came; 0 where that did not happen.
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

// Outcome is what was found out about a request while it was served.
type Outcome struct {
	// Operation is what a relayed call or conversation asks for, "" of everything else. Model is the public name, as the
	// caller wrote it.
	Operation      providers.Operation
	Model, Channel string
	// Translated is the upstream's endpoint of a call whose answer was made of another format's; zero of others.
	Translated providers.Endpoint
	// Provider is what telemetry's conventions call the vendor, Task the id of the task that a create made.
	Provider, Task string
	Attempts       int
	// Trail is the way of a call through its channels.
	Trail providers.Trail
	// Sent is when a call was handed to the relay, and Answered when its answer began to come; zero where that did not
	// happen.
	Sent, Answered time.Time
	Stream         bool
	Bill
	// Refused is the limit that the request met, "" for none.
	Refused Limit
}

// Bill is what a call used, and what that comes to.
type Bill struct {
	Usage providers.Usage
	Cost  pricing.Money
	// Priced: the model has a price. Estimated: the usage is, since the upstream did not say.
	Priced, Estimated bool
}

// report records one request that has ended: in the log, the trace, the audit log, and the counters.
type report struct{ *Request }

// seen passes the request to the counters.
func (x report) seen() {
	e := x.edge
	if e.options.Seen == nil || x.Operation == Probe {
		return
	}
	o := &x.Outcome
	seen := Seen{
		Method: x.http.Method, Route: x.Operation, Status: x.shownStatus(),
		Times:     Times{Took: time.Since(x.Start), Sent: x.since(o.Sent), First: x.since(o.Answered)},
		Operation: o.Operation, Format: x.Format.Name, Model: o.Model, Channel: o.Channel, Translated: o.Translated,
		Stream: o.Stream, Usage: o.Usage, Cost: o.Cost, Refused: o.Refused,
	}
	if x.Fault != nil {
		seen.Fault = x.Fault.Kind
	}
	e.options.Seen(seen)
}

// since is how long after the request's arrival something happened, 0 where it did not.
func (x report) since(at time.Time) time.Duration {
	if at.IsZero() {
		return 0
	}
	return at.Sub(x.Start)
}

// shownStatus is the answer's status, or the one that stands for a client that left.
func (x report) shownStatus() int {
	if x.Fault != nil && x.Fault.Kind == providers.Canceled {
		return statusClientGone
	}
	return x.status
}
