package activities

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
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
// The zero value is ready. It is safe for concurrent use.
type RunningCalls struct{ byTask sync.Map } // of *runningCall

// runningCall is a try of a call. done is closed at its end. changes receives the reports of other workers about the task. sends: the try
// has the claim of the call.
type runningCall struct {
	end     context.CancelFunc
	done    chan struct{}
	changes chan taskindex.Change
	sends   atomic.Bool
}

// Follow ends calls whose cancel other processes report, and answers other workers that ask for calls, until ctx ends. ready, if it is not
// nil, is closed when Follow receives reports.
func (r *RunningCalls) Follow(ctx context.Context, changes *taskindex.Changes, ready chan<- struct{}) {
	var answers sync.WaitGroup
	defer answers.Wait()
	changes.Follow(ctx, ready, func(change taskindex.Change) {
		found, _ := r.byTask.Load(change.TaskID)
		call, running := found.(*runningCall)
		switch {
		case !running:
		case change.Report == taskindex.Cancelled:
			call.end()
		case change.Report == taskindex.Asked && call.sends.Load():
			answers.Go(func() {
				_ = changes.Publish(ctx, taskindex.Change{TaskID: change.TaskID, Report: taskindex.Sending}) // the worker asks again
			})
		case change.Report == taskindex.Sending, change.Report == taskindex.Ended:
			select {
			case call.changes <- change:
			default: // the call has not processed the previous report
			}
		}
	})
}

// sentElsewhere asks the other workers whether one of them sends the call. Temporal starts a try although the one before continues, if it
// received no heartbeat for some time. While Redis is unavailable, the answer is no.
func (c *calling) sentElsewhere(ctx context.Context) bool {
	for range askTries {
		if c.Changes == nil || c.Changes.Publish(ctx, taskindex.Change{TaskID: c.in.TaskID, Report: taskindex.Asked}) != nil {
			return false
		}
		if change, heard := c.hear(ctx, askWait); heard {
			return change.Report == taskindex.Sending
		}
	}
	return false
}

// hear returns the next report of another worker about the task; false: there was none in time.
func (c *calling) hear(ctx context.Context, within time.Duration) (change taskindex.Change, heard bool) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	select {
	case change = <-c.running.changes:
		return change, true
	case <-ctx.Done():
		return change, false
	}
}

// awaitOther waits while another worker sends the call.
func (c *calling) awaitOther(ctx context.Context) {
	c.update(func(p *CallProgress) { p.Attempts = max(p.Attempts, c.sent()+1) }) // its heartbeat may be lost
	c.enter(StageAnswering)
	for c.sentElsewhere(ctx) {
		if change, _ := c.hear(ctx, askEvery); change.Report == taskindex.Ended {
			return
		}
	}
}

// register records the call as running, until leave, and returns a context that a cancel of the task ends. The activity's ctx may also end
// because a heartbeat was late: Temporal was unavailable, or the process was stopped for a while. Then the try continues although Temporal
// begins another one. If that is on the same worker, it waits here for the end of the first try and finds the stored answer.
func (c *calling) register(ctx context.Context) (_ context.Context, leave func()) {
	ctx, cancel := untilCancelled(ctx)
	c.running = &runningCall{end: cancel, done: make(chan struct{}), changes: make(chan taskindex.Change, 1)}
	for {
		found, _ := c.Running.byTask.LoadOrStore(c.in.TaskID, c.running)
		earlier, _ := found.(*runningCall)
		if earlier == c.running {
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
		c.Running.byTask.Delete(c.in.TaskID)
		cancel()
		close(c.running.done)
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
