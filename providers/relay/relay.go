// Package relay sends a synchronous call to the channel that should take it, and to the next one while nothing has
// been answered yet. It passes the answer's bytes on as they come and counts tokens on the way.
//
// It knows no vendor and no client's format: vendors say in a table where their answers count, and channels of another
// format are reached through providers/translate. It must not import api, storage, workflows or activities.
package relay

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	"modelrelay/providers"
	"modelrelay/providers/relay/seats"
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
	// DefaultSeatWait is how long a call waits for a seat where all channels that would do are full. Most calls are shorter, and
	// clients try again by themselves.
	DefaultSeatWait = 3 * time.Second
)

// Options tune a Relay; nil, and every zero field, means the defaults.
type Options struct {
	// MaxAttempts is how many requests one call may cost, the first included.
	MaxAttempts int
	// FirstByte bounds the wait of one attempt for the first byte of the answer's body, connecting included.
	FirstByte time.Duration
	// Idle bounds each wait for more bytes after the first. The time a client takes to accept them does not count.
	Idle time.Duration
	// SeatWait bounds the wait for a seat at channels that have as many calls under way as they may.
	SeatWait time.Duration
	// SocketIdle is how long a realtime conversation may stay without a message from either side.
	SocketIdle time.Duration
	// SocketPing is how often each side of a conversation is asked for a sign of life, and how long it has for one.
	SocketPing time.Duration
	// SocketStall is how long either side may leave a piece of a message untaken.
	SocketStall time.Duration
	// Door makes calls of one format those of another, for the channels that the router says need it; nil: one that remembers
	// nothing.
	Door *translate.Door
	// Makers remembers who made which answer, for the calls that go on from it; nil: nobody does.
	Makers Makers
	// Log gets one line per attempt, at debug level for those of a call that did not fall over; nil means none.
	Log *slog.Logger
	// Tracer makes a span of each attempt of a call whose context has one; nil: no spans.
	Tracer trace.Tracer
	// Tried is told of every attempt once it is clear how it went; it must not wait. nil: nobody counts.
	Tried func(Attempt)
}

// Attempt is one request of a call, or one dial of a conversation.
type Attempt struct {
	Channel string
	// Number counts the call's attempts from 1: above that the call fell over.
	Number int
	// Fault is how it failed, "" where its answer began.
	Fault providers.Kind
}

// Relay sends calls. It is safe for concurrent use.
type Relay struct {
	router    *router.Router
	catalog   providers.Catalog
	attempts  int
	firstByte time.Duration
	idle      time.Duration
	makers    Makers
	door      *translate.Door
	log       *slog.Logger
	tracer    trace.Tracer
	tried     func(Attempt)
	counters  map[counting]*usage.Shape
	seats     seats.Seats
	seatWait  time.Duration

	socketIdle time.Duration
	socketPing time.Duration
	carrier    upstream.Carrier
}

// counting names the table of counters of one vendor's endpoint.
type counting struct {
	vendor   string
	endpoint providers.Endpoint
}

// New returns a relay over the channels the router picks, whose vendors the catalog lists.
func New(channels *router.Router, catalog providers.Catalog, opts *Options) *Relay {
	r := &Relay{
		router: channels, catalog: catalog,
		attempts: DefaultMaxAttempts, firstByte: DefaultFirstByte, idle: DefaultIdle, seatWait: DefaultSeatWait,
		log:      slog.New(slog.DiscardHandler),
		door:     translate.New(nil),
		counters: make(map[counting]*usage.Shape),

		socketIdle: DefaultSocketIdle, socketPing: DefaultSocketPing, carrier: upstream.Carrier{Stall: DefaultSocketStall},
	}
	if opts != nil {
		r.setSocketOptions(opts)
		if opts.MaxAttempts > 0 {
			r.attempts = opts.MaxAttempts
		}
		if opts.FirstByte > 0 {
			r.firstByte = opts.FirstByte
		}
		if opts.Idle > 0 {
			r.idle = opts.Idle
		}
		if opts.SeatWait > 0 {
			r.seatWait = opts.SeatWait
		}
		if opts.Log != nil {
			r.log = opts.Log
		}
		if opts.Door != nil {
			r.door = opts.Door
		}
		r.makers, r.tracer, r.tried = opts.Makers, opts.Tracer, opts.Tried
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

// Do sends the call for a token of the group and returns the first answer that begins. Until then it falls over: to
// another key when one is refused or limited, to another channel when one cannot be reached, answers 5xx or nonsense,
// or lets its first byte wait too long. The error is a *providers.Fault, that of the last attempt; it is held by a *Left
// where ctx ended when an upstream had all of the call. ctx ends the upstream request at once, also while the body is read;
// a call so ended blames no channel.
//
// The caller closes the Answer's body. It must not change or reuse call.Body afterwards, not even after an error: the
// transport may still be reading it.
func (r *Relay) Do(ctx context.Context, group string, call providers.Call) (*Answer, error) {
	want := router.Want{
		Group: group, Token: call.Token, Model: call.Model, Asked: call.Asked, Endpoint: call.Endpoint, OpenValues: call.OpenValues, Affinity: call.Affinity,
	}
	if err := r.findMaker(ctx, call, &want); err != nil {
		return nil, err
	}
	if own := translate.Without(call); own != nil {
		call.Edits = append(slices.Clip(call.Edits), own...)
	}
	s := sending{relay: r, call: call}
	took, err := r.fallOver(ctx, want, attempts{call.RequestID, call.Trail, s.prepare, s.send})
	if err != nil {
		return nil, err
	}
	s.answer.Attempts = took
	return s.answer, nil
}

// sending is one call, attempt by attempt.
type sending struct {
	relay *Relay
	call  providers.Call
	// translation is that of the next attempt, nil where the channel takes the call as it is.
	translation *translate.Translation
	answer      *Answer
}

// prepare is that of attempts.
func (s *sending) prepare(ctx context.Context, to router.Pick) (at providers.Endpoint, answered bool, fault *providers.Fault) {
	s.translation = nil
	if !to.Translated {
		return s.call.Endpoint, false, nil
	}
	vendor := s.relay.catalog[to.Channel.Vendor]
	s.translation, fault = s.relay.door.Translate(ctx, s.call, to.Target, vendor.Takes)
	switch {
	case fault != nil:
		return at, false, fault
	case s.translation.Counted != nil:
		s.answer = counted(to, vendor, s.translation)
		return at, true, nil
	default:
		return s.translation.Call.Endpoint, false, nil
	}
}

// send is that of attempts.
func (s *sending) send(ctx context.Context, to router.Pick, span *upstream.Span) (said reply, fault *providers.Fault) {
	if s.answer, fault = s.relay.attempt(ctx, to, s.call, s.translation, span); fault != nil {
		return said, fault
	}
	return reply{s.answer.Status, s.answer.RequestID}, nil
}

// Left is the error of a call that was given up when an upstream had all of it, which may want to be paid for the answer
// that nobody waits for.
type Left struct {
	// Channel is the one that has it, and Provider what telemetry's conventions call its vendor.
	Channel, Provider string
	// Attempts is how many requests the call took, that one included.
	Attempts int
	// Fault says why it was given up.
	Fault *providers.Fault
}

// Error implements error.
func (l *Left) Error() string { return l.Fault.Error() }

// Unwrap returns the fault.
func (l *Left) Unwrap() error { return l.Fault }

// reply is what an upstream said of an attempt that succeeded: the status, and what it calls the request.
type reply struct {
	status    int
	requestID string
}

// attempts are what is done with the targets that the router picks, one after the other.
type attempts struct {
	// requestID is the client's, trail is told of each attempt.
	requestID string
	trail     *providers.Trail
	// prepare says which endpoint of the target is asked, or that the call cannot be sent there, which is no attempt. answered:
	// there is an answer already, and nothing to ask.
	prepare func(ctx context.Context, to router.Pick) (at providers.Endpoint, answered bool, fault *providers.Fault)
	// send sends to the target. The context and the span are the attempt's; it ends the span where there is no fault.
	send func(ctx context.Context, to router.Pick, span *upstream.Span) (said reply, fault *providers.Fault)
}

// fallOver makes attempts at the targets the router picks until one succeeds, and tells the router, the log and the
// trace of each. It returns how many it took. The error is the last attempt's fault; where there was none, the first of those
// that say that the call cannot be sent, or the router's.
func (r *Relay) fallOver(ctx context.Context, want router.Want, try attempts) (int, error) {
	var to router.Pick
	whole := false
	defer func() {
		if !whole && to.Done != nil {
			to.Done() // a panic: a seat that nobody gives back would be lost for good
		}
	}()
	took, err := r.attemptAll(ctx, want, try, &to)
	whole = true
	return took, err
}

// attemptAll makes fallOver's attempts. underway is the target of the latest.
func (r *Relay) attemptAll(ctx context.Context, want router.Want, try attempts, underway *router.Pick) (int, error) {
	var last, makers, unfit *providers.Fault
	for attempts := 1; attempts <= r.attempts; attempts++ {
		to, err := r.pick(ctx, want)
		*underway = to
		if err != nil && ctx.Err() != nil {
			return 0, err
		}
		if err != nil {
			for _, fault := range []*providers.Fault{last, unfit} {
				if fault != nil {
					return 0, fault
				}
			}
			return 0, err
		}
		at, answered, refused := try.prepare(ctx, to)
		if answered || refused != nil {
			r.unasked(to)
		}
		if answered {
			return attempts, nil
		}
		if refused != nil {
			want.Except = append(want.Except, to.Channel.Name)
			if unfit == nil {
				unfit = refused
			}
			attempts--
			continue
		}
		began := time.Now()
		step := upstream.Step{Does: at.Operation.Convention(), Operation: at.Operation, Attempt: attempts}
		if at != want.Endpoint {
			step.From, step.To = want.Endpoint, at
		}
		traced, span := upstream.StartSpan(ctx, r.tracer, r.catalog[to.Channel.Vendor], to.Target, step)
		said, fault := try.send(traced, to, span)
		if ctx.Err() != nil && fault != nil {
			delivered := fault.Delivered
			fault = providers.AsFault(context.Cause(ctx))
			span.End(fault)
			r.router.Report(to, &providers.Fault{Kind: providers.Canceled})
			r.note(ctx, try, to, tried{attempts, time.Since(began), said}, fault)
			if delivered {
				return 0, &Left{Channel: to.Channel.Name, Provider: r.catalog[to.Channel.Vendor].Convention(), Attempts: attempts, Fault: fault}
			}
			return 0, fault
		}
		r.router.Report(to, fault)
		r.note(ctx, try, to, tried{attempts, time.Since(began), said}, fault)
		if fault == nil {
			return attempts, nil
		}
		span.End(fault)
		last = fault
		if !fault.Retryable() {
			if makers != nil {
				last = makers // that nobody else can go on from its answer is no news, and no reason to give up
			}
			break
		}
		if to.Ref() == want.Maker {
			makers = fault
		}
		want.Blamed = want.Blamed || fault.Blame == providers.BlameChannel || fault.Key == providers.KeyForbidden
		switch fault.Blame {
		case providers.BlameKey:
			want.ExceptKeys = append(want.ExceptKeys, to.Ref())
		case providers.BlameChannel:
			want.Except = append(want.Except, to.Channel.Name)
		case providers.BlameNone: // nobody's fault, such as a kept connection that had just ended: the same may do
		}
	}
	return 0, last
}

// attempt sends the call to one target and waits for the first byte of the answer. A channel of another format gets it through
// its translation, which is nil for the others.
func (r *Relay) attempt(
	ctx context.Context, to router.Pick, call providers.Call, translation *translate.Translation, span *upstream.Span,
) (*Answer, *providers.Fault) {
	vendor := r.catalog[to.Channel.Vendor]
	if translation != nil {
		call = translation.Call
	}
	sent, cancel := context.WithCancelCause(ctx)
	clock := newWatch(cancel, r.firstByte)
	body := &body{clock: clock, idle: r.idle, cancel: cancel, caller: ctx, sent: sent}
	body.underway.Begin(to)
	resp, err := vendor.Relay.Relay(sent, to.Target, call) //nolint:bodyclose // the answer's body closes it
	if err != nil {
		clock.stop()
		body.underway.End()
		cancel(nil)
		fault := providers.AsFault(err)
		scrub(fault, to.Key)
		if translation != nil {
			translation.Fault(fault)
		}
		return nil, fault
	}
	body.upstream = resp.Body
	answer := &Answer{
		Status: resp.StatusCode, Header: passed(resp.Header), Stream: isStream(resp.Header), RequestID: upstream.RequestID(resp.Header),
		Channel: to.Channel.Name, Vendor: to.Channel.Vendor, UpstreamModel: to.Model, Provider: vendor.Convention(),
	}
	scans := translation == nil || !translation.Counts() // else the answer is read for its counts anyway
	if shape := r.counters[counting{to.Channel.Vendor, call.Endpoint}]; scans && shape != nil && isText(resp.Header) {
		body.scanner = usage.NewScanner(shape, answer.Stream)
		body.counter = body.scanner
		if r.makers != nil && translation == nil && shape.Named() {
			body.scanner.Find(shape, r.made(call, to.Target))
		}
		if answer.Stream && call.HideUsage {
			body.hider = usage.NewHider(body.scanner, body.next)
			answer.Header.Del("Content-Length")
		}
	}
	if fault := body.first(); fault != nil {
		_ = body.Close() // the fault says it all
		said := *fault   // that of a context may be everybody's
		said.Delivered = true
		return nil, &said
	}
	if translation != nil {
		if fault := answer.translate(translation, body, to.Key); fault != nil {
			return nil, fault
		}
	} else {
		answer.Body = body
	}
	span.Answered(resp.StatusCode, answer.Stream)
	body.span, answer.body = span, body
	return answer, nil
}

// tried is an attempt that is over: the how manieth of its call it was, how long it took, and what was said where it succeeded.
type tried struct {
	number int
	took   time.Duration
	said   reply
}

// note tells and logs one attempt. That of a call which did not fall over has no line of its own but for who debugs: the
// access log says all of it. The upstream's own words go along where they speak of a key or a channel; those about a
// request may repeat it.
func (r *Relay) note(ctx context.Context, try attempts, to router.Pick, t tried, fault *providers.Fault) {
	one := providers.Try{Channel: to.Channel.Name, Model: to.Model, Key: to.Fingerprint(), RequestID: t.said.requestID, Took: t.took}
	if fault != nil {
		one.Fault, one.Code = fault.Kind, fault.Code
		if fault.Upstream != nil {
			one.RequestID = fault.Upstream.RequestID
		}
	}
	try.trail.Add(one)
	if r.tried != nil {
		r.tried(Attempt{Channel: one.Channel, Number: t.number, Fault: one.Fault})
	}
	level := slog.LevelInfo
	if fault == nil && t.number == 1 {
		level = slog.LevelDebug
	}
	if !r.log.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 11)
	attrs = append(attrs, slog.String("channel", to.Channel.Name), slog.String("upstream_model", to.Model), slog.Int("attempt", t.number))
	if fault == nil {
		attrs = append(attrs, slog.Int("status", t.said.status))
	} else {
		if fault.Upstream != nil {
			attrs = append(attrs, slog.Int("status", fault.Upstream.Status))
			if fault.Blame != providers.BlameNone {
				attrs = append(attrs, slog.String("upstream", clip(fault.Upstream.Body)))
			}
		}
		attrs = append(attrs, slog.String("fault", string(fault.Kind)))
		if fault.Code != "" {
			attrs = append(attrs, slog.String("code", fault.Code))
		}
		if fault.Err != nil {
			attrs = append(attrs, slog.String("cause", fault.Err.Error()))
		}
	}
	attrs = append(attrs, slog.Int64("ms", t.took.Milliseconds()))
	if one.RequestID != "" {
		attrs = append(attrs, slog.String("upstream_request_id", one.RequestID))
	}
	if try.requestID != "" {
		attrs = append(attrs, slog.String("request_id", try.requestID))
	}
	r.log.LogAttrs(ctx, level, "attempt", attrs...)
}

// isText tells whether the answer can be read for counts: it is not encoded, and JSON or events.
func isText(header http.Header) bool {
	return header.Get("Content-Encoding") == "" && (isStream(header) || upstream.MediaType(header) == "application/json")
}

func isStream(header http.Header) bool { return upstream.MediaType(header) == "text/event-stream" }
