// Package edge handles the part that all requests have in common. It gives a request an id, a log line and a trace, finds its caller,
// checks the caller's permission, reads the body within the memory for bodies, and renders faults in the client's format.
//
// It names no format and no operation: New receives the formats as tables of functions. It must not know what an operation does or costs.
package edge

import (
	"cmp"
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

// Options configure an Edge, which closes none of them. Tokens is required.
type Options struct {
	Tokens Tokens
	// Proxies are the networks of proxies whose X-Forwarded-For and Forwarded are trusted; none: a request's source is its connection's.
	Proxies Proxies
	// PublicURL is the address at which clients reach the server, without a slash at the end; "": the host of each request.
	PublicURL string
	// Origins are the origins whose pages may call /v1 and /v1beta from a browser, "*" for all; none: only pages of this server.
	Origins []string
	// MaxBody is the largest request body in bytes; 0 means DefaultMaxBody.
	MaxBody int64
	// BodyMemory bounds the request bodies in memory, in bytes; those of one token may use half of it. 0 means DefaultBodyMemory. It should be
	// at least four times MaxBody.
	BodyMemory int64
	// BodyTimeout is how long a request body may take to arrive; 0 means DefaultBodyTimeout.
	BodyTimeout time.Duration
	// WriteTimeout is how long a client may leave an answer's next bytes unread; 0 means DefaultWriteTimeout.
	WriteTimeout time.Duration
	// Tracer starts a span for each request except probes; nil: no spans.
	Tracer trace.Tracer
	// Seen is called with every ended request except probes, in the goroutine that served it, and must not block; nil: none is counted.
	Seen func(Seen)
	// Called receives every call; nil: no call log.
	Called Called
	// Acted is called with each action of an operator, also a refused one, before the answer is complete; its context may have ended.
	// nil: there is no audit log.
	Acted func(context.Context, audit.Entry)
	// Log receives one info line per request; nil: no log.
	Log *slog.Logger
}

// Edge is the state that the requests of one server share. It is safe for concurrent use.
type Edge struct {
	options Options
	// formats are tried in this order; the last one has all other requests.
	formats []*Format
	callers *callers
	// reads counts the reads of each token. open counts its open requests by kind.
	reads fair.Rate[string]
	open  [openKinds]*fair.Semaphore[string]
	// wrongKeys counts the wrong keys of each network.
	wrongKeys fair.Rate[netip.Prefix]
	// internalKey is the prefix of the key of an internal caller. It is random and never leaves the process.
	internalKey string
	bodies      *fair.Semaphore[string] // in bytes, of each token
	// backgroundBodies counts the bodies of background calls, which bodies counts too.
	backgroundBodies *fair.Semaphore[string]
	discards         *fair.Semaphore[string] // bodies of refused requests, of each token or network
	records          sync.Pool               // of *calllog.Record
	requests         atomic.Int64            // running
	draining         atomic.Bool
	stopping         chan struct{} // closed once draining
}

// New returns an Edge for the formats. The last format has the requests of no other format. New starts no goroutine.
func New(o Options, formats ...*Format) *Edge {
	hookFaults()
	o.MaxBody, o.BodyMemory = cmp.Or(o.MaxBody, DefaultMaxBody), cmp.Or(o.BodyMemory, DefaultBodyMemory)
	o.BodyTimeout, o.WriteTimeout = cmp.Or(o.BodyTimeout, DefaultBodyTimeout), cmp.Or(o.WriteTimeout, DefaultWriteTimeout)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	e := &Edge{
		options: o, formats: formats, internalKey: rand.Text(), stopping: make(chan struct{}),
		bodies: bodyMemory(o.BodyMemory), backgroundBodies: bodyMemory(o.BodyMemory / backgroundShare),
		discards: fair.New[string](fair.Bounds{Total: discardsAtOnce, Share: discardsOfOne}),
	}
	e.callers = &callers{tokens: make(map[string]*callerState), find: e.callerNow}
	for kind := range e.open {
		e.open[kind] = fair.New[string](fair.Bounds{Total: math.MaxInt64}) // each token has its own bound
	}
	return e
}

// Log returns the logger of the edge; it is never nil.
func (e *Edge) Log() *slog.Logger { return e.options.Log }

// Requests returns the number of running requests.
func (e *Edge) Requests() int64 { return e.requests.Load() }

// BodyMemory returns the size of the request bodies in memory, in bytes.
func (e *Edge) BodyMemory() int64 { return e.bodies.Taken() }

// Speak sets the format of the request's answer.
func (e *Edge) Speak(x *Request, name providers.Format) { x.Format = e.formatNamed(name) }

func (e *Edge) formatNamed(name providers.Format) *Format {
	for _, format := range e.formats {
		if format.Name == name {
			return format
		}
	}
	return e.formats[len(e.formats)-1]
}

// Drain closes Stopping. Requests are still served.
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

// NotFound answers a path without an operation, in the format of the SDK that sent the request.
func NotFound(w http.ResponseWriter, r *http.Request) {
	x := At(w)
	x.FormatBySDK(r)
	x.Fail(NothingHere())
}

// FormatBySDK sets the format of the SDK that sent the request, for a path that belongs to no format.
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

// NothingHere returns the fault of a path without an operation. The usual cause is a wrong base URL.
func NothingHere() *providers.Fault {
	return providers.Faultf(providers.NotFound, "There is nothing at this path. /docs lists all paths.")
}
