package relay

import (
	"context"
	"net/http"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// createTimeout bounds the create of a call that its vendor runs, up to the ticket. Nothing else interrupts it: without the ticket the
// gateway cannot find the call at the vendor.
const createTimeout = time.Minute

// ticketed returns the call that the target's vendor runs. false: the call, the channel or the vendor does not permit that.
func (a *attempts) ticketed(call *providers.Call) (*providers.Call, bool) {
	if call.Ticketing == nil || a.to.Translated || !a.to.Channel.RunsBackground && !call.Hosted {
		return call, false
	}
	_, can := a.relay.catalog[a.to.Channel.Vendor].Relay.(providers.Ticketer)
	if can {
		call = edited(call, upstream.InBackground(call))
	}
	return call, can
}

// resume returns the answer of a call that a channel and key already run. No other can return it.
func (r *Relay) resume(ctx context.Context, group string, call *providers.Call) (*Answer, error) {
	at := call.Ticketing.At
	to, err := r.picker.router.Resolve(at.Channel, at.Fingerprint, call.Model)
	if err != nil {
		return nil, &providers.Fault{Kind: providers.Upstream, Message: "The channel that runs the call is no longer configured.", Err: err}
	}
	tries := r.begin(ctx, group, call)
	tries.to, tries.number = to.For(call.Token, false), 1
	sent, span := tries.begin(ctx, call.Endpoint)
	answer, fault := r.send(sent, tries.to, sending{call: call, patient: true, ticketed: true}, span)
	if tries.end(ctx, replyOf(answer), fault) {
		answer.Attempts = tries.number
		return answer, nil
	}
	if tries.err != nil {
		return nil, tries.err
	}
	return nil, tries.last
}

// follow returns the answer of a call that the vendor runs. It creates the call unless the vendor already runs it.
func (r *Relay) follow(ctx context.Context, to providers.Target, call *providers.Call) (*http.Response, error) {
	relayer := r.catalog[to.Channel.Vendor].Relay
	ticketer, can := relayer.(providers.Ticketer)
	if !can {
		return nil, providers.Faultf(providers.Internal, "The vendor of the channel runs no calls in the background.")
	}
	if call.Ticketing.At != (providers.KeyRef{}) {
		return call.Ticketing.Follow(ctx, to, ticketer, nil)
	}
	create, stop := context.WithCancel(context.WithoutCancel(ctx))
	limit := time.AfterFunc(createTimeout, stop)
	created, err := relayer.Relay(create, to, call)
	if err != nil {
		stop()
		return nil, err
	}
	resp, err := call.Ticketing.Follow(ctx, to, ticketer, created)
	limit.Stop()
	if err != nil {
		stop()
		return nil, err
	}
	context.AfterFunc(ctx, stop) // the body of a stream is that of the create
	return resp, nil
}
