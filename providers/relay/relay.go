// Package relay sends a synchronous call to the channel that the router selects, and to the next one until an answer begins. It copies
// the answer's bytes as they arrive and counts tokens.
//
// It contains no code of a vendor or a client's format: a vendor's table defines where its answers contain usage, and providers/translate
// translates calls for channels of another format. It must not import api, storage, workflows or activities.
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
	"modelrelay/providers/upstream"
)

// Defaults of Options.
const (
	DefaultMaxAttempts = 3
	DefaultFirstByte   = 120 * time.Second
	DefaultIdle        = 120 * time.Second
	// DefaultSlotWait is how long a call waits for a slot if all suitable channels are full. Most calls end sooner, and clients retry.
	DefaultSlotWait = 3 * time.Second
)

// Options tune a Relay; nil, and every zero field, means the defaults.
type Options struct {
	// MaxAttempts bounds the requests of one call, including the first.
	MaxAttempts int
	// FirstByte bounds the wait of one attempt for the first byte of the answer's body, including the connection.
	FirstByte time.Duration
	// Idle bounds each wait for more bytes after the first. The time a client takes to accept them does not count.
	Idle time.Duration
	// SlotWait bounds the wait for a slot at full channels.
	SlotWait time.Duration
	// SocketIdle is the longest time of a realtime conversation without a message from either side.
	SocketIdle time.Duration
	// SocketPing is the interval of pings to each side of a conversation, and the time that a side has to answer one.
	SocketPing time.Duration
	// SocketStall is how long either side may delay the acceptance of a piece of a message.
	SocketStall time.Duration
	// Translator translates calls for channels of another format; nil: one without a signature cache.
	Translator *translate.Translator
	// Origins stores the origin of each answer, for the calls that continue from it; nil: there is no store.
	Origins Origins
	// Log gets one line per attempt, at debug level for those of a call that did not fall over; nil means none.
	Log *slog.Logger
	// Tracer makes a span of each attempt of a call whose context has a span; nil: no spans.
	Tracer trace.Tracer
	// Tried receives every attempt after its end, with its number in the call, from 1. It must not wait. nil: attempts are not counted.
	Tried func(number int, attempt providers.Try)
}

// Relay sends calls. It is safe for concurrent use.
type Relay struct {
	catalog    providers.Catalog
	picker     *picker
	most       int // most attempts of one call
	log        *slog.Logger
	tracer     trace.Tracer
	tried      func(int, providers.Try)
	translator *translate.Translator
	origins    Origins
	counters   map[counting]*usage.Shape
	waits      waits
	sockets    *sockets
	noUsage    refusers
}

// waits bound the silence of an upstream: before the first byte of an answer, and between two pieces of it.
type waits struct{ firstByte, idle time.Duration }

// withoutWaits returns waits that are longer than any call: only its context bounds it.
func withoutWaits() waits { return waits{math.MaxInt64, math.MaxInt64} }

// counting is the key of the counters of one vendor's endpoint.
type counting struct {
	vendor   string
	endpoint providers.Endpoint
}

// New returns a relay over the channels of the router. The catalog has their vendors.
func New(channels *router.Router, catalog providers.Catalog, opts *Options) *Relay {
	if opts == nil {
		opts = new(Options)
	}
	or := func(given, usual time.Duration) time.Duration { return cmp.Or(max(given, 0), usual) }
	r := &Relay{
		catalog:    catalog,
		picker:     &picker{router: channels, slotWait: or(opts.SlotWait, DefaultSlotWait), slots: make(map[string]*slots)},
		most:       cmp.Or(max(opts.MaxAttempts, 0), DefaultMaxAttempts),
		log:        cmp.Or(opts.Log, slog.New(slog.DiscardHandler)),
		tracer:     opts.Tracer,
		tried:      opts.Tried,
		translator: cmp.Or(opts.Translator, new(translate.Translator)),
		origins:    opts.Origins,
		counters:   make(map[counting]*usage.Shape),
		waits:      waits{firstByte: or(opts.FirstByte, DefaultFirstByte), idle: or(opts.Idle, DefaultIdle)},
		sockets: &sockets{
			idle: or(opts.SocketIdle, DefaultSocketIdle), ping: or(opts.SocketPing, DefaultSocketPing),
			carrier: upstream.Carrier{Stall: or(opts.SocketStall, DefaultSocketStall)},
		},
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

// Waiting returns the number of calls that wait for a slot at the channel.
func (r *Relay) Waiting(channel string) int { return r.picker.waiting(channel) }
