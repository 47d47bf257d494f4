package tasks_test

import (
	"reflect"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

func payload(t *testing.T, v any) *commonpb.Payload {
	t.Helper()
	p, err := converter.GetDefaultDataConverter().ToPayload(v)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var created = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// execution is what Describe returns for a task in the phase, with the heartbeat of its poll if there is one.
func execution(t *testing.T, phase workflows.Phase, beat *activities.Progress) *workflowservice.DescribeWorkflowExecutionResponse {
	t.Helper()
	answer := &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
		Memo: &commonpb.Memo{Fields: map[string]*commonpb.Payload{tasks.MemoTask: payload(t, tasks.Memo{
			Token: "demo", Format: providers.OpenAI, CreatedAt: created,
			Request: &providers.VideoRequest{Model: "sora-2", Prompt: "a cat", Seconds: "8"},
		})}},
		SearchAttributes: &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{
			workflows.AttrState: payload(t, string(phase)),
		}},
	}}
	if phase == workflows.PhasePolling && beat != nil {
		pending := &workflowpb.PendingActivityInfo{ActivityType: &commonpb.ActivityType{Name: "Poll"}}
		if !beat.Since.IsZero() {
			pending.HeartbeatDetails = &commonpb.Payloads{Payloads: []*commonpb.Payload{payload(t, beat)}}
		}
		answer.PendingActivities = []*workflowpb.PendingActivityInfo{pending}
	}
	return answer
}

// TestReadNoTask: an execution that is not a task is refused.
func TestReadNoTask(t *testing.T) {
	t.Parallel()
	answer := execution(t, workflows.PhasePolling, nil)
	delete(answer.WorkflowExecutionInfo.Memo.Fields, tasks.MemoTask)
	_, _, err := tasks.Read("video_x", answer, created)
	if want := `execution video_x is not a task: its memo has no "task"`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestReadNeverFalls: state and progress never fall from one answer of Temporal to the next.
func TestReadNeverFalls(t *testing.T) {
	t.Parallel()
	since := created.Add(5 * time.Second)
	beat := func(state providers.VideoState, percent int) *activities.Progress {
		return &activities.Progress{
			State: state, Percent: percent, Since: since, Usual: activities.Duration(100 * time.Second),
			Next: created.Add(time.Hour),
		}
	}
	steps := []struct {
		name     string
		phase    workflows.Phase
		beat     *activities.Progress
		after    time.Duration
		state    workflows.State
		progress int
	}{
		{"created", workflows.PhaseQueued, nil, 0, workflows.Queued, 0},
		{"submitting", workflows.PhaseSubmitting, nil, time.Second, workflows.Queued, 0},
		{"no look yet", workflows.PhasePolling, &activities.Progress{}, 5 * time.Second, workflows.Queued, 0},
		{"queued at the vendor", workflows.PhasePolling, beat(providers.JobQueued, 0), 10 * time.Second, workflows.Queued, 0},
		{"running", workflows.PhasePolling, beat(providers.JobRunning, 3), 15 * time.Second, workflows.InProgress, 10},
		{"between looks", workflows.PhasePolling, beat(providers.JobRunning, 3), 55 * time.Second, workflows.InProgress, 50},
		{"vendor is behind", workflows.PhasePolling, beat(providers.JobRunning, 20), 65 * time.Second, workflows.InProgress, 60},
		{"vendor is ahead", workflows.PhasePolling, beat(providers.JobRunning, 97), 70 * time.Second, workflows.InProgress, 97},
		{"vendor reports 100", workflows.PhasePolling, beat(providers.JobRunning, 100), 90 * time.Second, workflows.InProgress, 98},
		{"poll has ended", workflows.PhasePolling, nil, 91 * time.Second, workflows.InProgress, 98},
		{"archiving", workflows.PhaseArchiving, nil, 92 * time.Second, workflows.InProgress, 99},
		{"result on its way", workflows.PhaseCompleted, nil, 93 * time.Second, workflows.InProgress, 99},
	}
	for _, step := range steps {
		task, _, err := tasks.Read("video_x", execution(t, step.phase, step.beat), created.Add(step.after))
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if task.State != step.state || task.Progress != step.progress {
			t.Errorf("%s: got %s %d, want %s %d", step.name, task.State, task.Progress, step.state, step.progress)
		}
	}
}

// TestReadWaitsForThePoll: an estimate does not change while the next poll is late.
func TestReadWaitsForThePoll(t *testing.T) {
	t.Parallel()
	beat := &activities.Progress{
		State: providers.JobRunning, Since: created, Usual: activities.Duration(100 * time.Second), Next: created.Add(50 * time.Second),
	}
	for after, want := range map[time.Duration]int{20 * time.Second: 20, time.Hour: 50} {
		task, _, err := tasks.Read("video_x", execution(t, workflows.PhasePolling, beat), created.Add(after))
		if err != nil || task.Progress != want {
			t.Errorf("after %v: progress %d, %v; want %d", after, task.Progress, err, want)
		}
	}
}

func TestReadResult(t *testing.T) {
	t.Parallel()
	answer := execution(t, workflows.PhaseCompleted, nil)
	answer.WorkflowExecutionInfo.Status = enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	answer.WorkflowExecutionInfo.Memo.Fields[workflows.MemoResult] = payload(t, workflows.Result{
		State: workflows.Completed, Progress: 100, Seconds: "12", Width: 1280, Height: 720, Ending: workflows.Ending{
			CompletedAt: created.Add(time.Minute), ExpiresAt: created.Add(time.Hour), Outputs: []activities.Output{{Object: "outputs/x/0.mp4"}},
		},
	})
	got, _, err := tasks.Read("video_x", answer, created)
	if err != nil {
		t.Fatal(err)
	}
	if got.State != workflows.Completed || got.Progress != 100 || len(got.Outputs) != 1 || got.Width != 1280 {
		t.Errorf("task = %+v", got)
	}
	if got.Seconds != "8" {
		t.Errorf("seconds = %q, want the caller's 8 before the vendor's 12", got.Seconds)
	}
}

// TestReadEndedFromOutside: an execution that an operator terminated has no result, but it has ended.
func TestReadEndedFromOutside(t *testing.T) {
	t.Parallel()
	answer := execution(t, workflows.PhasePolling, nil)
	answer.WorkflowExecutionInfo.Status = enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED
	answer.WorkflowExecutionInfo.CloseTime = timestamppb.New(created.Add(time.Hour))
	got, _, err := tasks.Read("video_x", answer, created)
	if err != nil {
		t.Fatal(err)
	}
	if got.State != workflows.Failed || got.Failure == nil || !got.CompletedAt.Equal(created.Add(time.Hour)) {
		t.Errorf("task = %+v, want failed at the close time", got)
	}
}

func TestReadStranger(t *testing.T) {
	t.Parallel()
	answer := &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{}}
	if task, _, err := tasks.Read("video_x", answer, created); err == nil {
		t.Errorf("an execution without our memo reads as %+v, want an error", task)
	}
}

// TestReadQueuePosition: a queued task has the queue position of the last heartbeat of Await.
func TestReadQueuePosition(t *testing.T) {
	t.Parallel()
	answer := execution(t, workflows.PhaseQueued, nil)
	await := &workflowpb.PendingActivityInfo{ActivityType: &commonpb.ActivityType{Name: "Await"}}
	answer.PendingActivities = []*workflowpb.PendingActivityInfo{await}
	for _, want := range []int{0, 17, 1} {
		if want > 0 {
			await.HeartbeatDetails = &commonpb.Payloads{Payloads: []*commonpb.Payload{payload(t,
				activities.Waiting{Position: want, Channel: "main"})}}
		}
		got, _, err := tasks.Read("video_x", answer, created)
		if err != nil {
			t.Fatal(err)
		}
		if got.State != workflows.Queued || got.Progress != 0 || got.QueuePosition != want {
			t.Errorf("got %s %d at position %d, want queued 0 at position %d", got.State, got.Progress, got.QueuePosition, want)
		}
	}
}

// TestReadCallNeverFalls: a call does not return to queued when its activity has ended. The test reads its answers in order.
func TestReadCallNeverFalls(t *testing.T) {
	t.Parallel()
	pending := func(name string, beat *activities.CallProgress) *workflowpb.PendingActivityInfo {
		act := &workflowpb.PendingActivityInfo{ActivityType: &commonpb.ActivityType{Name: name}}
		if beat != nil {
			act.HeartbeatDetails = &commonpb.Payloads{Payloads: []*commonpb.Payload{payload(t, beat)}}
		}
		return act
	}
	for _, step := range []struct {
		name    string
		events  int64
		pending *workflowpb.PendingActivityInfo
		state   workflows.State
		stage   activities.CallStage
	}{
		{"created", 2, nil, workflows.Queued, activities.StageWaiting},
		{"its first workflow task failed", 4, nil, workflows.Queued, activities.StageWaiting},
		{"scheduled", 5, pending("Relay", nil), workflows.Queued, activities.StageWaiting},
		{"waiting", 5, pending("Relay", &activities.CallProgress{Stage: activities.StageWaiting}), workflows.Queued, activities.StageWaiting},
		{
			"sent", 5, pending("Relay", &activities.CallProgress{Stage: activities.StageSending, Attempts: 1}), workflows.InProgress,
			activities.StageSending,
		},
		{"relayed", 7, nil, workflows.InProgress, activities.StageStoring},
		{"concluding", 11, pending("Conclude", nil), workflows.InProgress, activities.StageStoring},
		{"settling", 13, pending("Settle", nil), workflows.InProgress, activities.StageStoring},
	} {
		answer := execution(t, workflows.PhaseCalling, nil)
		answer.WorkflowExecutionInfo.HistoryLength = step.events
		if step.pending != nil {
			answer.PendingActivities = []*workflowpb.PendingActivityInfo{step.pending}
		}
		got, _, err := tasks.Read("call_x", answer, created)
		if err != nil || got.State != step.state || got.Progressed.Stage != step.stage {
			t.Errorf("%s: got %s in %s, %v; want %s in %s", step.name, got.State, got.Progressed.Stage, err, step.state, step.stage)
		}
	}
}

// TestReadCallPosition: a call has the place of its last heartbeat.
func TestReadCallPosition(t *testing.T) {
	t.Parallel()
	answer := execution(t, workflows.PhaseCalling, nil)
	answer.PendingActivities = []*workflowpb.PendingActivityInfo{{
		ActivityType: &commonpb.ActivityType{Name: "Relay"},
		HeartbeatDetails: &commonpb.Payloads{Payloads: []*commonpb.Payload{payload(t,
			activities.CallProgress{Stage: activities.StageWaiting, Position: 7})}},
	}}
	got, _, err := tasks.Read("call_x", answer, created)
	if err != nil || got.State != workflows.Queued || got.QueuePosition != 7 {
		t.Errorf("got %s at place %d, %v, want queued at place 7", got.State, got.QueuePosition, err)
	}
}

// TestDetailsOfACall: the details of a running call are its heartbeat; those of an ended call are its result.
func TestDetailsOfACall(t *testing.T) {
	t.Parallel()
	running := tasks.Task{
		ID: "call_1", Stream: true,
		Progressed: activities.CallProgress{Stage: activities.StageAnswering, Attempts: 2, Channel: "main"},
	}
	if got := running.CallDetails(); got == nil || !reflect.DeepEqual(got.CallProgress, running.Progressed) || !got.Stream || got.Cost != nil {
		t.Errorf("running: %+v", got)
	}
	ended := running
	ended.Call = &activities.Answered{
		CallProgress: activities.CallProgress{Attempts: 3, Channel: "main", Lost: 1}, Status: 200, Events: 7,
		Usage: providers.Usage{Input: 2, Output: 3, Audio: 1500 * time.Millisecond}, Cost: 5, Priced: true,
	}
	got := ended.CallDetails()
	if got == nil || !reflect.DeepEqual(got.CallProgress, ended.Call.CallProgress) || got.StatusCode != 200 || got.Events != 7 ||
		got.Usage != (tasks.CallUsage{InputTokens: 2, OutputTokens: 3, AudioSeconds: 1.5}) || got.Cost == nil || *got.Cost != 5 {
		t.Errorf("ended: %+v", got)
	}
	if got := (tasks.Task{ID: "video_1"}).CallDetails(); got != nil {
		t.Errorf("a video: %+v", got)
	}
}
