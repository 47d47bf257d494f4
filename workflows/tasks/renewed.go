package tasks

import (
	"context"
	"time"
)

const (
	// keepFor is how long what the engine said of a task may be told again without asking it, where nothing can have happened
	// since but what Redis would tell: the task has ended, or its job's next poll is still to come. Only what an operator does to a
	// task is seen so late.
	keepFor = 5 * time.Second
	// keepText bounds the texts of a task that is kept for so long, in bytes: there may be thousands.
	keepText = 4 << 10
	// disturbTimeout bounds the mark of a change, and the look for one, so that a Redis that hangs slows nobody down for long.
	disturbTimeout = 250 * time.Millisecond
)

// renewable tells whether nothing can happen to a task for a while, and whether it is small enough to be kept for so long.
func (t Task) renewable() bool {
	return (t.beat != nil || t.Ended()) && !t.removed && len(t.Request.Prompt)+len(t.Request.Metadata) <= keepText
}

// renewed is what was read of a task, as it is now, and false where the engine must be asked.
func (c *Client) renewed(ctx context.Context, old Task) (Task, bool) {
	now := time.Now()
	waits := old.beat != nil && now.Before(old.beat.Next)
	if now.Sub(old.seen) >= keepFor || !waits && !old.Ended() || !old.renewable() {
		return Task{}, false
	}
	ctx, cancel := context.WithTimeout(ctx, disturbTimeout)
	defer cancel()
	if calm, err := c.opts.Index.Calm(ctx, old.ID); err != nil || !calm {
		return Task{}, false
	}
	if waits && !old.Ended() {
		old.Progress = old.beat.Shown(now)
	}
	return old, true
}

// disturbed reports whether a task is marked as changed. While Redis is away it is not.
func (c *Client) disturbed(ctx context.Context, id string) bool {
	ctx, cancel := context.WithTimeout(ctx, disturbTimeout)
	defer cancel()
	calm, err := c.opts.Index.Calm(ctx, id)
	return err == nil && !calm
}

// disturb has every process ask the engine about a task from now on, for as long as one may know it from before. While Redis
// is away they ask anyway.
func (c *Client) disturb(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, disturbTimeout)
	defer cancel()
	if err := c.opts.Index.Disturb(ctx, id); err != nil {
		c.opts.Log.WarnContext(ctx, "change not marked, other processes may see it late", "task", id, "err", err)
	}
}
