package workflows

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"modelrelay/activities"
)

const (
	// retentionSlack is added to the retention of outputs for closed workflows. It covers the longest archive and notification.
	retentionSlack = 4 * 24 * time.Hour
	// setupTimeout bounds one try to reach Temporal at the start.
	setupTimeout = 10 * time.Second
	// setupRetry is the wait after the first such try, and setupRetryMost the longest.
	setupRetry, setupRetryMost = 2 * time.Second, 15 * time.Second
	// stickyMost is the number of tasks that a worker caches between two steps, at 55 KB each. Others are replayed from some thirty events.
	stickyMost = 2_000
	// heartbeatMost is the longest delay of a heartbeat, which also returns a cancel. The SDK's default is most of a minute.
	heartbeatMost = 3 * time.Second
	// deadlockAfter is the time after which the SDK retries a step. Its default, a second, is too short for a replay of many tasks.
	deadlockAfter = 5 * time.Second
	// removalsAtOnce is the number of concurrent removal steps of a worker, the fewest that the SDK supports: a thousand take a minute.
	removalsAtOnce = 2
)

// WorkerOptions configure a Worker. All are required except Version.
type WorkerOptions struct {
	Namespace *Namespace
	TaskQueue string
	// CallQueue is the task queue of calls, Calls the number of concurrent calls of the worker, and Grace the time for them at its stop.
	CallQueue string
	Calls     int
	Grace     time.Duration
	// Version is the version of the worker.
	Version Version
	// Retention is the retention of outputs; the worker checks that the namespace's retention suffices.
	Retention time.Duration
	Log       *slog.Logger
}

// Worker runs the workflows and activities of tasks.
type Worker struct {
	temporal client.Client
	acts     *activities.Activities
	opts     WorkerOptions
}

// NewWorker returns a Worker; Run starts it.
func NewWorker(temporal client.Client, acts *activities.Activities, opts WorkerOptions) *Worker {
	return &Worker{temporal: temporal, acts: acts, opts: opts}
}

// Run works until ctx ends, then waits for submits. It retries while Temporal is away at the start; its error is Temporal's refusal.
func (w *Worker) Run(ctx context.Context) error {
	if !w.await(ctx) {
		return nil
	}
	worker.SetStickyWorkflowCacheSize(stickyMost)
	fatal := make(chan error, 1)
	options := worker.Options{
		MaxConcurrentActivityExecutionSize: activities.ActivitySlots,

		WorkerStopTimeout:            WorkerStopTimeout,
		MaxHeartbeatThrottleInterval: heartbeatMost,
		DeadlockDetectionTimeout:     deadlockAfter,
		OnFatalError: func(err error) {
			select {
			case fatal <- err:
			default:
			}
		},
	}
	options = w.versioned(ctx, options)
	run := worker.New(w.temporal, w.opts.TaskQueue, options)
	Register(run, w.acts)
	few := options
	few.WorkerStopTimeout = 0
	few.MaxConcurrentActivityExecutionSize, few.MaxConcurrentWorkflowTaskExecutionSize = removalsAtOnce, removalsAtOnce
	few.MaxConcurrentLocalActivityExecutionSize = removalsAtOnce
	removals := worker.New(w.temporal, RemovalQueue(w.opts.TaskQueue), few)
	RegisterRemovals(removals, w.acts)
	relays := options
	relays.WorkerStopTimeout = w.opts.Grace + stopMargin
	relays.MaxConcurrentActivityExecutionSize = w.opts.Calls + activities.CallRoom(w.opts.Calls)
	calls := worker.New(w.temporal, w.opts.CallQueue, relays)
	Register(calls, w.acts)
	following, stopFollowing := context.WithCancel(context.WithoutCancel(ctx))
	var follower sync.WaitGroup
	follower.Go(func() { w.acts.Relayer.Running.Follow(following, w.acts.Relayer.Changes, nil) })
	defer follower.Wait()
	defer stopFollowing()
	options.DisableWorkflowWorker = true
	copies := worker.New(w.temporal, CopyQueue(w.opts.TaskQueue), options)
	copies.RegisterActivity(w.acts.Copier.Archive)
	// The last one stops first: other processes take over copies at once, while this one completes its submits.
	for _, part := range []struct {
		name   string
		worker worker.Worker
	}{{"tasks", run}, {"removals", removals}, {"calls", calls}, {"copies", copies}} {
		if err := part.worker.Start(); err != nil {
			return fmt.Errorf("start the worker of %s: %w", part.name, err)
		}
		defer part.worker.Stop()
	}
	w.opts.Log.Info("worker started", "namespace", w.opts.Namespace.name, "task_queue", w.opts.TaskQueue)
	select {
	case <-ctx.Done():
		return nil
	case err := <-fatal:
		return fmt.Errorf("worker: %w", err)
	}
}

// Register adds all workflows and activities to a worker, a replayer or a test environment. acts may be nil if only workflows run.
func Register(to worker.Registry, acts *activities.Activities) {
	for _, run := range []any{Video, Call, Remove, Sweep, SweepEnded, Finish, Notify} {
		to.RegisterWorkflow(run)
	}
	if acts != nil {
		acts.Register(to)
	}
}

// RegisterRemovals adds the workflow and the activity of removals to a worker of their queue.
func RegisterRemovals(to worker.Registry, acts *activities.Activities) {
	to.RegisterWorkflow(Remove)
	to.RegisterActivity(acts.Remover.Remove)
}

// await prepares Temporal, with retries; it returns false if ctx ended first.
func (w *Worker) await(ctx context.Context) bool {
	reported, wait := "", setupRetry
	for {
		err := w.setUp(ctx)
		if err == nil {
			return true
		}
		if text := err.Error(); text != reported {
			w.opts.Log.Warn("temporal is not ready, waiting", "error", err)
			reported = text
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
		wait = min(2*wait, setupRetryMost)
	}
}

// setUp adds missing search attributes, checks the namespace and creates the schedules.
func (w *Worker) setUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	if err := w.opts.Namespace.Ensure(ctx); err != nil {
		return err
	}
	if err := w.opts.Namespace.Check(ctx, w.opts.Retention); err != nil {
		w.opts.Log.Warn("namespace does not meet the requirements", "error", err)
	}
	if err := EnsureSweep(ctx, w.temporal, w.opts.TaskQueue); err != nil {
		w.opts.Log.Warn("expired outputs are not removed", "error", err)
	}
	if err := EnsureSweepEnded(ctx, w.temporal, w.opts.TaskQueue); err != nil {
		w.opts.Log.Warn("tasks that are terminated in Temporal's own tools are not settled", "error", err)
	}
	return nil
}
