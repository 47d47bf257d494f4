package activities

import (
	"context"
	"time"

	"modelrelay/storage/fair"
)

const (
	// copyLineMost bounds the copies of one channel that wait for a slot in a worker. Others come back later.
	copyLineMost = 64
	// slowShare is the divisor for the slots of slow sources, and for the slots that one channel cannot use.
	slowShare = 4
	// expiresSoon: a result that expires within it is copied first. Several vendors keep results for an hour, one for six minutes.
	expiresSoon = time.Hour
)

// CopyLimit bounds the concurrent copies of a worker. One channel has at most three quarters of the slots. A result that expires soon
// comes first, otherwise the channel with the fewest copies, so a slow channel does not stop the others. A copy that was found to
// be slow continues in a quarter of the slots, one for each channel, and keeps its slot to the end. It is safe for concurrent use.
type CopyLimit struct {
	all, slow *fair.Semaphore[string] // by channels of the configuration
}

// copyLane is the normal or the slow lane of a channel.
type copyLane struct {
	channel string
	slow    bool
}

// NewCopyLimit returns a limit of total slots, at least 2.
func NewCopyLimit(total int) *CopyLimit {
	total = max(2, total)
	slow := max(1, total/slowShare)
	bounds := fair.Bounds{Total: int64(total), Share: int64(total - slow), Line: copyLineMost, Soon: expiresSoon}
	all := fair.New[string](bounds)
	bounds.Total, bounds.Share = int64(slow), 1
	return &CopyLimit{all: all, slow: fair.New[string](bounds)}
}

// take waits for a slot in the lane; the earliest expiry comes first. The error is fair.ErrFull if too many copies of the channel wait, or
// the context's cause. The caller must release the slot.
func (p *CopyLimit) take(ctx context.Context, to copyLane, dies time.Time) error {
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

func (p *CopyLimit) release(of copyLane) {
	if of.slow {
		p.slow.Release(of.channel, 1)
	}
	p.all.Release(of.channel, 1)
}

// wanted reports whether another copy waits for a slot of the lane. It is false for a slow lane.
func (p *CopyLimit) wanted(of copyLane) bool { return !of.slow && p.all.Wanted(of.channel) }
