package tasks

import (
	"context"
	"time"
)

const (
	// renewableFor is how long a process may return an older read of a task, if Redis would report any change: the task has ended, or the next
	// poll of its job is not due yet. Only an operator's action is visible late.
	renewableFor = 5 * time.Second
	// renewableText bounds the texts of a task that is stored so long, in bytes: there may be thousands.
	renewableText = 4 << 10
)

// renewable reports whether a task cannot change for a while and is small enough to be stored for renewableFor.
func (t Task) renewable() bool {
	return (t.poll != nil || t.Ended()) && !t.removed && len(t.Request.Prompt)+len(t.Request.Metadata) <= renewableText
}

// renewed returns an older read of a task, updated to the present. It reports false if Temporal must be read.
func (c *Client) renewed(ctx context.Context, old Task) (Task, bool) {
	now := time.Now()
	waits := old.poll != nil && now.Before(old.poll.Next)
	if now.Sub(old.readAt) >= renewableFor || !waits && !old.Ended() || !old.renewable() {
		return Task{}, false
	}
	if unchanged, err := c.unchanged(ctx, old.ID); err != nil || !unchanged {
		return Task{}, false
	}
	if waits && !old.Ended() {
		old.Progress = old.poll.Shown(now)
	}
	return old, true
}

// changed reports whether a task is marked as changed. It is false while Redis is unavailable.
func (c *Client) changed(ctx context.Context, id string) bool {
	unchanged, err := c.unchanged(ctx, id)
	return err == nil && !unchanged
}

func (c *Client) unchanged(ctx context.Context, id string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, markTimeout)
	defer cancel()
	return c.opts.Index.Unchanged(ctx, id)
}

// markChanged makes every process read the task from Temporal while one may have an older read. Without Redis, they always do.
func (c *Client) markChanged(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, markTimeout)
	defer cancel()
	if err := c.opts.Index.MarkChanged(ctx, id); err != nil {
		c.opts.Log.WarnContext(ctx, "change not marked, other processes may see it late", "task", id, "error", err)
	}
}
