// Package edge is what every request passes on its way in and its answer on the way out: it gives the request an id, a log
// line and a trace, finds its caller, checks whether the caller may use the operation, reads its body within the memory of all
// bodies, and renders faults in the client's format. Operations are declared through its groups.
//
// It names no format and no operation: formats are tables of functions that the composer gives. It must not know what an
// operation does, nor what one costs.
package edge

import (
	"context"
	"crypto/rand"
	"log/slog"
	"math"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"modelrelay/providers"
	"modelrelay/storage/audit"
	"modelrelay/storage/fair"
)

// Defaults of Options.
const (
	DefaultMaxBody      = 64 << 20
	DefaultBodyTimeout  = 5 * time.Minute
	DefaultWriteTimeout = time.Minute
)

// Options are what an Edge works with. Tokens are needed to serve. They stay the caller's.
type Options struct {
	Tokens Tokens
	// Proxies are the networks of reverse proxies whose X-Forwarded-For and Forwarded name the address that a request
	// comes from; none: the connection's own address counts.
	Proxies Proxies
	// PublicURL is the address at which clients reach the server, without a slash at the end; "": the host of each request.
	PublicURL string
	// Origins are those whose pages may call /v1 and /v1beta from a browser, "*" for every one; none: only pages of this
	// server's own.
	Origins []string
	// MaxBody is the largest request body in bytes; 0 means DefaultMaxBody.
	MaxBody int64
	// BodyMemory is what all request bodies under way may hold together, in bytes, and half of it what those of one token
	// may; 0 means DefaultBodyMemory. It should be four times MaxBody at least.
	BodyMemory int64
	// BodyTimeout is how long a request body may take to arrive; 0 means DefaultBodyTimeout.
	BodyTimeout time.Duration
	// WriteTimeout is how long a client may leave an answer's next bytes unread; 0 means DefaultWriteTimeout.
	WriteTimeout time.Duration
	// Tracer makes a span of each request but probes; nil: no spans.
	Tracer trace.Tracer
	// Seen is called with every request that has ended but probes, in the goroutine that served it; it must not wait. nil:
	// requests are not counted.
	Seen func(Seen)
	// Called gets every call; nil: there is no log of calls.
	Called Called
	// Acted is called with what operators do or try, before the answer is complete; its context may have ended. nil: there is
	// no audit log.
	Acted func(context.Context, audit.Entry)
	// Log takes one info line per request; nil is silent.
	Log *slog.Logger
}

// Edge follows the requests of one server. It is safe for concurrent use.
type Edge struct {
	options Options
	// formats are asked in this order whether a request is theirs; the last one has the rest.
	formats []*Format
	callers *callers
	// reads are those of each token that are no calls, open what each has open of a kind.
	reads fair.Rate[string]
	open  [openKinds]*fair.Semaphore[string]
	// wrongKeys are those of each network.
	wrongKeys fair.Rate[netip.Prefix]
	// internalKey begins what replaces the key of an internal caller, which has none. It is random and never leaves the process.
	internalKey string
	bodies      *fair.Semaphore[string] // in bytes, of each token
	// backgroundBodies are those of background calls, which are in bodies too.
	backgroundBodies *fair.Semaphore[string]
	discards         *fair.Semaphore[string] // bodies of refused requests, of each token or network
	records          sync.Pool               // of *calllog.Record
	requests         atomic.Int64            // under way
	draining         atomic.Bool
	stopping         chan struct{} // closed once draining
}

// New makes an edge for formats, of which the last one has the requests that are no other's. It starts nothing.
func New(o Options, formats ...*Format) *Edge {
	hookFaults()
	o.MaxBody, o.BodyMemory = orDefault(o.MaxBody, DefaultMaxBody), orDefault(o.BodyMemory, DefaultBodyMemory)
	o.BodyTimeout, o.WriteTimeout = orDefault(o.BodyTimeout, DefaultBodyTimeout), orDefault(o.WriteTimeout, DefaultWriteTimeout)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	e := &Edge{
		options: o, formats: formats, internalKey: rand.Text(), stopping: make(chan struct{}),
		bodies: bodyMemory(o.BodyMemory), backgroundBodies: bodyMemory(o.BodyMemory / backgroundShare), discards: fair.New[string](fair.Bounds{Total: discardsAtOnce, Share: discardsOfOne}),
	}
	e.callers = newCallers(e.callerOf)
	for kind := range e.open {
		e.open[kind] = fair.New[string](fair.Bounds{Total: math.MaxInt64}) // each token has a bound of its own
	}
	return e
}

func orDefault[N int64 | time.Duration](n, otherwise N) N {
	if n > 0 {
		return n
	}
	return otherwise
}

// Log is where the edge logs; it is never nil.
func (e *Edge) Log() *slog.Logger { return e.options.Log }

// Requests is how many requests are under way.
func (e *Edge) Requests() int64 { return e.requests.Load() }

// BodyMemory is what the request bodies under way hold, in bytes.
func (e *Edge) BodyMemory() int64 { return e.bodies.Taken() }

// Speak makes a format that of the request's answer.
func (e *Edge) Speak(x *Request, name providers.Format) { x.Format = e.formatNamed(name) }

func (e *Edge) formatNamed(name providers.Format) *Format {
	for _, format := range e.formats {
		if format.Name == name {
			return format
		}
	}
	return e.formats[len(e.formats)-1]
}

// Drain closes Stopping. Requests go on being served.
func (e *Edge) Drain() {
	if !e.draining.Swap(true) {
		close(e.stopping)
	}
}

// Draining reports whether the process is stopping.
func (e *Edge) Draining() bool { return e.draining.Load() }

// Stopping is closed when the process begins to stop.
func (e *Edge) Stopping() <-chan struct{} { return e.stopping }

// UntilStopping returns a context that also ends when the process stops. done must be called.
func (e *Edge) UntilStopping(ctx context.Context) (until context.Context, done func()) {
	until, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-e.stopping:
			cancel()
		case <-until.Done():
		}
	}()
	return until, func() {
		cancel()
		<-ended
	}
}

// NotFound answers that there is nothing at the path, in the format of the SDK that sent the request.
func NotFound(w http.ResponseWriter, r *http.Request) {
	x := At(w)
	x.FormatBySDK(r)
	x.Fail(NothingHere())
}

// FormatBySDK makes the format that of the SDK that sent the request, for a path that belongs to no format.
func (x *Request) FormatBySDK(r *http.Request) {
	if x.Format != x.edge.formats[len(x.edge.formats)-1] {
		return
	}
	for _, format := range x.edge.formats {
		if format.SDK != nil && format.SDK(r) {
			x.Format = format
			return
		}
	}
}

// NothingHere is the fault of a path without an operation. Most who read it have a wrong base URL.
func NothingHere() *providers.Fault {
	return providers.Faultf(providers.NotFound, "There is nothing at this path. /docs lists the paths that there are.")
}
