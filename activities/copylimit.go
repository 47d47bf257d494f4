package activities

import (
	"context"
	"time"

	"modelrelay/storage/fair"
)

const (
	// placeLine is how many copies of one channel wait for a slot in a worker. More come back later, so that a channel with
	// thousands of results keeps no other channel's from the worker; so many fill the time until they do.
	placeLine = 64
	// slowShare is the part of the slots, one in so many, that copies of slow sources have, and that one channel leaves to the others.
	slowShare = 4
	// dyingSoon is the life of a result that is copied before all others: of several vendors it is an hour, of one six minutes.
	dyingSoon = time.Hour
)

// CopyLimit is how many copies a worker makes at a time. One channel has all of them but a quarter. What dies soon goes before
// what does not; else the channel with the fewest goes first, so that a channel whose results trickle stops no other's. A copy that was
// found to be slow goes on in a quarter of the slots, one of each channel, and is left alone there: it takes as long as it takes.
//
// Nil is any number of copies. Safe for concurrent use.
type CopyLimit struct {
	all, slow *fair.Semaphore[string] // by channels of the configuration
}

// copyLane is one of the two that a channel has.
type copyLane struct {
	channel string
	slow    bool
}

// NewCopyLimit makes that many slots, at least 2.
func NewCopyLimit(total int) *CopyLimit {
	total = max(2, total)
	slow := max(1, total/slowShare)
	bounds := fair.Bounds{Total: int64(total), Share: int64(total - slow), Line: placeLine, Soon: dyingSoon}
	all := fair.New[string](bounds)
	bounds.Total, bounds.Share = int64(slow), 1
	return &CopyLimit{all: all, slow: fair.New[string](bounds)}
}

// take waits for a slot in the lane, those first whose source dies first. The error is fair.ErrFull where too many copies of the channel
// wait, or the context's cause. The caller gives the slot back.
func (p *CopyLimit) take(ctx context.Context, to copyLane, dies time.Time) error {
	if p == nil {
		return nil
	}
	ask := fair.Ask[string]{Key: to.channel, Due: dies}
	if to.slow {
		if _, err := fair.Wait(ctx, ask, p.slow); err != nil {
			return err
		}
	}
	_, err := fair.Wait(ctx, ask, p.all)
	if err != nil && to.slow {
		p.slow.Release(to.channel, 1)
	}
	return err
}

// give gives a slot back.
func (p *CopyLimit) give(of copyLane) {
	if p == nil {
		return
	}
	if of.slow {
		p.slow.Release(of.channel, 1)
	}
	p.all.Release(of.channel, 1)
}

// wanted reports whether another copy waits that would get the slot of one in the lane. The slot of a slow copy is left alone.
func (p *CopyLimit) wanted(of copyLane) bool { return p != nil && !of.slow && p.all.Wanted(of.channel) }
