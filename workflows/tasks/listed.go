package tasks

import (
	"context"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"modelrelay/storage/fair"
	"modelrelay/storage/taskindex"
	"modelrelay/workflows"
)

const (
	// From preloadLeast uncached tasks on, one visibility request costs less than describing each. It reads at most preloadMost tasks.
	preloadLeast, preloadMost = 8, 200
	// preloadTimeout bounds the request. If it fails, its tasks are described one by one.
	preloadTimeout = time.Second
	// preloadsOfAll and preloadsOfOne bound the visibility requests a second, of all lists and of one token. A cluster answers ten.
	preloadsOfAll, preloadsOfOne = 4, 2
)

// preload reads the ended tasks of a page with one visibility request, except those that Redis reports as changed and those that differ
// from their list entry, because visibility may be late. It does nothing if the request fails.
func (c *Client) preload(ctx context.Context, tokenID string, entries []taskindex.Entry) {
	created := make(map[string]time.Time, len(entries))
	var terms []string
	for _, entry := range entries {
		if len(terms) < preloadMost && IsTaskID(entry.TaskID) && !c.reads.has(entry.TaskID) {
			created[entry.TaskID] = entry.At
			terms = append(terms, "'"+entry.TaskID+"'")
		}
	}
	now := time.Now()
	may := func(of string, most int) bool {
		return c.preloads.Take(of, 1, fair.Quota{Units: most, Per: time.Second}, now) == 0
	}
	if len(terms) < preloadLeast || !may(tokenID, preloadsOfOne) || !may("", preloadsOfAll) {
		return
	}
	reading, cancel := context.WithTimeout(interactive(ctx), preloadTimeout)
	defer cancel()
	answer, err := c.temporal.ListWorkflow(reading, &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: c.opts.Namespace, PageSize: pageMost,
		Query: fmt.Sprintf("WorkflowId IN (%s) AND ExecutionStatus != 'ContinuedAsNew'", strings.Join(terms, ", ")),
	})
	if err != nil {
		c.opts.Log.DebugContext(ctx, "ended tasks not read together", "error", err)
		return
	}
	ended := make(map[string]Task)
	for id, info := range newestRuns(answer.GetExecutions()) {
		task, m, err := read(id, &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: info}, now)
		at, requested := created[id]
		same := requested && task.Token == tokenID && at.Equal(task.CreatedAt.Truncate(time.Millisecond))
		if err != nil || !same || task.removed || !task.Ended() {
			continue
		}
		if m.RequestObject != "" {
			c.complete(ctx, &task, m.RequestObject)
		}
		ended[id] = task
	}
	ids := make([]string, 0, len(ended))
	for id := range ended {
		ids = append(ids, id)
	}
	unchanged, err := c.opts.Index.UnchangedOf(reading, ids)
	if err != nil {
		return
	}
	for _, id := range unchanged {
		_, _ = c.reads.do(ctx, id, func(context.Context) (Task, error) { return ended[id], nil })
	}
}

// newestRuns returns the newest execution of each id, without executions that have no result.
func newestRuns(executions []*workflowpb.WorkflowExecutionInfo) map[string]*workflowpb.WorkflowExecutionInfo {
	newest := make(map[string]*workflowpb.WorkflowExecutionInfo, len(executions))
	for _, info := range executions {
		id := info.GetExecution().GetWorkflowId()
		if other := newest[id]; other == nil || info.GetStartTime().AsTime().After(other.GetStartTime().AsTime()) {
			newest[id] = info
		}
	}
	for id, info := range newest {
		if info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED || info.GetMemo().GetFields()[workflows.MemoResult] == nil {
			delete(newest, id)
		}
	}
	return newest
}
