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

// read decodes a Task from Describe's answer. If the returned memo has a RequestObject, the rest of the request is there.
func read(id string, answer *workflowservice.DescribeWorkflowExecutionResponse, now time.Time) (Task, memo, error) {
	info := answer.GetWorkflowExecutionInfo()
	if isRemoval(answer) {
		return readRemoval(id, answer)
	}
	var m memo
	switch found, err := memoField(info, memoTask, &m); {
	case err != nil:
		return Task{}, memo{}, err
	case !found:
		return Task{}, memo{}, fmt.Errorf("execution %s is not a task: its memo has no %q", id, memoTask)
	}
	task := m.task(id)
	task.readAt, task.run, task.removed = now, info.GetExecution().GetRunId(), marked(answer, m.CreatedAt)
	if m.Request != nil {
		task.describe(*m.Request)
	}
	var result workflows.Result
	if ended, err := memoField(info, workflows.MemoResult, &result); err != nil {
		return Task{}, memo{}, err
	} else if ended {
		task.end(result)
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
	var place activities.Waiting
	_, _ = heartbeat(answer.GetPendingActivities(), "Await", &place) // a task that does not wait has none
	task.QueuePosition = place.Position
	return task, m, nil
}

func memoField(info *workflowpb.WorkflowExecutionInfo, name string, into any) (bool, error) {
	payload := info.GetMemo().GetFields()[name]
	if payload == nil {
		return false, nil
	}
	if err := converter.GetDefaultDataConverter().FromPayload(payload, into); err != nil {
		return true, fmt.Errorf("read the %s in the memo of %s: %w", name, info.GetExecution().GetWorkflowId(), err)
	}
	return true, nil
}

// heartbeat decodes the last heartbeat of a pending activity. found reports whether it is pending, and err that it has no such heartbeat.
func heartbeat(pending []*workflowpb.PendingActivityInfo, name string, into any) (found bool, err error) {
	for _, act := range pending {
		if act.GetActivityType().GetName() == name {
			return true, converter.GetDefaultDataConverter().FromPayloads(act.GetHeartbeatDetails(), into)
		}
	}
	return false, nil
}

// callProgress sets the state of a running call: in progress once a request to an upstream has begun, until it has its result.
func (t *Task) callProgress(answer *workflowservice.DescribeWorkflowExecutionResponse) {
	pending, _ := heartbeat(answer.GetPendingActivities(), "Relay", &t.Progressed) // before the first heartbeat there is none
	relayed := !pending && answer.GetWorkflowExecutionInfo().GetHistoryLength() > eventsBeforeRelay
	if relayed {
		t.Progressed.Stage = activities.StageStoring
	}
	if t.QueuePosition = t.Progressed.Position; relayed || t.Progressed.Attempts > 0 {
		t.State = workflows.InProgress
	}
	t.Progressed.Stage = cmp.Or(t.Progressed.Stage, activities.StageWaiting)
}

// eventsBeforeRelay is the number of events before the schedule of Relay: the start and the first workflow task, which may fail.
const eventsBeforeRelay = 4

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
	var p activities.Progress
	switch found, err := heartbeat(pending, "Poll", &p); {
	case !found: // the job has ended, and the workflow has not processed that yet
		return workflows.InProgress, activities.MostShown, nil
	case err != nil: // the first poll has not ended
		return workflows.Queued, 0, nil
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

func (t *Task) describe(req providers.VideoRequest) {
	t.Request = req
	t.Seconds, t.Width, t.Height = req.Seconds, req.Width, req.Height
}

func (t *Task) end(r workflows.Result) {
	t.State, t.Progress, t.Ending = r.State, r.Progress, r.Ending
	if t.Seconds == "" {
		t.Seconds = r.Seconds
	}
	if r.Width > 0 && r.Height > 0 {
		t.Width, t.Height = r.Width, r.Height
	}
}
