package activities

import (
	"context"
	"sync"

	"modelrelay/storage/taskindex"
)

// RunningCalls are the calls that a worker relays or holds. A cancel ends them at once: Temporal reports it only with the next heartbeat. The
// zero value is ready, nil holds nothing, and it is safe for concurrent use.
type RunningCalls struct {
	mu   sync.Mutex
	ends map[string]context.CancelFunc
}

// Follow ends calls whose cancel other processes report, until ctx ends. ready, if it is not nil, is closed when it hears the first.
func (r *RunningCalls) Follow(ctx context.Context, changes *taskindex.Changes, ready chan<- struct{}) {
	changes.Follow(ctx, ready, func(change taskindex.Change) {
		if change.Cancelled {
			r.end(change.TaskID)
		}
	})
}

// enter returns a context that a cancel of the task ends.
func (r *RunningCalls) enter(ctx context.Context, taskID string) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if r == nil {
		return ctx, cancel
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ends == nil {
		r.ends = make(map[string]context.CancelFunc)
	}
	r.ends[taskID] = cancel
	return ctx, func() {
		r.mu.Lock()
		delete(r.ends, taskID)
		r.mu.Unlock()
		cancel()
	}
}

func (r *RunningCalls) end(taskID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if end := r.ends[taskID]; end != nil {
		end()
	}
}
