package tasks

import (
	"cmp"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/workflows"
)

// read decodes a Task from Describe's answer about an execution, open or closed. No worker is needed. If the returned memo has a
// RequestObject, the rest of the request is there.
func read(id string, answer *workflowservice.DescribeWorkflowExecutionResponse, now time.Time) (Task, memo, error) {
	info := answer.GetWorkflowExecutionInfo()
	fields := info.GetMemo().GetFields()
	if isRemoval(answer) {
		return readRemoval(id, answer)
	}
	var m memo
	if fields[memoTask] == nil {
		return Task{}, memo{}, fmt.Errorf("execution %s is not a task: its memo has no %q", id, memoTask)
	}
	if err := converter.GetDefaultDataConverter().FromPayload(fields[memoTask], &m); err != nil {
		return Task{}, memo{}, fmt.Errorf("read the memo of task %s: %w", id, err)
	}
	task := Task{
		ID: id, Token: m.Token, Format: m.Format, Operation: m.Operation, Stream: m.Stream, Body: m.Body, Items: m.Items, CreatedAt: m.CreatedAt,
		State:     workflows.Queued,
		readState: readState{readAt: now, run: info.GetExecution().GetRunId(), incarnation: m.Incarnation},
	}
	task.removed = marked(answer, m.CreatedAt)
	if m.Request != nil {
		task.describe(*m.Request)
	}
	if result := fields[workflows.MemoResult]; result != nil {
		var r workflows.Result
		if err := converter.GetDefaultDataConverter().FromPayload(result, &r); err != nil {
			return Task{}, memo{}, fmt.Errorf("read the result of %s: %w", id, err)
		}
		task.end(r)
		return task, m, nil
	}
	if info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		task.end(unfinishedResult(info))
		return task, m, nil
	}
	if task.Kind() == activities.KindCall {
		task.callProgress(answer)
		return task, m, nil
	}
	task.State, task.Progress, task.poll = progressOf(info, answer.GetPendingActivities(), now)
	task.QueuePosition = position(answer.GetPendingActivities())
	return task, m, nil
}

// callProgress sets the state of a running call: in progress once a request to an upstream has begun. After the end of its activity, whose
// heartbeats end with it, a call is in progress until it has its result.
func (t *Task) callProgress(answer *workflowservice.DescribeWorkflowExecutionResponse) {
	relayed := answer.GetWorkflowExecutionInfo().GetHistoryLength() > eventsBeforeRelay
	for _, act := range answer.GetPendingActivities() {
		if act.GetActivityType().GetName() == "Relay" {
			relayed = false
			_ = converter.GetDefaultDataConverter().FromPayloads(act.GetHeartbeatDetails(), &t.Progressed) // before the first there are none
		}
	}
	if relayed {
		t.Progressed.Stage = activities.StageStoring
	}
	if t.QueuePosition = t.Progressed.Position; relayed || t.Progressed.Attempts > 0 {
		t.State = workflows.InProgress
	}
	t.Progressed.Stage = cmp.Or(t.Progressed.Stage, activities.StageWaiting)
}

// eventsBeforeRelay is the number of events in a history before the schedule of the call's activity: the start of the workflow, and its
// first workflow task, which may have failed.
const eventsBeforeRelay = 4

// position returns the task's position in the line at a full channel, as of its last heartbeat; 0 if it does not wait.
func position(pending []*workflowpb.PendingActivityInfo) int {
	for _, act := range pending {
		if act.GetActivityType().GetName() != "Await" {
			continue
		}
		var w activities.Waiting
		if err := converter.GetDefaultDataConverter().FromPayloads(act.GetHeartbeatDetails(), &w); err == nil {
			return w.Position
		}
	}
	return 0
}

// progressOf returns the state and progress of a running task, and the last heartbeat of its poll.
func progressOf(
	info *workflowpb.WorkflowExecutionInfo, pending []*workflowpb.PendingActivityInfo, now time.Time,
) (workflows.State, int, *activities.Progress) {
	switch phaseOf(info) {
	case workflows.PhasePolling:
	case workflows.PhaseArchiving, workflows.PhaseCompleted, workflows.PhaseFailed:
		return workflows.InProgress, workflows.ProgressArchiving, nil
	default:
		return workflows.Queued, 0, nil
	}
	poll := pendingPoll(pending)
	if poll == nil {
		return workflows.InProgress, activities.MostShown, nil // the job has ended, and the workflow has not processed that yet
	}
	var p activities.Progress
	if err := converter.GetDefaultDataConverter().FromPayloads(poll.GetHeartbeatDetails(), &p); err != nil {
		return workflows.Queued, 0, nil // the first poll has not ended
	}
	if p.State != providers.JobRunning {
		return workflows.Queued, 0, &p
	}
	return workflows.InProgress, p.Shown(now), &p
}

// phaseOf returns the phase in an execution's search attributes, "" if it has none.
func phaseOf(info *workflowpb.WorkflowExecutionInfo) workflows.Phase {
	return workflows.Phase(attribute(info, workflows.AttrState))
}

// attribute returns the value of a search attribute of type Keyword, "" if there is none.
func attribute(info *workflowpb.WorkflowExecutionInfo, name string) (value string) {
	if payload := info.GetSearchAttributes().GetIndexedFields()[name]; payload != nil {
		_ = converter.GetDefaultDataConverter().FromPayload(payload, &value) // an unreadable value counts as none
	}
	return value
}

// pendingPoll returns the pending poll, nil if there is none.
func pendingPoll(pending []*workflowpb.PendingActivityInfo) *workflowpb.PendingActivityInfo {
	for _, act := range pending {
		if act.GetActivityType().GetName() == "Poll" {
			return act
		}
	}
	return nil
}

// describe sets the parts of the request that answers repeat.
func (t *Task) describe(req providers.VideoRequest) {
	t.Request = req
	t.Seconds, t.Width, t.Height = req.Seconds, req.Width, req.Height
}

// end sets the result.
func (t *Task) end(r workflows.Result) {
	t.State, t.Progress, t.CompletedAt, t.ExpiresAt = r.State, r.Progress, r.CompletedAt, r.ExpiresAt
	t.Failure, t.Outputs, t.Job, t.VendorPrice, t.Call = r.Failure, r.Outputs, r.Job, r.Price, r.Call
	if t.Seconds == "" {
		t.Seconds = r.Seconds
	}
	if r.Width > 0 && r.Height > 0 {
		t.Width, t.Height = r.Width, r.Height
	}
}
