package tasks

import (
	"context"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"modelrelay/workflows"
)

// Counts is how many tasks there are, as visibility knows them, a moment late.
type Counts struct {
	// Phases counts the tasks that have not ended, by their phase.
	Phases map[workflows.Phase]int64
	// Stuck are those of them that have been in their phase for longer than usual.
	Stuck int64
	// Workers are the processes that asked for tasks within the last minutes; none: nobody works on them.
	Workers int64
}

// CountTasks counts the namespace's tasks. It costs a handful of visibility requests.
func CountTasks(ctx context.Context, temporal client.Client, namespace, taskQueue string) (Counts, error) {
	c := Counts{Phases: make(map[workflows.Phase]int64)}
	count := func(query string) (int64, error) {
		answer, err := temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: namespace, Query: query})
		if err != nil {
			return 0, fmt.Errorf("count tasks: %w", err)
		}
		return answer.GetCount(), nil
	}
	var err error
	for _, phase := range []workflows.Phase{workflows.PhaseQueued, workflows.PhaseSubmitting, workflows.PhasePolling, workflows.PhaseArchiving} {
		query := fmt.Sprintf("WorkflowType = 'Video' AND ExecutionStatus = 'Running' AND %s = '%s'", workflows.AttrState, phase)
		if c.Phases[phase], err = count(query); err != nil {
			return Counts{}, err
		}
	}
	if c.Stuck, err = count(workflows.StuckQuery(time.Now())); err != nil {
		return Counts{}, err
	}
	queue, err := temporal.DescribeTaskQueue(ctx, taskQueue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
	if err != nil {
		return Counts{}, fmt.Errorf("describe task queue: %w", err)
	}
	workers := make(map[string]bool)
	for _, poller := range queue.GetPollers() {
		workers[poller.GetIdentity()] = true
	}
	c.Workers = int64(len(workers))
	return c, nil
}
