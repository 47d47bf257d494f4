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

// picker picks targets for calls, and seats at the channels that bound their calls.
type picker struct {
	router *router.Router
	seats  seats.Seats
	// patience is how long a call waits for a seat.
	patience time.Duration
}

// pick picks a target and, where its channel bounds its calls, takes a seat there. Full channels are passed over; where nothing
// else is left the call waits for a seat at one of them, and goes on waiting for the others where that one rests by then. What
// is picked must be asked, or given back by unasked.
func (p *picker) pick(ctx context.Context, want router.Want) (router.Pick, error) {
	for patience := p.patience; ; {
		to, full, err := p.seated(want)
		if len(full) == 0 {
			return to, err
		}
		began := time.Now()
		name, leave, err := p.seats.Wait(ctx, full, want.Token, patience)
		switch {
		case errors.Is(err, seats.ErrFull):
			return router.Pick{}, &providers.Fault{
				Kind: providers.Overloaded, Message: "Too many calls are under way at all channels for this model.", RetryAfter: fullRetry, Accepted: providers.NotAccepted,
			}
		case err != nil:
			return router.Pick{}, providers.AsFault(err)
		}
		only := want
		only.Only = []string{name}
		if to, err = p.router.Pick(only); err == nil {
			to.Done = leave
			return to, nil
		}
		leave()
		if len(full) == 1 {
			return to, err
		}
		want.Except = append(slices.Clip(want.Except), name)
		patience -= time.Since(began)
	}
}

// seated picks a target without a wait. full are the channels that would do and have no seat, where no other does.
func (p *picker) seated(want router.Want) (to router.Pick, full []seats.Channel, err error) {
	for {
		to, err := p.router.Pick(want)
		if err != nil {
			return to, full, err
		}
		if to.Channel.MaxCalls <= 0 {
			return to, nil, nil
		}
		at := seats.Channel{Name: to.Channel.Name, Most: to.Channel.MaxCalls}
		leave, ok := p.seats.Take(at, want.Token)
		if ok {
			to.Done = leave
			return to, nil, nil
		}
		p.unasked(to)
		full = append(full, at)
		if want.Maker.Channel != "" && to.Ref() == want.Maker {
			return router.Pick{}, full, nil // nobody else can go on
		}
		want.Except = append(slices.Clip(want.Except), at.Name)
	}
}

// unasked gives a pick back that nobody asked anything.
func (p *picker) unasked(to router.Pick) {
	p.router.Report(to, &providers.Fault{Kind: providers.Canceled})
	if to.Done != nil {
		to.Done()
	}
}
