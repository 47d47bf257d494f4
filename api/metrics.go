package api

import (
	"net/http"
	"sync/atomic"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/pricing"
)

// Seen is one request that is over, as those who count see it. It names no token, and nothing that was said.
type Seen struct {
	Method string
	// Route is the pattern of the operation's path, "" where none matched.
	Route  string
	Status int
	Took   time.Duration

	// Operation is what a relayed call or conversation asked for, "" of everything else. Model is the public name, as the
	// caller wrote it; of a task's requests too.
	Operation providers.Operation
	Format    providers.Format
	Model     string
	// Channel answered, "" where none did, after so many attempts.
	Channel  string
	Attempts int
	// Sent is when the call was handed to the relay, and First when the upstream's answer began, both since the request
	// came; 0 where that did not happen.
	Sent, First time.Duration
	// Stream: the answer was a stream of events.
	Stream bool
	Usage  providers.Usage
	Cost   pricing.Money
	// Fault is how it failed, "" where it did not.
	Fault providers.Kind
	// Refused names the limit that refused it, "" where none did.
	Refused Limit
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

// Open is what a server is at this moment.
type Open struct {
	// Requests are all of them: the others and, for a moment, probes are among them.
	Requests int64
	// Sockets are realtime conversations, Watchers the event streams of tasks.
	Sockets, Watchers int64
	// Connections are those of clients, idle ones too. Full tells that no other is accepted; TurnedAway counts those that
	// were closed at once since the start, because their network held its share.
	Connections, TurnedAway int64
	Full                    bool
}

// open counts what is open.
type open struct{ requests, sockets, watchers, connections, turnedAway, full atomic.Int64 }

// Open tells what the server is serving now.
func (s *Server) Open() Open {
	return Open{
		Requests: s.open.requests.Load(), Sockets: s.open.sockets.Load(), Watchers: s.open.watchers.Load(),
		Connections: s.open.connections.Load(), TurnedAway: s.open.turnedAway.Load(), Full: s.open.full.Load() > 0,
	}
}

// hold counts one more until the returned function is called.
func hold(n *atomic.Int64) (done func()) {
	n.Add(1)
	return func() { n.Add(-1) }
}

// tell shows a request that is over to whoever counts.
func (s *Server) tell(r *http.Request, x *exchange) {
	if s.seen == nil || x.operation == probe {
		return
	}
	seen := Seen{
		Method: r.Method, Route: x.operation, Status: x.shownStatus(), Took: time.Since(x.start),
		Operation: x.endpoint.Operation, Format: x.format, Model: x.model, Channel: x.channel, Attempts: x.attempts,
		Sent: x.since(x.sent), First: x.since(x.answered), Stream: x.stream, Usage: x.usage, Cost: x.cost, Refused: x.refused,
	}
	if x.fault != nil {
		seen.Fault = x.fault.Kind
	}
	s.seen(seen)
}

// since is how long after the request's arrival something happened, 0 where it did not.
func (x *exchange) since(at time.Time) time.Duration {
	if at.IsZero() {
		return 0
	}
	return at.Sub(x.start)
}

// shownStatus is the answer's status, or the one that stands for a client that left.
func (x *exchange) shownStatus() int {
	if x.fault != nil && x.fault.Kind == providers.Canceled {
		return statusClientGone
	}
	return x.status
}
