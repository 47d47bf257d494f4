package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
)

const (
	// endedPages bounds one look for tasks that ended without their finish; the next one goes on where it stopped.
	endedPages = 20
	// endedLag is how far each look goes back behind the one before: visibility knows of an end a moment late.
	endedLag = 5 * time.Minute
)

// Endings finds tasks whose execution ended without its finish: an operator terminated it in the engine's own tools, or it
// failed for a bug. The workflows package implements it.
type Endings interface {
	// Finish has those finished that ended at the time or later (zero: whenever), a page of them behind the cursor, which is
	// empty for the first page; next is empty behind the last. A task that is finished already, or runs again, is left alone.
	Finish(ctx context.Context, since time.Time, cursor []byte) (next []byte, err error)
}

// EndedMark is how far the looks for tasks that ended without their finish have come.
type EndedMark struct {
	// Since is the earliest end that is looked for; zero: whatever Temporal remembers.
	Since time.Time `json:"since,omitzero"`
	// Cursor is where the next look goes on, empty where it begins, and Began when the first of these looks did.
	Cursor []byte    `json:"cursor,omitempty"`
	Began  time.Time `json:"began,omitzero"`
}

// SweepEnded looks for tasks that ended without their finish, from the mark on, and has each finished. Running it again
// finds those that it has found and changes nothing for them.
func (a *Activities) SweepEnded(ctx context.Context, mark EndedMark) (EndedMark, error) {
	if len(mark.Cursor) == 0 {
		mark.Began = time.Now().UTC()
	}
	for range endedPages {
		next, err := a.Endings.Finish(ctx, mark.Since, mark.Cursor)
		if err != nil {
			return mark, again(record(err), 0)
		}
		activity.RecordHeartbeat(ctx)
		if mark.Cursor = next; len(next) == 0 {
			mark.Since = mark.Began.Add(-endedLag)
			break
		}
	}
	return mark, nil
}
