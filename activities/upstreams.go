package activities

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/trace"

	"modelrelay/providers"
	"modelrelay/providers/router"
	"modelrelay/providers/upstream"
)

// Channels is what activities need of the router. *router.Router implements it.
type Channels interface {
	// Candidates lists the channels that Pick may choose among, the preferred one first; its errors are Pick's.
	Candidates(want router.Want) ([]providers.Channel, error)
	// Pick chooses a channel for a new attempt; a *providers.Fault says why there is none.
	Pick(want router.Want) (router.Pick, error)
	// Report tells how an attempt went; nil is success. ReportPoll does so of a request about a job under way.
	Report(to router.Pick, fault *providers.Fault)
	ReportPoll(to router.Pick, fault *providers.Fault)
	// Resolve finds the channel and key of a ticket; router.ErrChannelGone when the configuration lacks them.
	Resolve(channel, fingerprint, upstreamModel string) (router.Pick, error)
}

// Upstreams is the way to the channels of the configuration, and to the code that speaks to their vendors.
type Upstreams struct {
	Channels Channels
	Catalog  providers.Catalog
	// Shares bounds what one token has under way at upstreams; nil: nothing does.
	Shares *Shares
	// Tracer makes spans of the turns to upstreams within an activity's span; nil: none.
	Tracer trace.Tracer
}

// target finds the channel, key and adapter of an assignment in the configuration of now.
func (u *Upstreams) target(to Assignment) (router.Pick, providers.VideoAdapter, error) {
	pick, err := u.Channels.Resolve(to.Channel, to.Key, to.Model)
	if err != nil {
		return router.Pick{}, nil, fmt.Errorf("resolve channel %q: %w", to.Channel, err)
	}
	adapter := u.Catalog[pick.Channel.Vendor].Video
	if adapter == nil {
		return router.Pick{}, nil, fmt.Errorf("vendor %q of channel %q makes no videos: %w", pick.Channel.Vendor, to.Channel, router.ErrChannelGone)
	}
	return pick.For(to.Token, false), adapter, nil
}

// complete adds to a request what its model makes of it, and returns what that is.
func (u *Upstreams) complete(pick router.Pick, req providers.VideoRequest) (providers.VideoRequest, providers.Footage) {
	return u.Catalog[pick.Channel.Vendor].Complete(pick.Channel, pick.Model, req)
}

// noRoom is what became of work at an upstream that found no room beside other work of its token. Nothing was sent.
func noRoom() Record {
	return Record{
		Kind: providers.Overloaded, Message: "Too much work of the token is under way at upstreams.",
		Accepted: providers.NotAccepted, Retryable: true, Finished: true,
	}
}

// turn begins the span of a turn to an upstream, where the activity has one.
func (u *Upstreams) turn(ctx context.Context, to providers.Target, turn upstream.Step) (context.Context, *upstream.Span) {
	return upstream.StartSpan(ctx, u.Tracer, u.Catalog[to.Channel.Vendor], to, turn)
}
