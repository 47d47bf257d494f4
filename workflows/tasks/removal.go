package tasks

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"modelrelay/activities"
	"modelrelay/storage"
	"modelrelay/workflows"
)

const (
	// memoRemoval is the memo field of a removal that has its task's id.
	memoRemoval = "removal"
	// markRetry and markRetryMost bound the wait between two tries of a mark. Temporal refuses two executions of an id within a second.
	markRetry     = 100 * time.Millisecond
	markRetryMost = time.Second
)

// A removal is visible in the one answer of Describe that readers of its task request anyway. For an ended task, the removal is a newer
// execution with the same id. A running task has the mark of its removal among its request ids. So a removal is as durable as its
// task, needs no worker to be visible, and no create gets the id before the removal has deleted itself as its last step.

type removal struct {
	Token     string    `json:"token"`
	CreatedAt time.Time `json:"created_at"`
	// Run is the execution of the task.
	Run string `json:"run"`
}

// removalMark begins the id of each request to remove the task with this creation time. It does not match other tasks with the id.
func removalMark(created time.Time) string {
	return "removal_" + strconv.FormatInt(created.UnixNano(), 36) + "_"
}

func marked(answer *workflowservice.DescribeWorkflowExecutionResponse, created time.Time) bool {
	for request := range answer.GetWorkflowExtendedInfo().GetRequestIdInfos() {
		if strings.HasPrefix(request, removalMark(created)) {
			return true
		}
	}
	return false
}

func isRemoval(answer *workflowservice.DescribeWorkflowExecutionResponse) bool {
	return answer.GetWorkflowExecutionInfo().GetMemo().GetFields()[memoRemoval] != nil
}

func readRemoval(id string, answer *workflowservice.DescribeWorkflowExecutionResponse) (Task, memo, error) {
	var r removal
	if _, err := memoField(answer.GetWorkflowExecutionInfo(), memoRemoval, &r); err != nil {
		return Task{}, memo{}, err
	}
	return Task{
		ID: id, Token: r.Token, CreatedAt: r.CreatedAt, State: workflows.Failed,
		readState: readState{removed: true, run: r.Run},
	}, memo{Token: r.Token, CreatedAt: r.CreatedAt}, nil
}

// newest describes the newest execution with a task's id. It corrects one case: the start of a removal was delayed until its task was
// gone and a later task with the id had ended, so the removal is now the newest execution but belongs to the earlier task. If
// that is gone, newest describes the later task, and adds the marks of the later task's removal that the late removal received.
func newest(ctx context.Context, temporal client.Client, namespace, id string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	answer, err := temporal.DescribeWorkflowExecution(ctx, id, "")
	if err != nil || !isRemoval(answer) {
		return answer, err
	}
	of, _, err := readRemoval(id, answer)
	if err != nil || of.run == "" {
		return answer, nil //nolint:nilerr // the caller reads it again and reports the error
	}
	if _, err := temporal.DescribeWorkflowExecution(ctx, id, of.run); !isGone(err) {
		return answer, err
	}
	later, err := laterTask(ctx, temporal, namespace, of)
	if err != nil || later == nil {
		return answer, err
	}
	if later.WorkflowExtendedInfo == nil {
		later.WorkflowExtendedInfo = new(workflowpb.WorkflowExecutionExtendedInfo)
	}
	if later.WorkflowExtendedInfo.RequestIdInfos == nil {
		later.WorkflowExtendedInfo.RequestIdInfos = make(map[string]*workflowpb.RequestIdInfo)
	}
	maps.Copy(later.WorkflowExtendedInfo.RequestIdInfos, answer.GetWorkflowExtendedInfo().GetRequestIdInfos())
	return later, nil
}

// laterTask describes the newest task with a removed task's id that was created after it, nil for none. Visibility may be seconds late.
func laterTask(
	ctx context.Context, temporal client.Client, namespace string, removed Task,
) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	listed, err := temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: namespace, PageSize: runsMost,
		Query: fmt.Sprintf("WorkflowId = '%s' AND %s AND ExecutionStatus != 'ContinuedAsNew'", removed.ID, workflows.OfTasks),
	})
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	created := removed.CreatedAt
	var newest *workflowservice.DescribeWorkflowExecutionResponse
	for _, info := range listed.GetExecutions() {
		answer, err := describeRun(ctx, temporal, removed.ID, info.GetExecution().GetRunId())
		if err != nil {
			return nil, err
		}
		if task, _, err := read(removed.ID, answer, time.Now()); err == nil && !isRemoval(answer) && task.CreatedAt.After(created) {
			newest, created = answer, task.CreatedAt
		}
	}
	return newest, nil
}

// mark starts the removal of an ended task under the task's own id, or marks a running task. The SDK offers no such start.
func (c *Client) mark(ctx context.Context, task Task) (*workflowservice.StartWorkflowExecutionResponse, error) {
	parts, err := converter.GetDefaultDataConverter().ToPayloads(
		activities.RemoveInput{TaskID: task.ID, Token: task.Token, Created: task.CreatedAt, Run: task.run, Revision: workflows.Revision},
		removal{Token: task.Token, CreatedAt: task.CreatedAt, Run: task.run}, task.Token, "remove "+task.ID,
	)
	if err != nil {
		return nil, fmt.Errorf("payloads of the removal: %w", err)
	}
	input, memo, token, summary := parts.Payloads[:1], parts.Payloads[1], parts.Payloads[2], parts.Payloads[3]
	token.Metadata["type"] = []byte(enumspb.INDEXED_VALUE_TYPE_KEYWORD.String())
	request := &workflowservice.StartWorkflowExecutionRequest{
		Namespace:                c.opts.Namespace,
		RequestId:                removalMark(task.CreatedAt) + rand.Text(),
		WorkflowId:               task.ID,
		WorkflowType:             &commonpb.WorkflowType{Name: workflows.RemoveType},
		TaskQueue:                &taskqueuepb.TaskQueue{Name: workflows.RemovalQueue(c.opts.TaskQueue), Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
		Input:                    &commonpb.Payloads{Payloads: input},
		WorkflowIdReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIdConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		OnConflictOptions:        &workflowpb.OnConflictOptions{AttachRequestId: true},
		Memo:                     &commonpb.Memo{Fields: map[string]*commonpb.Payload{memoRemoval: memo}},
		SearchAttributes:         &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{workflows.AttrToken: token}},
		UserMetadata:             &sdkpb.UserMetadata{Summary: summary},
	}
	for wait := markRetry; ; wait = min(2*wait, markRetryMost) {
		answer, err := c.temporal.WorkflowService().StartWorkflowExecution(ctx, request)
		if err == nil || !isBusy(err) {
			return answer, err
		}
		if ended := storage.Sleep(ctx, wait); ended != nil {
			return nil, fmt.Errorf("%w: %w", ended, err)
		}
	}
}

// isBusy reports whether Temporal may accept the same request in a moment.
func isBusy(err error) bool {
	_, exhausted := errors.AsType[*serviceerror.ResourceExhausted](err)
	_, unavailable := errors.AsType[*serviceerror.Unavailable](err)
	return exhausted || unavailable
}
