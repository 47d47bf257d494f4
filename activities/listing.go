package activities

import (
	"context"
	"log/slog"
	"time"

	"modelrelay/storage/taskindex"
)

const (
	// relistTimeout bounds the restore of a list entry. The task repeats it later.
	relistTimeout = time.Second
	// markTimeout bounds the mark of an ended task. Nothing depends on it.
	markTimeout = 250 * time.Millisecond
)

// Listing updates the lists of tokens' tasks, and publishes hints that a task has changed.
type Listing struct {
	// Index lists the tasks of tokens; nil: tasks are neither listed nor counted.
	Index *taskindex.Index
	// Changes carries hints that a task changed; nil: none.
	Changes *taskindex.Changes
	Log     *slog.Logger
}

// relist restores the list entry of a running task once, and reports whether it exists. While Redis is unavailable, the next try does it.
func (l *Listing) relist(ctx context.Context, taskID string, entry Entry, done bool) bool {
	if done || l.Index == nil {
		return done
	}
	ctx, cancel := context.WithTimeout(ctx, relistTimeout)
	defer cancel()
	if err := l.Index.Restore(ctx, entry.Token, taskID, entry.Created, true); err != nil {
		l.Log.DebugContext(ctx, "task not listed", "task", taskID, "error", err)
		return false
	}
	return true
}

// changed reports to every process that a task may have changed, best effort.
func (l *Listing) changed(ctx context.Context, taskID string) {
	l.publish(ctx, taskindex.Change{TaskID: taskID})
}

func (l *Listing) publish(ctx context.Context, change taskindex.Change) {
	if err := l.Changes.Publish(ctx, change); err != nil {
		l.Log.DebugContext(ctx, "change not published", "task", change.TaskID, "error", err)
	}
}

// markEnded marks a task as ended, so that no process returns an earlier read, and publishes a hint, best effort.
func (l *Listing) markEnded(ctx context.Context, taskID string) {
	if l.Index != nil {
		marked, cancel := context.WithTimeout(context.WithoutCancel(ctx), markTimeout)
		err := l.Index.MarkChanged(marked, taskID)
		cancel()
		if err != nil {
			l.Log.DebugContext(ctx, "end not marked", "task", taskID, "error", err)
		}
	}
	l.publish(ctx, taskindex.Change{TaskID: taskID, Report: taskindex.Ended})
}
