package tasks

import (
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

// read makes a Task of what Temporal's Describe says about an execution, open or closed, with or without a live worker.
// The request may stand elsewhere: see the returned memo's RequestObject.
func read(id string, answer *workflowservice.DescribeWorkflowExecutionResponse, now time.Time) (Task, memo, error) {
	info := answer.GetWorkflowExecutionInfo()
	fields := info.GetMemo().GetFields()
	if isRemoval(answer) {
		return readRemoval(id, answer)
	}
	var m memo
	if fields[memoTask] == nil {
		return Task{}, memo{}, fmt.Errorf("execution %s is not a video task: its memo has no %q", id, memoTask)
	}
	if err := converter.GetDefaultDataConverter().FromPayload(fields[memoTask], &m); err != nil {
		return Task{}, memo{}, fmt.Errorf("read the memo of task %s: %w", id, err)
	}
	task := Task{ID: id, Token: m.Token, Format: m.Format, CreatedAt: m.CreatedAt, State: workflows.Queued, sight: sight{seen: now, run: info.GetExecution().GetRunId()}}
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
	task.State, task.Progress, task.beat = standing(info, answer.GetPendingActivities(), now)
	task.QueuePosition = position(answer.GetPendingActivities())
	return task, m, nil
}

// position is a task's place in line as it was at its last ask, 0 when it stands in none.
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

// standing is the state and progress of a running task, and what the poll of its job has said.
func standing(info *workflowpb.WorkflowExecutionInfo, pending []*workflowpb.PendingActivityInfo, now time.Time) (workflows.State, int, *activities.Progress) {
	switch phaseOf(info) {
	case workflows.PhasePolling:
	case workflows.PhaseArchiving, workflows.PhaseCompleted, workflows.PhaseFailed:
		return workflows.InProgress, workflows.ProgressArchiving, nil
	default:
		return workflows.Queued, 0, nil
	}
	look := pollOf(pending)
	if look == nil {
		return workflows.InProgress, activities.MostShown, nil // the job has ended, the workflow has not gone on yet
	}
	var p activities.Progress
	if err := converter.GetDefaultDataConverter().FromPayloads(look.GetHeartbeatDetails(), &p); err != nil {
		return workflows.Queued, 0, nil // no look was taken yet
	}
	if p.State != providers.JobRunning {
		return workflows.Queued, 0, &p
	}
	return workflows.InProgress, p.Shown(now), &p
}

// phaseOf is "" where the execution names none.
func phaseOf(info *workflowpb.WorkflowExecutionInfo) workflows.Phase {
	var phase string
	if payload := info.GetSearchAttributes().GetIndexedFields()[workflows.AttrState]; payload != nil {
		if err := converter.GetDefaultDataConverter().FromPayload(payload, &phase); err != nil {
			return ""
		}
	}
	return workflows.Phase(phase)
}

// pollOf is nil where no poll is under way.
func pollOf(pending []*workflowpb.PendingActivityInfo) *workflowpb.PendingActivityInfo {
	for _, act := range pending {
		if act.GetActivityType().GetName() == "Poll" {
			return act
		}
	}
	return nil
}

// describe takes what the answers repeat of the request.
func (t *Task) describe(req providers.VideoRequest) {
	t.Request = req
	t.Seconds, t.Width, t.Height = req.Seconds, req.Width, req.Height
}

// end takes the result.
func (t *Task) end(r workflows.Result) {
	t.State, t.Progress, t.CompletedAt, t.ExpiresAt = r.State, r.Progress, r.CompletedAt, r.ExpiresAt
	t.Failure, t.Outputs, t.Job, t.VendorPrice = r.Failure, r.Outputs, r.Job, r.Price
	if t.Seconds == "" {
		t.Seconds = r.Seconds
	}
	if r.Width > 0 && r.Height > 0 {
		t.Width, t.Height = r.Width, r.Height
	}
}
