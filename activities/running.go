package activities

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.temporal.io/sdk/temporal"

	"modelrelay/storage/taskindex"
)

const (
	// askWait is the wait for the answer of another worker to Asked, and askTries the number of such questions: its connection to Redis may
	// be broken, as its connection to Temporal was.
	askWait, askTries = time.Second, 2
	// askEvery is the time between two such questions while the other worker sends the call. It reports the end by itself.
	askEvery = 5 * time.Second
)

// RunningCalls are the calls that a worker relays or holds. A cancel ends them at once: Temporal reports it only with the next heartbeat.
// The zero value is ready, nil holds nothing, and it is safe for concurrent use.
type RunningCalls struct {
	mu      sync.Mutex
	running map[string]*runningCall
}

// runningCall is a try of a call. done is closed at its end. changes receives the reports of other workers about the task.
type runningCall struct {
	end     context.CancelFunc
	done    chan struct{}
	changes chan taskindex.Change
	sends   bool // the try has the claim of the call; guarded by mu
}

// Follow ends calls whose cancel other processes report, and answers other workers that ask for calls, until ctx ends. ready, if it is not
// nil, is closed when Follow receives reports.
func (r *RunningCalls) Follow(ctx context.Context, changes *taskindex.Changes, ready chan<- struct{}) {
	var answers sync.WaitGroup
	defer answers.Wait()
	changes.Follow(ctx, ready, func(change taskindex.Change) {
		switch {
		case change.Cancelled:
			r.end(change.TaskID)
		case change.Asked && r.sends(change.TaskID):
			answers.Go(func() {
				_ = changes.Publish(ctx, taskindex.Change{TaskID: change.TaskID, Sending: true}) // the worker asks again
			})
		case change.Sending, change.Ended:
			r.hear(change)
		}
	})
}

// claimed records that this worker sends the call of a task.
func (r *RunningCalls) claimed(taskID string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if call := r.running[taskID]; call != nil {
		call.sends = true
	}
}

// sends reports whether this worker sends the call of a task.
func (r *RunningCalls) sends(taskID string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	call := r.running[taskID]
	return call != nil && call.sends
}

// hear passes a report of another worker to the call of the task.
func (r *RunningCalls) hear(change taskindex.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if call := r.running[change.TaskID]; call != nil {
		select {
		case call.changes <- change:
		default: // the call has not processed the previous report
		}
	}
}

// heard returns the reports of other workers about the call of a task; nil if this worker does not have the call.
func (r *RunningCalls) heard(taskID string) <-chan taskindex.Change {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if call := r.running[taskID]; call != nil {
		return call.changes
	}
	return nil
}

// sentElsewhere asks the other workers whether one of them sends the call. Temporal starts a try although the one before continues, if it
// received no heartbeat for some time. While Redis is unavailable, the answer is no.
func (c *calling) sentElsewhere(ctx context.Context) bool {
	heard := c.Running.heard(c.in.TaskID)
	if heard == nil || c.Changes == nil {
		return false
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for range askTries {
		if c.Changes.Publish(ctx, taskindex.Change{TaskID: c.in.TaskID, Asked: true}) != nil {
			return false
		}
		timer.Reset(askWait)
		select {
		case change := <-heard:
			return change.Sending
		case <-timer.C:
		case <-ctx.Done():
			return false
		}
	}
	return false
}

// awaitOther waits while another worker sends the call.
func (c *calling) awaitOther(ctx context.Context) {
	c.mu.Lock()
	c.progress.Attempts = max(c.progress.Attempts, c.sent()+1) // its heartbeat may be lost
	c.mu.Unlock()
	c.enter(StageAnswering)
	heard := c.Running.heard(c.in.TaskID)
	for c.sentElsewhere(ctx) {
		next := time.NewTimer(askEvery)
		select {
		case change := <-heard:
			if change.Ended {
				next.Stop()
				return
			}
		case <-next.C:
		case <-ctx.Done():
		}
		next.Stop()
	}
}

// enter returns a context that a cancel of the task ends. The activity's ctx may also end because a heartbeat was late: Temporal was
// unavailable, or the process was stopped for a while. Then the try continues although Temporal begins another one. If that is on the same
// worker, it waits in enter for the end of the first try and finds the stored answer.
func (r *RunningCalls) enter(ctx context.Context, taskID string) (context.Context, context.CancelFunc) {
	ctx, cancel := untilCancelled(ctx)
	if r == nil {
		return ctx, cancel
	}
	call := &runningCall{end: cancel, done: make(chan struct{}), changes: make(chan taskindex.Change, 1)}
	for {
		earlier := r.begin(taskID, call)
		if earlier == nil {
			break
		}
		select {
		case <-earlier.done:
		case <-ctx.Done():
			earlier.end()
			<-earlier.done
		}
	}
	return ctx, func() {
		r.mu.Lock()
		delete(r.running, taskID)
		r.mu.Unlock()
		cancel()
		close(call.done)
	}
}

// begin records the try of a task and returns nil. If another try of the task is running, begin returns that one.
func (r *RunningCalls) begin(taskID string, call *runningCall) *runningCall {
	r.mu.Lock()
	defer r.mu.Unlock()
	if earlier := r.running[taskID]; earlier != nil {
		return earlier
	}
	if r.running == nil {
		r.running = make(map[string]*runningCall)
	}
	r.running[taskID] = call
	return nil
}

func (r *RunningCalls) end(taskID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if call := r.running[taskID]; call != nil {
		call.end()
	}
}

// untilCancelled returns a context with the values of an activity's ctx. It ends only if the activity is cancelled or its worker ends.
func untilCancelled(ctx context.Context) (context.Context, context.CancelFunc) {
	free, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); errors.Is(cause, context.Canceled) || temporal.IsCanceledError(cause) {
			cancel()
		}
	})
	return free, func() { stop(); cancel() }
}
