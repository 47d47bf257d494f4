package activities

import (
	"context"
	"time"

	"modelrelay/storage/taskindex"
)

const (
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

// hintTimeout bounds the telling of a change, which nothing depends on.
const hintTimeout = 250 * time.Millisecond

// changed tells every process that a task may have changed, best effort.
func (a *Activities) changed(ctx context.Context, taskID string) {
	if err := tell(ctx, a.Changes, taskindex.Change{TaskID: taskID}); err != nil {
		a.Log.DebugContext(ctx, "change not told", "task", taskID, "err", err)
	}
}

// over tells every process that a task has ended and what it read before is stale, best effort.
func (a *Activities) over(ctx context.Context, taskID string) {
	if err := tell(ctx, a.Changes, taskindex.Change{TaskID: taskID, Ended: true}); err != nil {
		a.Log.DebugContext(ctx, "end not told", "task", taskID, "err", err)
	}
}

func tell(ctx context.Context, changes *taskindex.Changes, change taskindex.Change) error {
	if changes == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hintTimeout)
	defer cancel()
	return changes.Publish(ctx, change)
}
