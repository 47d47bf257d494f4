package activities

import (
	"context"
	"errors"
	"time"

	"modelrelay/providers"
	"modelrelay/storage"
	"modelrelay/storage/taskindex"
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

// Enlist puts a task that is about to start on its token's list; added is false where it stands there already. With too
// many unfinished tasks (0: any number) the error is a RateLimited fault; any other says that the list is away.
func (i Intake) Enlist(ctx context.Context, tokenID, taskID string, created time.Time, most int) (added bool, err error) {
	if i.Index == nil {
		return false, nil
	}
	added, err = i.Index.Add(ctx, tokenID, taskID, created, most)
	if errors.Is(err, taskindex.ErrTooMany) {
		return false, &providers.Fault{
			Kind: providers.RateLimited, Message: "Too many unfinished video tasks.", RetryAfter: tooManyRetry, Accepted: providers.NotAccepted, Err: err,
		}
	}
	return added, err
}

// Delist takes a task that does not exist off its token's list.
func (i Intake) Delist(ctx context.Context, tokenID, taskID string) error {
	if i.Index == nil {
		return nil
	}
	return i.Index.Remove(ctx, tokenID, taskID, time.Time{})
}

// Ended takes a task out of its token's unfinished ones.
func (i Intake) Ended(ctx context.Context, tokenID, taskID string) error {
	if i.Index == nil {
		return nil
	}
	return i.Index.End(ctx, tokenID, taskID)
}

// Listed is a task on a token's list, with the time of its creation, or for unfinished ones of its entry.
type Listed struct {
	TaskID string
	At     time.Time
}

// Page reads a token's list behind the task named after. An unknown one is an Invalid fault.
func (i Intake) Page(ctx context.Context, tokenID, after string, limit int, ascending bool) ([]Listed, error) {
	if i.Index == nil {
		return nil, nil
	}
	entries, err := i.Index.Page(ctx, tokenID, after, limit, ascending)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, providers.InvalidField("after", "Invalid request: 'after' names no task of the list.")
	}
	return listed(entries), err
}

// Unfinished lists a token's unfinished tasks behind the first `from`, the oldest first, and tells how many there are in all.
func (i Intake) Unfinished(ctx context.Context, tokenID string, from, limit int) (entries []Listed, all int, err error) {
	if i.Index == nil {
		return nil, 0, nil
	}
	found, all, err := i.Index.Unfinished(ctx, tokenID, from, limit)
	return listed(found), all, err
}

func listed(entries []taskindex.Entry) []Listed {
	list := make([]Listed, len(entries))
	for n, entry := range entries {
		list[n] = Listed{TaskID: entry.TaskID, At: entry.At}
	}
	return list
}

// Bury hides the task, created then, whose removal begins, here at once and in other processes as soon as they hear of it.
func (i Intake) Bury(ctx context.Context, tokenID, taskID string, created time.Time) error {
	if i.Index == nil {
		return nil
	}
	if err := i.Index.Bury(ctx, tokenID, taskID, created); err != nil {
		return err
	}
	return tell(ctx, i.Changes, taskindex.Change{TaskID: taskID, Ended: true})
}

// Restore puts a task that exists on its token's list as it is.
func (i Intake) Restore(ctx context.Context, tokenID, taskID string, created time.Time, unfinished bool) error {
	if i.Index == nil {
		return nil
	}
	return i.Index.Restore(ctx, tokenID, taskID, created, unfinished)
}

// Unbury shows a task again whose removal did not begin.
func (i Intake) Unbury(ctx context.Context, tokenID, taskID string, created time.Time, unfinished bool) error {
	if i.Index == nil {
		return nil
	}
	if err := i.Index.Lift(ctx, taskID, created); err != nil {
		return err
	}
	return i.Index.Restore(ctx, tokenID, taskID, created, unfinished)
}

// Buried tells whether the task that was created then is under removal, or with a zero time any that has the id. While Redis
// is away nothing is.
func (i Intake) Buried(ctx context.Context, taskID string, created time.Time) bool {
	if i.Index == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, buriedTimeout)
	defer cancel()
	buried, err := i.Index.Buried(ctx, taskID, created)
	return err == nil && buried
}

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
