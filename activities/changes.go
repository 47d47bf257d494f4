package activities

import (
	"context"
	"time"

	"modelrelay/storage/taskindex"
)

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
