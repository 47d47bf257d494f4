package relay

import (
	"context"
	"net/http"
	"slices"
	"time"

	"modelrelay/providers"
)

// createTimeout bounds the create of a call that its vendor runs, up to the ticket. Nothing else interrupts it: without the ticket it is
// not known what the vendor runs.
const createTimeout = time.Minute

// ticketed makes the call one that the vendor of the attempt's target runs; false if this call, channel or vendor does not do so.
func (a *attempts) ticketed(call *providers.Call) bool {
	if call.Ticketing == nil || a.to.Translated || !a.to.Channel.RunsBackground && !call.Hosted {
		return false
	}
	ticketer, can := a.relay.catalog[a.to.Channel.Vendor].Relay.(providers.Ticketer)
	if can {
		call.Edits = append(slices.Clip(call.Edits), ticketer.InBackground(*call)...)
	}
	return can
}

// resume returns the answer of a call that a channel and key run already. No other can.
func (r *Relay) resume(ctx context.Context, group string, call providers.Call) (*Answer, error) {
	at := call.Ticketing.At
	to, err := r.picker.router.Resolve(at.Channel, at.Fingerprint, call.Model)
	if err != nil {
		return nil, &providers.Fault{Kind: providers.Upstream, Message: "The channel that runs the call is not configured any more.", Err: err}
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

// follow returns the answer of a call that the vendor runs, which it creates unless it runs already.
func (r *Relay) follow(ctx context.Context, to providers.Target, call providers.Call) (*http.Response, error) {
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
