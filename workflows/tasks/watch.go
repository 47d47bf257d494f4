package tasks

import (
	"context"
	"sync"
	"time"

	"modelrelay/storage/taskindex"
	"modelrelay/workflows"
)

const (
	// watchEvery is how often a watched task is looked at that nobody says has changed. Progress that is estimated from
	// the usual duration moves in these steps.
	watchEvery = 10 * time.Second
	// watchSoon is the wait before the look after a hint: a heartbeat lands a moment after the activity sent it.
	watchSoon = 200 * time.Millisecond
)

// watchAfter are the looks that follow a hint, counted from it: what a workflow makes of an activity's answer lands
// later than the answer, on a busy server much later.
var watchAfter = [...]time.Duration{watchSoon, 1200 * time.Millisecond, 3 * time.Second} //nolint:gochecknoglobals // a constant table; Go has no constant arrays

// Watch returns the task at the first change of its state, progress or queue position after last, as its token sees it;
// at once where it has changed already, and where it has ended. It sits out a Temporal that is away. Its error is ctx's,
// or NotFound when the task was removed. All watchers of a task in a process share their looks.
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
		case err == nil && moved(last, task):
			if task.Ended() { // what the caller is told must not be undone by another process
				c.disturb(ctx, task.ID)
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

// moved tells whether a watcher wants to hear of the task. An older look of another process is no news.
func moved(last, now Task) bool {
	forth := now.State != last.State && now.State != workflows.Queued
	return forth || now.Progress > last.Progress || now.QueuePosition != last.QueuePosition
}

// Follow hears from other processes which tasks have changed, until ctx ends. Without it, and while Redis is away,
// watchers hear of changes within ten seconds.
func (c *Client) Follow(ctx context.Context) {
	c.opts.Changes.Follow(ctx, nil, c.heard)
}

// heard takes a hint: what was read before is not told again without the engine.
func (c *Client) heard(change taskindex.Change) {
	if change.Ended {
		c.reads.forget(change.TaskID)
	} else {
		c.reads.doubt(change.TaskID)
	}
	c.watches.hint(change.TaskID)
}

// watches are the watched tasks of a process. Their timers run as long as somebody watches, and one look longer, so that
// a watcher who comes back at once misses no hint.
type watches struct {
	mu    *sync.Mutex
	tasks map[string]*watched
}

// watched is one task under watch.
type watched struct {
	watchers int
	wake     chan struct{} // closed at the next look
	due      []time.Time   // the looks to come, in order; never empty
	timer    *time.Timer
}

func newWatches() watches { return watches{mu: &sync.Mutex{}, tasks: make(map[string]*watched)} }

// join begins to watch a task. wake gives a channel that is closed at the next look; leave ends the watch.
func (w watches) join(id string) (wake func() <-chan struct{}, leave func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t, ok := w.tasks[id]
	if !ok {
		t = &watched{wake: make(chan struct{})}
		w.tasks[id] = t
		// A look that is shared with others may be older than a hint nobody listened to.
		t.due = []time.Time{time.Now().Add(readFor)}
		t.timer = time.AfterFunc(readFor, func() { w.look(id) })
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

// hint makes the looks of a task come soon.
func (w watches) hint(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t, ok := w.tasks[id]
	if !ok {
		return
	}
	now := time.Now()
	first := now.Add(watchSoon)
	if t.due[0].Before(first) {
		first = t.due[0] // hints that come one after another must not put the look off
	}
	t.due = t.due[:0]
	t.due = append(t.due, first)
	for _, after := range watchAfter[1:] {
		t.due = append(t.due, now.Add(after))
	}
	t.timer.Reset(time.Until(first))
}

// look wakes the watchers of a task and sets the time of the next look. A task that nobody watches is left alone.
func (w watches) look(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t, ok := w.tasks[id]
	if !ok {
		return
	}
	if early := time.Until(t.due[0]); early > 0 { // a hint came between the timer and its turn
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
