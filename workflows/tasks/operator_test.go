package tasks_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"modelrelay/providers"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/taskindex"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// TestOperatorEndsATask: Fail sends a signal, and Cancel cancels the workflow.
func TestOperatorEndsATask(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(context.Context, *tasks.Operator, string) error{
		"fail":   func(ctx context.Context, o *tasks.Operator, id string) error { return o.Fail(ctx, id, "lost") },
		"cancel": func(ctx context.Context, o *tasks.Operator, id string) error { return o.Cancel(ctx, id) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &fakeSignalEngine{fakeEngine: &fakeEngine{}}
			service := tasks.NewClient(e, options(nil, storagetest.Redis(t)))
			made, err := service.Create(t.Context(), create(providers.VideoRequest{Model: "m", Prompt: "p"}))
			if err != nil {
				t.Fatal(err)
			}
			e.progress(t, made.ID, 60)
			if err := do(t.Context(), tasks.NewOperator(e, "default", "video"), made.ID); err != nil {
				t.Fatal(err)
			}
			if want := []string{name}; !slices.Equal(e.sent, want) {
				t.Errorf("sent %v, want %v", e.sent, want)
			}
		})
	}
}

// TestOperatorEndsACall: the worker of a call learns at once that an operator ended it, as of a client's cancel.
func TestOperatorEndsACall(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(context.Context, *tasks.Operator, string) error{
		"fail":   func(ctx context.Context, o *tasks.Operator, id string) error { return o.Fail(ctx, id, "lost") },
		"cancel": func(ctx context.Context, o *tasks.Operator, id string) error { return o.Cancel(ctx, id) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service, e := newCallClient(t, 100, 0)
			made := mustCreate(t, service, call("k", "a"))
			changes := taskindex.NewChanges(storagetest.Redis(t))
			ctx, cancel := context.WithCancel(t.Context())
			ready, heard := make(chan struct{}), make(chan taskindex.Change, 1)
			var following sync.WaitGroup
			defer following.Wait()
			defer cancel()
			following.Go(func() { changes.Follow(ctx, ready, func(change taskindex.Change) { heard <- change }) })
			<-ready
			operator := tasks.NewOperator(e, "default", "video")
			operator.Changes = changes
			if err := do(t.Context(), operator, made.ID); err != nil {
				t.Fatal(err)
			}
			if change := <-heard; change.TaskID != made.ID || change.Report != taskindex.Cancelled {
				t.Errorf("received %+v", change)
			}
		})
	}
}

// TestWaitOutlivesALongPoll: Wait continues if the server ends a long poll before the caller's deadline.
func TestWaitOutlivesALongPoll(t *testing.T) {
	t.Parallel()
	e := &fakeHastyEngine{fakeEngine: &fakeEngine{}}
	service := tasks.NewClient(e, options(nil, storagetest.Redis(t)))
	made, err := service.Create(t.Context(), create(providers.VideoRequest{Model: "m", Prompt: "p"}))
	if err != nil {
		t.Fatal(err)
	}
	e.waited = func() { e.endAs(t, made.ID, workflows.Result{State: workflows.Completed}) }
	operator := tasks.NewOperator(e, "default", "video")
	operator.Wait(t.Context(), made.ID, time.Minute)
	if task, err := operator.Task(t.Context(), made.ID); err != nil || !task.Ended() {
		t.Errorf("waited until %s, %v; want its end", task.State, err)
	}
}

func archiveFailed() workflows.Result {
	failure := &providers.VideoFailure{Code: workflows.CodeArchiveFailed}
	return workflows.Result{State: workflows.Failed, Ending: workflows.Ending{Failure: failure}}
}

// TestRetryArchiveOfADeletedTask: RetryArchive is refused during a removal, which has read the failed execution and would leave the new
// one.
func TestRetryArchiveOfADeletedTask(t *testing.T) {
	t.Parallel()
	service, engine, _ := newListing(storagetest.Redis(t))
	operator := tasks.NewOperator(engine, "default", "video")
	task := mustCreate(t, service, keyed("a", 0))
	engine.endAs(t, task.ID, archiveFailed())
	if err := operator.RetryArchive(t.Context(), task.ID); kindOf(err) != providers.Conflict ||
		!strings.Contains(err.Error(), "no archive step") {
		t.Errorf("before: %v, want that its history lacks the step", err)
	}
	if err := service.Delete(t.Context(), task.ID, "demo"); err != nil {
		t.Fatal(err)
	}
	if err := operator.RetryArchive(t.Context(), task.ID); kindOf(err) != providers.Conflict ||
		!strings.Contains(err.Error(), "being deleted") {
		t.Errorf("during its removal: %v, want a conflict", err)
	}
}

// fakeHastyEngine answers a wait for a task's end with the deadline of the server, and calls waited at the second.
type fakeHastyEngine struct {
	*fakeEngine

	waits  int
	waited func()
}

type hastyRun struct {
	client.WorkflowRun

	engine *fakeHastyEngine
}

func (e *fakeHastyEngine) GetWorkflow(context.Context, string, string) client.WorkflowRun {
	return hastyRun{engine: e}
}

func (r hastyRun) Get(context.Context, any) error {
	if r.engine.waits++; r.engine.waits == 2 {
		r.engine.waited()
	}
	return serviceerror.NewDeadlineExceeded("context deadline exceeded")
}

// fakeSignalEngine records the signals and cancels that a task receives.
type fakeSignalEngine struct {
	*fakeEngine

	sent []string
}

func (e *fakeSignalEngine) SignalWorkflow(_ context.Context, _, _, name string, _ any) error {
	e.sent = append(e.sent, name)
	return nil
}

func (e *fakeSignalEngine) CancelWorkflow(context.Context, string, string) error {
	e.sent = append(e.sent, "cancel")
	return nil
}

// TestOperatorAfterTheEnd: a task whose result is recorded cannot be failed or cancelled, although its execution still stops the
// vendor's job. RetryArchive is refused until that execution has removed its objects.
func TestOperatorAfterTheEnd(t *testing.T) {
	t.Parallel()
	service, engine, _ := newListing(storagetest.Redis(t))
	operator := tasks.NewOperator(engine, "default", "video")
	task := mustCreate(t, service, keyed("a", 0))
	result := payload(t, archiveFailed())
	engine.change(task.ID, func(was *workflowpb.WorkflowExecutionInfo) *workflowservice.DescribeWorkflowExecutionResponse {
		was.Memo.Fields[workflows.MemoResult] = result
		return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: was}
	})
	for what, err := range map[string]error{
		"has ended":     operator.Fail(t.Context(), task.ID, "late"),
		"is failed":     operator.Cancel(t.Context(), task.ID),
		"still removes": operator.RetryArchive(t.Context(), task.ID),
	} {
		if kindOf(err) != providers.Conflict || !strings.Contains(err.Error(), what) {
			t.Errorf("got %v, want a conflict with %q", err, what)
		}
	}
}

// TestRetryArchiveForgetsWhatCalledItOff: a cancel or fail that was sent to the failed try does not end the next try.
func TestRetryArchiveForgetsWhatCalledItOff(t *testing.T) {
	t.Parallel()
	service, fake, _ := newListing(storagetest.Redis(t))
	task := mustCreate(t, service, keyed("a", 0))
	fake.endAs(t, task.ID, archiveFailed())
	fake.events = []*historypb.HistoryEvent{scheduled(9, "Archive")}
	fake.events[0].GetActivityTaskScheduledEventAttributes().WorkflowTaskCompletedEventId = 8
	e := &fakeResetEngine{fakeEngine: fake}
	if err := tasks.NewOperator(e, "default", "video").RetryArchive(t.Context(), task.ID); err != nil {
		t.Fatal(err)
	}
	if without := e.asked.GetResetReapplyExcludeTypes(); e.asked.GetWorkflowTaskFinishEventId() != 8 ||
		!slices.Contains(without, enumspb.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL) {
		t.Errorf("reset to %d without %v, want 8 without signals", e.asked.GetWorkflowTaskFinishEventId(), without)
	}
}

// fakeResetEngine notes a reset.
type fakeResetEngine struct {
	*fakeEngine

	asked *workflowservice.ResetWorkflowExecutionRequest
}

func (e *fakeResetEngine) ResetWorkflowExecution(
	_ context.Context, in *workflowservice.ResetWorkflowExecutionRequest,
) (*workflowservice.ResetWorkflowExecutionResponse, error) {
	e.asked = in
	return &workflowservice.ResetWorkflowExecutionResponse{RunId: "next"}, nil
}
