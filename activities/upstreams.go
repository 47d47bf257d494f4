package activities

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/trace"

	"modelrelay/providers"
	"modelrelay/providers/router"
	"modelrelay/providers/upstream"
)

// Channels is the router as activities use it. *router.Router implements it.
type Channels interface {
	// Candidates lists the channels that Pick may choose, the preferred one first, and returns the errors of Pick.
	Candidates(want router.Request) ([]providers.Channel, error)
	// Pick chooses a channel for a new attempt; a *providers.Fault has the reason if there is none.
	Pick(want router.Request) (router.Pick, error)
	// Report records the outcome of an attempt; nil is success. ReportPoll records the outcome of a request about a running job.
	Report(to router.Pick, fault *providers.Fault)
	ReportPoll(to router.Pick, fault *providers.Fault)
	// Resolve returns the channel and key of a ticket, or router.ErrChannelGone if they are not configured.
	Resolve(channel, fingerprint, upstreamModel string) (router.Pick, error)
}

// Upstreams finds the configured channels and the adapters of their vendors.
type Upstreams struct {
	Channels Channels
	Catalog  providers.Catalog
	// Shares bounds the concurrent work of one token at upstreams; nil: no bound.
	Shares *Shares
	// Tracer starts spans of requests to upstreams within an activity's span; nil: none.
	Tracer trace.Tracer
}

// target returns the channel, key and adapter of an assignment in the current configuration.
func (u *Upstreams) target(to Assignment) (router.Pick, providers.VideoAdapter, error) {
	pick, err := u.Channels.Resolve(to.Channel, to.Key, to.Model)
	if err != nil {
		return router.Pick{}, nil, fmt.Errorf("resolve channel %q: %w", to.Channel, err)
	}
	adapter := u.Catalog[pick.Channel.Vendor].Video
	if adapter == nil {
		return router.Pick{}, nil, fmt.Errorf("vendor %q of channel %q makes no videos: %w", pick.Channel.Vendor, to.Channel,
			router.ErrChannelGone)
	}
	return pick.For(to.Token, false), adapter, nil
}

// noSlot returns the record of work without a free share of its token. Nothing was sent.
func noSlot() Record {
	return Record{
		Kind: providers.Overloaded, Message: "Too much work of the token is in progress at upstreams.",
		Accepted: providers.NotAccepted, Retryable: true, Finished: true,
	}
}

// turn starts the span of a request to an upstream, if the activity has one.
func (u *Upstreams) turn(ctx context.Context, to providers.Target, turn upstream.Step) (context.Context, *upstream.Span) {
	return upstream.StartSpan(ctx, u.Tracer, u.Catalog[to.Channel.Vendor], to, turn)
}
