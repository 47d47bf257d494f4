package tasks_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// fakeEngine is a Temporal that keeps what it starts and runs nothing. The zero value is ready to use.
type fakeEngine struct {
	client.Client // nil: what is not below panics

	startErr  error // of the next starts
	describes atomic.Int64
	lists     atomic.Int64
	described func() // called once, after the next Describe

	mu    sync.Mutex
	tasks map[string]*workflowservice.DescribeWorkflowExecutionResponse
	runs  map[string]*workflowservice.DescribeWorkflowExecutionResponse // by run: those that are not their id's newest
	away  bool
	// deletes and cancels count what was asked for.
	deletes, cancels int
	// announced counts the removals that were announced before their cancel.
	announced int
	input     []byte            // of the last start
	turn      temporal.Priority // of the last start

	events []*historypb.HistoryEvent // the history of every task
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func (e *fakeEngine) ExecuteWorkflow(_ context.Context, opts client.StartWorkflowOptions, _ any, args ...any) (client.WorkflowRun, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.startErr != nil {
		return nil, e.startErr
	}
	if _, ok := e.tasks[opts.ID]; ok {
		if opts.WorkflowIDConflictPolicy == enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING {
			return started{id: opts.ID}, nil
		}
		return nil, serviceerror.NewWorkflowExecutionAlreadyStarted("", "", "")
	}
	e.turn = opts.Priority
	fields := make(map[string]*commonpb.Payload)
	for name, value := range opts.Memo {
		payload, err := converter.GetDefaultDataConverter().ToPayload(value)
		if err != nil {
			return nil, err
		}
		fields[name] = payload
	}
	if e.tasks == nil {
		e.tasks = make(map[string]*workflowservice.DescribeWorkflowExecutionResponse)
	}
	e.tasks[opts.ID] = &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: opts.ID, RunId: rand.Text()},
		Memo:      &commonpb.Memo{Fields: fields}, Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
	}}
	var err error
	e.input, err = json.Marshal(args[0])
	return started{id: opts.ID}, err
}

// started is the newest run of an id, or the one that is named.
type started struct {
	client.WorkflowRun

	id, run string
}

func (s started) GetID() string    { return s.id }
func (s started) GetRunID() string { return s.run }

// Get waits for an end that never comes.
func (started) Get(ctx context.Context, _ any) error {
	<-ctx.Done()
	return ctx.Err()
}

func (e *fakeEngine) GetWorkflow(_ context.Context, id, run string) client.WorkflowRun {
	return started{id: id, run: run}
}

func (e *fakeEngine) SignalWorkflow(_ context.Context, id, _, signal string, _ any) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	task, ok := e.tasks[id]
	if !ok {
		return serviceerror.NewNotFound("")
	}
	if signal == workflows.SignalRemove && !task.GetWorkflowExtendedInfo().GetCancelRequested() {
		e.announced++
	}
	return nil
}

func (e *fakeEngine) CancelWorkflow(_ context.Context, id, _ string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	task, ok := e.tasks[id]
	if !ok {
		return serviceerror.NewNotFound("")
	}
	e.cancels++
	e.tasks[id] = extended(task, func(more *workflowpb.WorkflowExecutionExtendedInfo) { more.CancelRequested = true })
	return nil
}

// cancelled reports whether a cancel of the task was requested.
func (e *fakeEngine) cancelled(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tasks[id].GetWorkflowExtendedInfo().GetCancelRequested()
}

// run is the newest execution under the id.
func (e *fakeEngine) run(id string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tasks[id].GetWorkflowExecutionInfo().GetExecution().GetRunId()
}

// extended returns a changed copy of the answer of Describe. Earlier answers stay as they were.
func extended(
	task *workflowservice.DescribeWorkflowExecutionResponse, change func(*workflowpb.WorkflowExecutionExtendedInfo),
) *workflowservice.DescribeWorkflowExecutionResponse {
	now := proto.CloneOf(task)
	if now.WorkflowExtendedInfo == nil {
		now.WorkflowExtendedInfo = &workflowpb.WorkflowExecutionExtendedInfo{}
	}
	if now.WorkflowExtendedInfo.RequestIdInfos == nil {
		now.WorkflowExtendedInfo.RequestIdInfos = make(map[string]*workflowpb.RequestIdInfo)
	}
	change(now.WorkflowExtendedInfo)
	return now
}

// fakeService is the engine's raw interface.
type fakeService struct {
	workflowservice.WorkflowServiceClient // nil: what is not below panics

	e *fakeEngine
}

func (e *fakeEngine) WorkflowService() workflowservice.WorkflowServiceClient {
	return fakeService{e: e}
}

// StartWorkflowExecution starts an execution under an id that no running one has, and attaches the request to one that runs.
func (s fakeService) StartWorkflowExecution(
	_ context.Context, in *workflowservice.StartWorkflowExecutionRequest, _ ...grpc.CallOption,
) (*workflowservice.StartWorkflowExecutionResponse, error) {
	e := s.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.startErr != nil {
		return nil, e.startErr
	}
	if was, ok := e.tasks[in.GetWorkflowId()]; ok && was.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		e.tasks[in.GetWorkflowId()] = extended(was, func(more *workflowpb.WorkflowExecutionExtendedInfo) {
			more.RequestIdInfos[in.GetRequestId()] = &workflowpb.RequestIdInfo{}
		})
		return &workflowservice.StartWorkflowExecutionResponse{RunId: was.GetWorkflowExecutionInfo().GetExecution().GetRunId()}, nil
	} else if ok {
		e.keep(was)
	}
	run := rand.Text()
	e.tasks[in.GetWorkflowId()] = &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: in.GetWorkflowId(), RunId: run},
		Type:      in.GetWorkflowType(), Memo: in.GetMemo(), Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
	}}
	return &workflowservice.StartWorkflowExecutionResponse{RunId: run, Started: true}, nil
}

// keep remembers a run that is no longer its id's newest.
func (e *fakeEngine) keep(was *workflowservice.DescribeWorkflowExecutionResponse) {
	if e.runs == nil {
		e.runs = make(map[string]*workflowservice.DescribeWorkflowExecutionResponse)
	}
	e.runs[was.GetWorkflowExecutionInfo().GetExecution().GetRunId()] = was
}

// DeleteWorkflowExecution deletes at once, as Temporal does some time later.
func (s fakeService) DeleteWorkflowExecution(
	_ context.Context, in *workflowservice.DeleteWorkflowExecutionRequest, _ ...grpc.CallOption,
) (*workflowservice.DeleteWorkflowExecutionResponse, error) {
	e := s.e
	e.mu.Lock()
	defer e.mu.Unlock()
	id, run := in.GetWorkflowExecution().GetWorkflowId(), in.GetWorkflowExecution().GetRunId()
	e.deletes++
	if _, ok := e.runs[run]; ok {
		delete(e.runs, run)
		return &workflowservice.DeleteWorkflowExecutionResponse{}, nil
	}
	if task, ok := e.tasks[id]; ok && task.GetWorkflowExecutionInfo().GetExecution().GetRunId() == run {
		delete(e.tasks, id)
		return &workflowservice.DeleteWorkflowExecutionResponse{}, nil
	}
	return nil, serviceerror.NewNotFound("")
}

func (e *fakeEngine) DescribeWorkflowExecution(
	_ context.Context, id, run string,
) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	e.describes.Add(1)
	e.mu.Lock()
	then := e.described
	e.described = nil
	defer func() {
		e.mu.Unlock()
		if then != nil {
			then()
		}
	}()
	task, ok := e.tasks[id]
	if run != "" && task.GetWorkflowExecutionInfo().GetExecution().GetRunId() != run {
		task, ok = e.runs[run]
	}
	switch {
	case e.away:
		return nil, serviceerror.NewUnavailable("away")
	case !ok:
		return nil, serviceerror.NewNotFound("")
	default:
		return task, nil
	}
}

// ListWorkflow lists all runs, whatever the query.
func (e *fakeEngine) ListWorkflow(
	context.Context, *workflowservice.ListWorkflowExecutionsRequest,
) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	e.lists.Add(1)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.away {
		return nil, serviceerror.NewUnavailable("")
	}
	answer := new(workflowservice.ListWorkflowExecutionsResponse)
	for _, runs := range []map[string]*workflowservice.DescribeWorkflowExecutionResponse{e.tasks, e.runs} {
		for _, task := range runs {
			answer.Executions = append(answer.Executions, task.GetWorkflowExecutionInfo())
		}
	}
	return answer, nil
}

// change replaces what Describe returns for a task; earlier answers stay as they were.
func (e *fakeEngine) change(id string, make func(*workflowpb.WorkflowExecutionInfo) *workflowservice.DescribeWorkflowExecutionResponse) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tasks[id] = make(e.tasks[id].GetWorkflowExecutionInfo())
}

// progress lets a task be polled, with its job at the percentage.
func (e *fakeEngine) progress(t *testing.T, id string, percent int) {
	t.Helper()
	now := execution(t, workflows.PhasePolling, &activities.Progress{State: providers.JobRunning, Percent: percent, Since: time.Now()})
	e.change(id, func(was *workflowpb.WorkflowExecutionInfo) *workflowservice.DescribeWorkflowExecutionResponse {
		now.WorkflowExecutionInfo.Memo = was.GetMemo()
		return now
	})
}

// end lets a task complete.
func (e *fakeEngine) end(t *testing.T, id string) {
	t.Helper()
	e.endAs(t, id, workflows.Result{State: workflows.Completed, Progress: 100})
}

// endAs lets a task end so.
func (e *fakeEngine) endAs(t *testing.T, id string, as workflows.Result) {
	t.Helper()
	result := payload(t, as)
	e.change(id, func(was *workflowpb.WorkflowExecutionInfo) *workflowservice.DescribeWorkflowExecutionResponse {
		return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
			Execution: was.GetExecution(), Status: enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED,
			Memo: &commonpb.Memo{Fields: map[string]*commonpb.Payload{
				tasks.MemoTask:       was.GetMemo().GetFields()[tasks.MemoTask],
				workflows.MemoResult: result,
			}},
		}}
	})
}

// close ends an execution from outside.
func (e *fakeEngine) close(id string, status enumspb.WorkflowExecutionStatus) {
	e.change(id, func(was *workflowpb.WorkflowExecutionInfo) *workflowservice.DescribeWorkflowExecutionResponse {
		return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
			Execution: was.GetExecution(), Status: status, Memo: was.GetMemo(), CloseTime: timestamppb.Now(),
		}}
	})
}

// forget deletes an execution.
func (e *fakeEngine) forget(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.tasks, id)
}

func (e *fakeEngine) down(away bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.away = away
}

func (e *fakeEngine) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.tasks)
}

func (e *fakeEngine) memo(id string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tasks[id].GetWorkflowExecutionInfo().GetMemo().String()
}

// after does something in a while.
func (e *fakeEngine) after(d time.Duration, do func()) { time.AfterFunc(d, do) }

// pass lets fake time go by.
func pass(d time.Duration) { <-time.NewTimer(d).C }

// GetWorkflowHistory gives the events that the engine was given.
func (e *fakeEngine) GetWorkflowHistory(context.Context, string, string, bool, enumspb.HistoryEventFilterType) client.HistoryEventIterator {
	events := slices.Clone(e.events)
	return &fakeHistory{events}
}

type fakeHistory struct{ left []*historypb.HistoryEvent }

func (i *fakeHistory) HasNext() bool { return len(i.left) > 0 }

func (i *fakeHistory) Next() (*historypb.HistoryEvent, error) {
	first := i.left[0]
	i.left = i.left[1:]
	return first, nil
}

// scheduled is the event of an activity.
func scheduled(id int64, name string) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{
		EventId: id, EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
		Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
			ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
				ActivityType: &commonpb.ActivityType{Name: name},
			},
		},
	}
}
