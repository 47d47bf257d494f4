package workflows

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"modelrelay/activities"
)

const (
	// retentionSlack is how much longer than outputs a namespace must keep closed workflows, so that an expired task
	// still answers: the longest archive and notification may lie between.
	retentionSlack = 4 * 24 * time.Hour
	// setupTimeout bounds one try to reach Temporal at the start.
	setupTimeout = 10 * time.Second
	// setupRetry is the wait after the first such try, and setupRetryMost the longest: what a namespace lacks somebody has to add.
	setupRetry, setupRetryMost = 2 * time.Second, 15 * time.Second
	// stickyMost is how many running tasks a worker remembers between two of their steps, at about 55 KB each. A task has a
	// dozen steps in its life and is read again from its history, of some thirty events, where it was forgotten.
	stickyMost = 2_000
	// heartbeatMost is the longest that an activity's heartbeats are held back. With them it hears of a cancel: a copy that
	// nobody wants must not go on for most of a minute, the SDK's share of the activity's own limit.
	heartbeatMost = 3 * time.Second
	// deadlockAfter is when a step that does not end is taken for a deadlock, thrown away and begun again. The SDK's second is
	// what a busy machine stands still for while a worker reads its tasks again after a restart; a step must end in ten.
	deadlockAfter = 5 * time.Second
)

// removalsAtOnce is how many removals a worker has a step of at a time, the fewest the SDK takes. Each is a few requests, so
// that a thousand take a minute or two, and what they ask of Temporal and the archive stays small beside the tasks.
const removalsAtOnce = 2

// WorkerOptions are what a Worker needs.
type WorkerOptions struct {
	Namespace *Namespace
	TaskQueue string
	// Version is the worker's own.
	Version Version
	// Retention of outputs, checked against the namespace's.
	Retention time.Duration
	Log       *slog.Logger
}

// Worker runs tasks.
type Worker struct {
	temporal client.Client
	acts     *activities.Activities
	opts     WorkerOptions
}

// NewWorker makes a Worker; Run starts it.
func NewWorker(temporal client.Client, acts *activities.Activities, opts WorkerOptions) *Worker {
	return &Worker{temporal: temporal, acts: acts, opts: opts}
}

// Run works until the context ends, then lets running submits come to their answer (WorkerStopTimeout at most) and
// returns. While Temporal is away at the start it keeps trying. It returns an error only when Temporal refuses the worker.
func (w *Worker) Run(ctx context.Context) error {
	if !w.await(ctx) {
		return nil
	}
	worker.SetStickyWorkflowCacheSize(stickyMost)
	fatal := make(chan error, 1)
	options := worker.Options{
		MaxConcurrentActivityExecutionSize: activities.Places,

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
	options.DisableWorkflowWorker = true
	copies := worker.New(w.temporal, CopyQueue(w.opts.TaskQueue), options)
	copies.RegisterActivity(w.acts.Copier.Archive)
	// The last is stopped first: copies go to another process at once, while submits come to their answer.
	for _, part := range []struct {
		name   string
		worker worker.Worker
	}{{"tasks", run}, {"removals", removals}, {"copies", copies}} {
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

// Register adds the workflows and activities to a worker, or to a replayer or test environment (acts may be nil where
// only workflows run).
func Register(to worker.Registry, acts *activities.Activities) {
	to.RegisterWorkflow(Video)
	to.RegisterWorkflow(Remove)
	to.RegisterWorkflow(Sweep)
	to.RegisterWorkflow(SweepEnded)
	to.RegisterWorkflow(Finish)
	to.RegisterWorkflowWithOptions(Notify, workflow.RegisterOptions{Name: NotifyType})
	if acts != nil {
		acts.Register(to)
	}
}

// RegisterRemovals adds the workflow and activities of removals to a worker of their queue.
func RegisterRemovals(to worker.Registry, acts *activities.Activities) {
	to.RegisterWorkflow(Remove)
	to.RegisterActivity(acts.Remover.Remove)
}

// await waits for Temporal and sets it up; false when the context ended first.
func (w *Worker) await(ctx context.Context) bool {
	told, wait := "", setupRetry
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		err := w.setUp(ctx)
		if err == nil {
			return true
		}
		if text := err.Error(); text != told {
			w.opts.Log.Warn("temporal is not ready, waiting", "err", err)
			told = text
		}
		timer.Reset(wait)
		wait = min(2*wait, setupRetryMost)
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
		}
	}
}

// setUp adds missing search attributes and reports a namespace that forgets too soon.
func (w *Worker) setUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	if err := w.opts.Namespace.Ensure(ctx); err != nil {
		return err
	}
	if err := w.opts.Namespace.Check(ctx, w.opts.Retention); err != nil {
		w.opts.Log.Warn("namespace needs mending", "err", err)
	}
	if err := EnsureSweep(ctx, w.temporal, w.opts.TaskQueue); err != nil {
		w.opts.Log.Warn("expired videos are not removed", "err", err)
	}
	if err := EnsureSweepEnded(ctx, w.temporal, w.opts.TaskQueue); err != nil {
		w.opts.Log.Warn("tasks that are ended in the engine's own tools are not settled", "err", err)
	}
	return nil
}
