package activities

import (
	"context"
	"errors"
	"sync"

	"go.temporal.io/sdk/temporal"

	"modelrelay/storage/taskindex"
)

// RunningCalls are the calls that a worker relays or holds. A cancel ends them at once: Temporal reports it only with the next heartbeat.
// The zero value is ready, nil holds nothing, and it is safe for concurrent use.
type RunningCalls struct {
	mu      sync.Mutex
	running map[string]*runningCall
}

// runningCall is a try of a call. done is closed at its end.
type runningCall struct {
	end  context.CancelFunc
	done chan struct{}
}

// Follow ends calls whose cancel other processes report, until ctx ends. ready, if it is not nil, is closed when Follow receives reports.
func (r *RunningCalls) Follow(ctx context.Context, changes *taskindex.Changes, ready chan<- struct{}) {
	changes.Follow(ctx, ready, func(change taskindex.Change) {
		if change.Cancelled {
			r.end(change.TaskID)
		}
	})
}

// enter returns a context that a cancel of the task ends. The activity's ctx may also end because a heartbeat was late: Temporal was
// unavailable, or the process was stopped for a while. Then the try continues although Temporal begins another one. If that has the same
// worker, it waits here for the end of the first try and finds the stored answer.
func (r *RunningCalls) enter(ctx context.Context, taskID string) (context.Context, context.CancelFunc) {
	ctx, cancel := untilCancelled(ctx)
	if r == nil {
		return ctx, cancel
	}
	call := &runningCall{end: cancel, done: make(chan struct{})}
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

// untilCancelled returns a context with the values of an activity's that ends only if the activity is cancelled, or its worker ends.
func untilCancelled(ctx context.Context) (context.Context, context.CancelFunc) {
	free, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); errors.Is(cause, context.Canceled) || temporal.IsCanceledError(cause) {
			cancel()
		}
	})
	return free, func() { stop(); cancel() }
}
