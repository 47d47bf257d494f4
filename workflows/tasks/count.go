package tasks

import (
	"context"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"modelrelay/workflows"
)

// Counts are the numbers of tasks in visibility, with a delay of moments.
type Counts struct {
	// Phases counts the unfinished tasks by phase.
	Phases map[workflows.Phase]int64
	// Stuck counts those that have been in their phase for longer than usual.
	Stuck int64
	// Workers counts the processes that polled the task queue within the last minutes; 0: no worker is running.
	Workers int64
}

const (
	// countsTTL is how long a result is reused.
	countsTTL = 10 * time.Second
	// countsRefresh is the age from which a result is refreshed in the background while it is still returned.
	countsRefresh = 5 * time.Second
	// countsTimeout bounds all requests of one result. The first failed one ends the others.
	countsTimeout = 10 * time.Second
	// countsPast is the period for which failures are counted.
	countsPast = 24 * time.Hour
	// countsAtOnce bounds the concurrent requests, so that a small server has capacity left for tasks.
	countsAtOnce = 3
)

// RecentCounts are Counts and the recent failures.
type RecentCounts struct {
	Counts

	// Failed counts the tasks that failed within the last 24 hours, Undelivered the webhooks whose delivery failed in that time.
	Failed, Undelivered int64
	// At is the time at which the requests began.
	At time.Time
}

// Counter counts a namespace's tasks and shares the result with all callers. It is safe for concurrent use.
type Counter struct {
	temporal             client.Client
	namespace, taskQueue string
	taken                *sharedCache[struct{}, RecentCounts]
}

// NewCounter returns a Counter over a Temporal client, which the caller closes.
func NewCounter(temporal client.Client, namespace, taskQueue string) *Counter {
	c := &Counter{temporal: temporal, namespace: namespace, taskQueue: taskQueue, taken: newSharedCache[struct{}, RecentCounts](countsTTL)}
	c.taken.refreshAfter = countsRefresh
	return c
}

// Counts returns counts of the last ten seconds, which all callers share. Its error is an Overloaded *providers.Fault.
func (c *Counter) Counts(ctx context.Context) (RecentCounts, error) {
	return c.taken.do(ctx, struct{}{}, func(ctx context.Context) (RecentCounts, error) {
		ctx, cancel := context.WithTimeout(ctx, countsTimeout)
		defer cancel()
		counts := RecentCounts{At: time.Now().UTC()}
		since := counts.At.Add(-countsPast).Format(time.RFC3339)
		past := func(of string, phase workflows.Phase) string {
			return fmt.Sprintf("%s AND %s = '%s' AND ExecutionStatus != 'ContinuedAsNew' AND CloseTime >= '%s'", of, workflows.AttrState, phase,
				since)
		}
		var err error
		counts.Counts, err = CountTasks(ctx, c.temporal, c.namespace, c.taskQueue,
			tally{&counts.Failed, past(workflows.OfTasks, workflows.PhaseFailed)},
			tally{&counts.Undelivered, past("WorkflowType = '"+workflows.NotifyType+"'", workflows.PhaseUndelivered)})
		if err != nil {
			return RecentCounts{}, unavailable("The task engine", err)
		}
		return counts, nil
	})
}

func count(ctx context.Context, temporal client.Client, namespace, query string) (int64, error) {
	ctx, cancel := context.WithTimeout(interactive(ctx), queryTimeout)
	defer cancel()
	answer, err := temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: namespace, Query: query})
	if err != nil {
		return 0, fmt.Errorf("count tasks: %w", err)
	}
	return answer.GetCount(), nil
}

type tally struct {
	into  *int64
	query string
}

// CountTasks counts the namespace's tasks, and others in addition. Each is one visibility request; a failed one ends the others.
func CountTasks(ctx context.Context, temporal client.Client, namespace, taskQueue string, others ...tally) (Counts, error) {
	var c Counts
	phases := []workflows.Phase{
		workflows.PhaseQueued, workflows.PhaseSubmitting, workflows.PhasePolling, workflows.PhaseArchiving,
		workflows.PhaseCalling,
	}
	in := make([]int64, len(phases))
	tallies := append(others, tally{&c.Stuck, workflows.StuckQuery(time.Now())})
	for i, phase := range phases {
		tallies = append(tallies, tally{&in[i], fmt.Sprintf(workflows.OfTasks+" AND ExecutionStatus = 'Running' AND %s = '%s'",
			workflows.AttrState, phase)})
	}
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(countsAtOnce)
	all.Go(func() (err error) {
		c.Workers, err = countWorkers(ctx, temporal, taskQueue)
		return err
	})
	for _, t := range tallies {
		all.Go(func() (err error) {
			*t.into, err = count(ctx, temporal, namespace, t.query)
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return Counts{}, err
	}
	c.Phases = make(map[workflows.Phase]int64, len(phases))
	for i, phase := range phases {
		c.Phases[phase] = in[i]
	}
	return c, nil
}

// countWorkers counts the processes that polled the task queue within the last minutes.
func countWorkers(ctx context.Context, temporal client.Client, taskQueue string) (int64, error) {
	queue, err := temporal.DescribeTaskQueue(interactive(ctx), taskQueue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
	if err != nil {
		return 0, fmt.Errorf("describe task queue: %w", err)
	}
	workers := make(map[string]bool)
	for _, poller := range queue.GetPollers() {
		workers[poller.GetIdentity()] = true
	}
	return int64(len(workers)), nil
}
