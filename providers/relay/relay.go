// Package relay sends a synchronous call to the channel that should take it, and to the next one while nothing has
// been answered yet. It passes the answer's bytes on as they come and counts tokens on the way.
//
// It knows no vendor and no client's format: vendors say in a table where their answers count, and channels of another
// format are reached through providers/translate. It must not import api, storage, workflows or activities.
package relay

import (
	"cmp"
	"log/slog"
	"math"
	"time"

	"go.opentelemetry.io/otel/trace"

	"modelrelay/providers"
	"modelrelay/providers/relay/usage"
	"modelrelay/providers/router"
	"modelrelay/providers/translate"
)

// Defaults of Options.
const (
	DefaultMaxAttempts = 3
	DefaultFirstByte   = 120 * time.Second
	DefaultIdle        = 120 * time.Second
	// DefaultSlotWait is how long a call waits for a slot where all channels that would do are full. Most calls are shorter, and
	// clients try again by themselves.
	DefaultSlotWait = 3 * time.Second
)

// Options tune a Relay; nil, and every zero field, means the defaults.
type Options struct {
	// MaxAttempts is how many requests one call may cost, the first included.
	MaxAttempts int
	// FirstByte bounds the wait of one attempt for the first byte of the answer's body, connecting included.
	FirstByte time.Duration
	// Idle bounds each wait for more bytes after the first. The time a client takes to accept them does not count.
	Idle time.Duration
	// SlotWait bounds the wait for a slot at channels that have as many calls in progress as they may.
	SlotWait time.Duration
	// SocketIdle is how long a realtime conversation may stay without a message from either side.
	SocketIdle time.Duration
	// SocketPing is how often each side of a conversation is asked for a sign of life, and how long it has for one.
	SocketPing time.Duration
	// SocketStall is how long either side may leave a piece of a message untaken.
	SocketStall time.Duration
	// Door makes calls of one format those of another, for the channels that the router says need it; nil: one without a
	// signature cache.
	Door *translate.Door
	// Origins stores the origin of each answer, for the calls that continue from it; nil: there is no store.
	Origins Origins
	// Log gets one line per attempt, at debug level for those of a call that did not fall over; nil means none.
	Log *slog.Logger
	// Tracer makes a span of each attempt of a call whose context has one; nil: no spans.
	Tracer trace.Tracer
	// Tried gets every attempt once its result is known; it must not wait. nil: attempts are not counted.
	Tried func(Attempt)
}

// Relay sends calls. It is safe for concurrent use.
type Relay struct {
	catalog  providers.Catalog
	picker   *picker
	most     int // attempts of one call
	log      *slog.Logger
	tracer   trace.Tracer
	tried    func(Attempt)
	door     *translate.Door
	origins  Origins
	counters map[counting]*usage.Shape
	waits    waits
	sockets  *sockets
	noUsage  refusers
}

// waits bound how long an upstream may be silent: before the first byte of an answer, and between two pieces of it.
type waits struct{ firstByte, idle time.Duration }

// withoutWaits are longer than any call: only its context bounds it.
func withoutWaits() waits { return waits{math.MaxInt64, math.MaxInt64} }

// counting names the table of counters of one vendor's endpoint.
type counting struct {
	vendor   string
	endpoint providers.Endpoint
}

// New returns a relay over the channels the router picks, whose vendors the catalog lists.
func New(channels *router.Router, catalog providers.Catalog, opts *Options) *Relay {
	picker := &picker{router: channels, patience: DefaultSlotWait, slots: make(map[string]*slots)}
	r := &Relay{
		catalog: catalog, picker: picker, most: DefaultMaxAttempts, log: slog.New(slog.DiscardHandler),
		door:     new(translate.Door),
		counters: make(map[counting]*usage.Shape),
		waits:    waits{DefaultFirstByte, DefaultIdle},
		sockets:  newSockets(opts),
	}
	if opts != nil {
		r.waits.firstByte = cmp.Or(max(opts.FirstByte, 0), r.waits.firstByte)
		r.waits.idle = cmp.Or(max(opts.Idle, 0), r.waits.idle)
		picker.patience = cmp.Or(max(opts.SlotWait, 0), picker.patience)
		r.most = cmp.Or(max(opts.MaxAttempts, 0), r.most)
		if opts.Log != nil {
			r.log = opts.Log
		}
		if opts.Door != nil {
			r.door = opts.Door
		}
		r.origins, r.tracer, r.tried = opts.Origins, opts.Tracer, opts.Tried
	}
	for name, vendor := range catalog {
		for endpoint, shape := range vendor.Usage {
			if compiled := usage.Compile(shape); compiled != nil {
				r.counters[counting{name, endpoint}] = compiled
			}
		}
	}
	return r
}

// Waiting is how many calls wait for a slot at the channel.
func (r *Relay) Waiting(channel string) int { return r.picker.waiting(channel) }
