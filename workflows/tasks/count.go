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
	// Failed counts the tasks that failed within the last 24 hours, Undelivered the webhooks whose delivery failed in that time.
	Failed, Undelivered int64
	// Workers counts the processes that polled the task queue within the last minutes; 0: no worker is running.
	Workers int64
	// At is the time at which the requests began.
	At time.Time
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

// Counts returns counts of the last ten seconds, which all callers share. Its error is an Overloaded *providers.Fault.
func (o *Operator) Counts(ctx context.Context) (Counts, error) {
	return o.counts.do(ctx, struct{}{}, o.countTasks)
}

// countTasks sends one visibility request for each figure.
func (o *Operator) countTasks(ctx context.Context) (Counts, error) {
	ctx, cancel := context.WithTimeout(ctx, countsTimeout)
	defer cancel()
	c := Counts{At: time.Now().UTC()}
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(countsAtOnce)
	all.Go(func() (err error) {
		c.Workers, err = o.countWorkers(ctx)
		return err
	})
	into := func(figure *int64, query string) {
		all.Go(func() (err error) {
			*figure, err = count(ctx, o.temporal, o.namespace, query)
			return err
		})
	}
	past := func(of string, phase workflows.Phase) string {
		return fmt.Sprintf("%s AND %s = '%s' AND ExecutionStatus != 'ContinuedAsNew' AND CloseTime >= '%s'", of, workflows.AttrState, phase,
			c.At.Add(-countsPast).Format(time.RFC3339))
	}
	into(&c.Failed, past(workflows.OfTasks, workflows.PhaseFailed))
	into(&c.Undelivered, past("WorkflowType = '"+workflows.NotifyType+"'", workflows.PhaseUndelivered))
	into(&c.Stuck, workflows.StuckQuery(c.At))
	phases := []workflows.Phase{
		workflows.PhaseQueued, workflows.PhaseSubmitting, workflows.PhasePolling, workflows.PhaseArchiving, workflows.PhaseCalling,
	}
	in := make([]int64, len(phases))
	for i, phase := range phases {
		into(&in[i], fmt.Sprintf(workflows.OfTasks+" AND ExecutionStatus = 'Running' AND %s = '%s'", workflows.AttrState, phase))
	}
	if err := all.Wait(); err != nil {
		return Counts{}, unavailable("The task engine", err)
	}
	c.Phases = make(map[workflows.Phase]int64, len(phases))
	for i, phase := range phases {
		c.Phases[phase] = in[i]
	}
	return c, nil
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

// countWorkers counts the processes that polled the task queue within the last minutes.
func (o *Operator) countWorkers(ctx context.Context) (int64, error) {
	queue, err := o.temporal.DescribeTaskQueue(interactive(ctx), o.taskQueue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
	if err != nil {
		return 0, fmt.Errorf("describe task queue: %w", err)
	}
	workers := make(map[string]bool)
	for _, poller := range queue.GetPollers() {
		workers[poller.GetIdentity()] = true
	}
	return int64(len(workers)), nil
}
