package tasks

import (
	"context"
	"sync"
	"time"

	"modelrelay/activities"
	"modelrelay/storage/taskindex"
	"modelrelay/workflows"
)

const (
	// watchEvery is the interval at which a watched task is read without a hint. Estimated progress advances in these steps.
	watchEvery = 10 * time.Second
	// watchSoon is the wait from a hint to the read: a heartbeat reaches Temporal a moment after the activity sent it.
	watchSoon = 200 * time.Millisecond
)

// watchAfter holds the reads after a hint, counted from it: a busy workflow processes an activity's result much later.
var watchAfter = [...]time.Duration{ //nolint:gochecknoglobals // a constant table; Go has no constant arrays
	watchSoon, 1200 * time.Millisecond, 3 * time.Second,
}

// endedSoon is watchSoon for the end of a call: its activity reports the end immediately before its result.
const endedSoon = 30 * time.Millisecond

// Watch returns the task at the first change of its state, progress or queue position after last; at once if
// it has changed or ended. It tolerates outages of Temporal. Its error is the error of ctx, or NotFound if the task was removed. All
// watchers of a task in a process share their reads.
func (c *Client) Watch(ctx context.Context, last Task) (Task, error) {
	if last.Ended() {
		return last, nil
	}
	wake, leave := c.watches.join(last.ID)
	defer leave()
	for {
		changed := wake()
		task, err := c.Find(ctx, last.ID, last.Token)
		switch {
		case ctx.Err() != nil:
			return Task{}, ctx.Err()
		case isNotFound(err):
			return Task{}, err
		case err == nil && advanced(last, task):
			if task.Ended() { // no other process may return an older state now
				c.markChanged(ctx, task.ID)
			}
			return task, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Task{}, ctx.Err()
		}
	}
}

// advanced reports whether the task has advanced. An older read by another process is not a change.
func advanced(last, now Task) bool {
	next := now.State != last.State && now.State != workflows.Queued
	return next || now.Progress > last.Progress || now.QueuePosition != last.QueuePosition
}

// Follow receives the changes that other processes report, until ctx ends. Without it watchers see changes within ten seconds.
func (c *Client) Follow(ctx context.Context) {
	c.opts.Changes.Follow(ctx, nil, c.onChange)
}

// onChange processes a hint: reads from before it are not reused.
func (c *Client) onChange(change taskindex.Change) {
	ended := change.Report == taskindex.Ended
	if ended {
		c.reads.forget(change.TaskID)
	} else {
		c.reads.invalidate(change.TaskID)
	}
	soon := watchSoon
	if ended && activities.KindOf(change.TaskID) == activities.KindCall {
		soon = endedSoon
	}
	c.watches.hint(change.TaskID, soon)
}

// watches holds the watched tasks of a process. A timer runs while there are watchers, and for one more read, so that no hint is missed.
type watches struct {
	mu    *sync.Mutex
	tasks map[string]*watched
}

type watched struct {
	watchers int
	wake     chan struct{} // closed at the next read
	due      []time.Time   // the times of the next reads, in order; never empty
	timer    *time.Timer
}

func newWatches() watches { return watches{mu: &sync.Mutex{}, tasks: make(map[string]*watched)} }

// join adds a watcher. wake returns a channel that is closed at the next read; leave removes the watcher.
func (w watches) join(id string) (wake func() <-chan struct{}, leave func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t, ok := w.tasks[id]
	if !ok {
		t = &watched{wake: make(chan struct{})}
		w.tasks[id] = t
		// A shared read may be older than a hint that came before this watcher.
		t.due = []time.Time{time.Now().Add(readTTL)}
		t.timer = time.AfterFunc(readTTL, func() { w.wakeAll(id) })
	}
	t.watchers++
	wake = func() <-chan struct{} {
		w.mu.Lock()
		defer w.mu.Unlock()
		return t.wake
	}
	return wake, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		t.watchers--
	}
}

// hint schedules reads of a task, the first one soon.
func (w watches) hint(id string, soon time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t, ok := w.tasks[id]
	if !ok {
		return
	}
	now := time.Now()
	first := now.Add(soon)
	if t.due[0].Before(first) {
		first = t.due[0] // frequent hints must not delay the read
	}
	t.due = t.due[:0]
	t.due = append(t.due, first)
	if soon < watchSoon {
		t.due = append(t.due, now.Add(watchSoon/2), now.Add(watchSoon))
	}
	for _, after := range watchAfter[1:] {
		t.due = append(t.due, now.Add(after))
	}
	t.timer.Reset(time.Until(first))
}

// wakeAll wakes the watchers of a task and schedules the next read. It drops a task without watchers.
func (w watches) wakeAll(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t, ok := w.tasks[id]
	if !ok {
		return
	}
	if early := time.Until(t.due[0]); early > 0 { // a hint came after the timer fired
		t.timer.Reset(early)
		return
	}
	if t.watchers == 0 && len(t.due) == 1 {
		delete(w.tasks, id)
		return
	}
	close(t.wake)
	t.wake = make(chan struct{})
	if t.due = t.due[1:]; len(t.due) == 0 {
		t.due = append(t.due, time.Now().Add(watchEvery))
	}
	t.timer.Reset(time.Until(t.due[0]))
}
