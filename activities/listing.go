package activities

import (
	"context"
	"log/slog"
	"time"

	"modelrelay/storage/taskindex"
)

const (
	// relistTimeout bounds the restoring of an entry on the list, which the task does again later.
	relistTimeout = time.Second
	// hintTimeout bounds the telling of a change, which nothing depends on.
	hintTimeout = 250 * time.Millisecond
)

// Listing is what readers go by: the lists of tokens' tasks, and the hints that a task has changed.
type Listing struct {
	// Index lists the tasks of tokens; nil where nobody lists or counts them.
	Index *taskindex.Index
	// Changes carries hints that a task changed; nil: none.
	Changes *taskindex.Changes
	Log     *slog.Logger
}

// relist restores the entry of a task under way, once: an ordinary task has it, and pays one request. It tells whether the
// entry is there now; while Redis is away the next try does it.
func (l *Listing) relist(ctx context.Context, taskID string, entry Entry, done bool) bool {
	if done || l.Index == nil {
		return done
	}
	ctx, cancel := context.WithTimeout(ctx, relistTimeout)
	defer cancel()
	if err := l.Index.Restore(ctx, entry.Token, taskID, entry.Created, true); err != nil {
		l.Log.DebugContext(ctx, "task not listed", "task", taskID, "err", err)
		return false
	}
	return true
}

// changed tells every process that a task may have changed, best effort.
func (l *Listing) changed(ctx context.Context, taskID string) {
	if err := tell(ctx, l.Changes, taskindex.Change{TaskID: taskID}); err != nil {
		l.Log.DebugContext(ctx, "change not told", "task", taskID, "err", err)
	}
}

// over marks a task as ended, so that no process answers from what it read before, and tells every process, best effort. The mark is
// there when it returns.
func (l *Listing) over(ctx context.Context, taskID string) {
	if l.Index != nil {
		marked, cancel := context.WithTimeout(context.WithoutCancel(ctx), hintTimeout)
		err := l.Index.Disturb(marked, taskID)
		cancel()
		if err != nil {
			l.Log.DebugContext(ctx, "end not marked", "task", taskID, "err", err)
		}
	}
	if err := tell(ctx, l.Changes, taskindex.Change{TaskID: taskID, Ended: true}); err != nil {
		l.Log.DebugContext(ctx, "end not told", "task", taskID, "err", err)
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
