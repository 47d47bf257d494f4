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
	// maxWaiting bounds the calls that wait for one channel: each holds a connection and a body, and a call after so many would not
	// get a slot in time. maxWaitingOfToken bounds those of one token.
	maxWaiting        = 1024
	maxWaitingOfToken = 128
)

// picker picks targets for calls, and takes slots at channels with a limit of calls.
type picker struct {
	router *router.Router
	// slotWait is how long a call waits for a slot.
	slotWait time.Duration

	mu    sync.Mutex
	slots map[string]*slots // by channel, including earlier channels of the configuration
}

// slots bounds the concurrent calls of a channel, and shares them among tokens.
type slots = fair.Semaphore[string]

// at returns the slots of a channel, after it has set their number to limit.
func (p *picker) at(channel string, limit int) *slots {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.slots[channel]
	if s == nil {
		s = fair.New[string](fair.Bounds{Line: maxWaitingOfToken, Lines: maxWaiting})
		p.slots[channel] = s
	}
	s.Resize(int64(limit))
	return s
}

// waiting returns the number of calls that wait for a slot at the channel.
func (p *picker) waiting(channel string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.slots[channel]; s != nil {
		return s.Waiting()
	}
	return 0
}

// pick picks a target and takes a slot of its channel if that has a limit. It skips full channels. If all are full, the call waits for a
// slot at one of them; if that cools down meanwhile, the call waits for the others. The caller uses the pick, or releases it.
func (p *picker) pick(ctx context.Context, request router.Request) (router.Pick, error) {
	for until := time.Now().Add(p.slotWait); ; {
		to, full, at, err := p.free(request)
		if len(full) == 0 {
			return to, err
		}
		index, err := fair.Wait(ctx, fair.Ask[string]{Key: request.Token, Limit: max(1, time.Until(until))}, at...)
		switch {
		case errors.Is(err, fair.ErrFull):
			return router.Pick{}, &providers.Fault{
				Kind: providers.Overloaded, Message: "Too many calls are in progress at all channels for this model.", RetryAfter: fullRetry,
				Accepted: providers.NotAccepted,
			}
		case err != nil:
			return router.Pick{}, providers.AsFault(err)
		}
		only := request
		only.Only = full[index : index+1 : index+1]
		if to, err = p.router.Pick(only); err == nil {
			to.Done = done(at[index], request.Token)
			return to, nil
		}
		at[index].Release(request.Token, 1)
		if len(full) == 1 {
			return to, err
		}
		request.Exclude = append(slices.Clip(request.Exclude), full[index])
	}
}

// free picks a target without a wait. If every suitable channel is full, full are these channels and at their slots.
func (p *picker) free(request router.Request) (to router.Pick, full []string, at []*slots, err error) {
	for {
		to, err := p.router.Pick(request)
		if err != nil {
			return to, full, at, err
		}
		if to.Channel.MaxCalls <= 0 {
			return to, nil, nil, nil
		}
		here := p.at(to.Channel.Name, to.Channel.MaxCalls)
		if here.Try(request.Token, 1) == nil {
			to.Done = done(here, request.Token)
			return to, nil, nil, nil
		}
		p.release(to)
		full, at = append(full, to.Channel.Name), append(at, here)
		if request.Origin.Channel != "" && to.Ref() == request.Origin {
			return router.Pick{}, full, at, nil // no other channel can continue the answer
		}
		request.Exclude = append(slices.Clip(request.Exclude), to.Channel.Name)
	}
}

// done returns a function that releases the token's slot once.
func done(at *slots, token string) func() {
	return sync.OnceFunc(func() { at.Release(token, 1) })
}

// release releases a pick without a request to its upstream.
func (p *picker) release(to router.Pick) {
	p.router.Report(to, &providers.Fault{Kind: providers.Canceled})
	if to.Done != nil {
		to.Done()
	}
}
