package relay

import (
	"context"
	"errors"
	"slices"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/relay/seats"
	"modelrelay/providers/router"
)

// fullRetry is when a call that found no seat may come again.
const fullRetry = time.Second

// pick picks a target and, where its channel bounds its calls, takes a seat there. Full channels are passed over; where nothing
// else is left the call waits for a seat at one of them. What is picked must be asked, or given back by unasked.
func (r *Relay) pick(ctx context.Context, want router.Want) (router.Pick, error) {
	var full []seats.Channel
	for open := want; ; {
		to, err := r.router.Pick(open)
		if err != nil {
			if len(full) > 0 {
				break
			}
			return to, err
		}
		if to.Channel.MaxCalls <= 0 {
			return to, nil
		}
		at := seats.Channel{Name: to.Channel.Name, Most: to.Channel.MaxCalls}
		leave, ok := r.seats.Take(at, want.Token)
		if ok {
			to.Done = leave
			return to, nil
		}
		r.unasked(to)
		full = append(full, at)
		if want.Maker.Channel != "" && to.Ref() == want.Maker {
			break // nobody else can go on
		}
		open.Except = append(slices.Clip(open.Except), at.Name)
	}
	name, leave, err := r.seats.Wait(ctx, full, want.Token, r.seatWait)
	switch {
	case errors.Is(err, seats.ErrFull):
		return router.Pick{}, &providers.Fault{
			Kind: providers.Overloaded, Message: "Too many calls are under way at all channels for this model.", RetryAfter: fullRetry, Accepted: providers.NotAccepted,
		}
	case err != nil:
		return router.Pick{}, providers.AsFault(err)
	}
	want.Only = []string{name}
	to, err := r.router.Pick(want)
	if err != nil {
		leave()
		return to, err
	}
	to.Done = leave
	return to, nil
}

// unasked gives a pick back that nobody asked anything.
func (r *Relay) unasked(to router.Pick) {
	r.router.Report(to, &providers.Fault{Kind: providers.Canceled})
	if to.Done != nil {
		to.Done()
	}
}

// Waiting is how many calls wait for a seat at the channel.
func (r *Relay) Waiting(channel string) int { return r.seats.Waiting(channel) }
