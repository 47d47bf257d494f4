package relay

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/router"
	"modelrelay/storage/fair"
)

const (
	// fullRetry is the Retry-After of a call that found no slot.
	fullRetry = time.Second
	// mostWaiting is how many calls may wait for one channel: each holds a connection and a body, and a call after so many has no
	// hope within the wait. mostWaitingOfOne is how many of them may be one token's.
	mostWaiting      = 1024
	mostWaitingOfOne = 128
)

// picker picks targets for calls, and takes slots at the channels that bound their calls.
type picker struct {
	router *router.Router
	// patience is how long a call waits for a slot.
	patience time.Duration

	mu    sync.Mutex
	slots map[string]*slots // by channel; there are as many as the configuration has named
}

// slots bounds the concurrent calls of a channel, and shares them among tokens.
type slots = fair.Semaphore[string]

// at returns the slots of a channel, of which there are so many now.
func (p *picker) at(channel string, most int) *slots {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.slots[channel]
	if s == nil {
		s = fair.New[string](fair.Bounds{Line: mostWaitingOfOne, Lines: mostWaiting})
		p.slots[channel] = s
	}
	s.Resize(int64(most))
	return s
}

// waiting is how many calls wait for a slot at the channel.
func (p *picker) waiting(channel string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.slots[channel]; s != nil {
		return s.Waiting()
	}
	return 0
}

// pick picks a target and, where its channel bounds its calls, takes a slot there. Full channels are passed over. Where no other is
// left, the call waits for a slot at one of them; where that channel cools down by then, the call continues waiting for the others. The
// pick must be asked, or returned by unasked.
func (p *picker) pick(ctx context.Context, want router.Request) (router.Pick, error) {
	for until := time.Now().Add(p.patience); ; {
		to, full, at, err := p.free(want)
		if len(full) == 0 {
			return to, err
		}
		index, err := fair.Wait(ctx, fair.Ask[string]{Key: want.Token, Limit: max(1, time.Until(until))}, at...)
		switch {
		case errors.Is(err, fair.ErrFull):
			return router.Pick{}, &providers.Fault{
				Kind: providers.Overloaded, Message: "Too many calls are under way at all channels for this model.", RetryAfter: fullRetry,
				Accepted: providers.NotAccepted,
			}
		case err != nil:
			return router.Pick{}, providers.AsFault(err)
		}
		only := want
		only.Only = full[index : index+1 : index+1]
		if to, err = p.router.Pick(only); err == nil {
			to.Done = done(at[index], want.Token)
			return to, nil
		}
		at[index].Release(want.Token, 1)
		if len(full) == 1 {
			return to, err
		}
		want.Exclude = append(slices.Clip(want.Exclude), full[index])
	}
}

// free picks a target without a wait. full are the channels that would do and have no free slot, where no other does, and at are their
// slots.
func (p *picker) free(want router.Request) (to router.Pick, full []string, at []*slots, err error) {
	for {
		to, err := p.router.Pick(want)
		if err != nil {
			return to, full, at, err
		}
		if to.Channel.MaxCalls <= 0 {
			return to, nil, nil, nil
		}
		here := p.at(to.Channel.Name, to.Channel.MaxCalls)
		if here.Try(want.Token, 1) == nil {
			to.Done = done(here, want.Token)
			return to, nil, nil, nil
		}
		p.unasked(to)
		full, at = append(full, to.Channel.Name), append(at, here)
		if want.Origin.Channel != "" && to.Ref() == want.Origin {
			return router.Pick{}, full, at, nil // no other channel can go on
		}
		want.Exclude = append(slices.Clip(want.Exclude), to.Channel.Name)
	}
}

// done releases the token's slot, once.
func done(at *slots, token string) func() {
	return sync.OnceFunc(func() { at.Release(token, 1) })
}

// unasked returns a pick of which the upstream was asked nothing.
func (p *picker) unasked(to router.Pick) {
	p.router.Report(to, &providers.Fault{Kind: providers.Canceled})
	if to.Done != nil {
		to.Done()
	}
}
