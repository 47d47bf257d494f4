package activities

import (
	"context"
	"time"
)

const (
	// tooManyRetry is what a token with too many unfinished tasks is told to wait. Its tasks take minutes, so asking
	// sooner helps nobody.
	tooManyRetry = 5 * time.Second
	// buriedTimeout bounds the look for a removal, so that a Redis that hangs does not slow every read down.
	buriedTimeout = 250 * time.Millisecond
	// relistTimeout bounds the restoring of an entry on the list, which the task does again later.
	relistTimeout = time.Second
)

// relist restores the entry of a task under way, once: an ordinary task has it, and pays one request. It tells whether the
// entry is there now; while Redis is away the next try does it.
func (a *Activities) relist(ctx context.Context, taskID string, entry Entry, done bool) bool {
	if done || a.Index == nil || entry.Created.IsZero() {
		return done
	}
	ctx, cancel := context.WithTimeout(ctx, relistTimeout)
	defer cancel()
	if err := a.Index.Restore(ctx, entry.Token, taskID, entry.Created, true); err != nil {
		a.Log.DebugContext(ctx, "task not listed", "task", taskID, "err", err)
		return false
	}
	return true
}
