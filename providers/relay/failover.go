package relay

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"modelrelay/providers"
	"modelrelay/providers/router"
	"modelrelay/providers/upstream"
)

// failover tries one target after the other until one succeeds.
type failover struct {
	picker  *picker
	catalog providers.Catalog
	most    int // attempts of one call
	log     *slog.Logger
	tracer  trace.Tracer
	tried   func(Attempt)
}

// Attempt is one request of a call, or one dial of a conversation.
type Attempt struct {
	Channel string
	// Number counts the call's attempts from 1: above that the call fell over.
	Number int
	// Fault is how it failed, "" where its answer began.
	Fault providers.Kind
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

// run makes attempts at the targets the router picks until one succeeds, and tells the router, the log and the
// trace of each. It returns how many it took. The error is the last attempt's fault; where there was none, the first of those
// that say that the call cannot be sent, or the router's.
func (f *failover) run(ctx context.Context, want router.Want, try attempts) (int, error) {
	var to router.Pick
	whole := false
	defer func() {
		if !whole && to.Done != nil {
			to.Done() // after a panic, release the slot; otherwise it stays occupied
		}
	}()
	took, err := f.attemptAll(ctx, want, try, &to)
	whole = true
	return took, err
}

// attemptAll makes run's attempts. underway is the target of the latest.
func (f *failover) attemptAll(ctx context.Context, want router.Want, try attempts, underway *router.Pick) (int, error) {
	var last, makers, unfit *providers.Fault
	for attempts := 1; attempts <= f.most; attempts++ {
		to, err := f.picker.pick(ctx, want)
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
			f.picker.unasked(to)
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
		traced, span := upstream.StartSpan(ctx, f.tracer, f.catalog[to.Channel.Vendor], to.Target, step)
		said, fault := try.send(traced, to, span)
		if ctx.Err() != nil && fault != nil {
			delivered := fault.Delivered
			fault = providers.AsFault(context.Cause(ctx))
			span.End(fault)
			f.picker.router.Report(to, &providers.Fault{Kind: providers.Canceled})
			f.note(ctx, try, to, tried{attempts, time.Since(began), said}, fault)
			if delivered {
				return 0, &Left{Channel: to.Channel.Name, Provider: f.catalog[to.Channel.Vendor].Convention(), Attempts: attempts, Fault: fault}
			}
			return 0, fault
		}
		f.picker.router.Report(to, fault)
		f.note(ctx, try, to, tried{attempts, time.Since(began), said}, fault)
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

// tried is an attempt that is over: the how manieth of its call it was, how long it took, and what was said where it succeeded.
type tried struct {
	number int
	took   time.Duration
	said   reply
}

// note tells and logs one attempt. That of a call which did not fall over has no line of its own but for who debugs: the
// access log says all of it. The upstream's own words go along where they speak of a key or a channel; those about a
// request may repeat it.
func (f *failover) note(ctx context.Context, try attempts, to router.Pick, t tried, fault *providers.Fault) {
	one := providers.Try{Channel: to.Channel.Name, Model: to.Model, Key: to.Fingerprint(), RequestID: t.said.requestID, Took: t.took}
	if fault != nil {
		one.Fault, one.Code = fault.Kind, fault.Code
		if fault.Upstream != nil {
			one.RequestID = fault.Upstream.RequestID
		}
	}
	try.trail.Add(one)
	if f.tried != nil {
		f.tried(Attempt{Channel: one.Channel, Number: t.number, Fault: one.Fault})
	}
	level := slog.LevelInfo
	if fault == nil && t.number == 1 {
		level = slog.LevelDebug
	}
	if !f.log.Enabled(ctx, level) {
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
	f.log.LogAttrs(ctx, level, "attempt", attrs...)
}
