package tasks_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// fakeCatalogue is an engine's visibility that answers every query with the same executions and counts its queries.
type fakeCatalogue struct {
	client.Client

	executions []*workflowpb.WorkflowExecutionInfo
	now        map[string]*workflowpb.WorkflowExecutionInfo // as they are by now, by id; others do not answer
	lists      atomic.Int64
	counts     atomic.Int64
	takes      time.Duration // of a count
	describes  atomic.Int64
	mu         sync.Mutex
	queries    []string
	described  map[string]int
}

func (c *fakeCatalogue) note(query string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queries = append(c.queries, query)
}

func (c *fakeCatalogue) ListWorkflow(
	_ context.Context, in *workflowservice.ListWorkflowExecutionsRequest,
) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	c.lists.Add(1)
	c.note(in.GetQuery())
	return &workflowservice.ListWorkflowExecutionsResponse{Executions: c.executions, NextPageToken: []byte("next")}, nil
}

func (c *fakeCatalogue) DescribeWorkflowExecution(
	_ context.Context, id, _ string,
) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	c.describes.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.described == nil {
		c.described = make(map[string]int)
	}
	c.described[id]++
	if c.now[id] == nil {
		return nil, serviceerror.NewUnavailable("away")
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: c.now[id]}, nil
}

func (c *fakeCatalogue) CountWorkflow(
	_ context.Context, in *workflowservice.CountWorkflowExecutionsRequest,
) (*workflowservice.CountWorkflowExecutionsResponse, error) {
	c.counts.Add(1)
	c.note(in.GetQuery())
	<-time.After(c.takes)
	answer := &workflowservice.CountWorkflowExecutionsResponse{Count: 1}
	switch query := in.GetQuery(); {
	case strings.Contains(query, "'queued'"):
		answer.Count = 12
	case strings.Contains(query, "'failed'"):
		answer.Count = 2
	case strings.Contains(query, "'Notify'"):
		answer.Count = 3
	}
	return answer, nil
}

func (c *fakeCatalogue) DescribeTaskQueue(
	context.Context, string, enumspb.TaskQueueType,
) (*workflowservice.DescribeTaskQueueResponse, error) {
	return &workflowservice.DescribeTaskQueueResponse{Pollers: []*taskqueuepb.PollerInfo{
		{Identity: "one"},
		{Identity: "one"},
		{Identity: "two"},
	}}, nil
}

func listedExecution(
	t *testing.T, id string, status enumspb.WorkflowExecutionStatus, attributes map[string]string,
) *workflowpb.WorkflowExecutionInfo {
	t.Helper()
	fields := make(map[string]*commonpb.Payload)
	for name, value := range attributes {
		payload, err := converter.GetDefaultDataConverter().ToPayload(value)
		if err != nil {
			t.Fatal(err)
		}
		fields[name] = payload
	}
	return &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: "run"}, Status: status,
		SearchAttributes: &commonpb.SearchAttributes{IndexedFields: fields},
	}
}

// TestDeliveries: Deliveries lists webhooks by phase, each with its task.
func TestDeliveries(t *testing.T) {
	t.Parallel()
	engine := &fakeCatalogue{executions: []*workflowpb.WorkflowExecutionInfo{
		listedExecution(t, "notify_video_1_completed", enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, map[string]string{
			workflows.AttrState: "delivering", workflows.AttrToken: "anna", workflows.AttrModel: "sora-2",
		}),
		listedExecution(t, "notify_video_2_failed_gen1", enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED,
			map[string]string{workflows.AttrState: "undelivered"}),
		listedExecution(t, "notify_video_3_completed", enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED,
			map[string]string{workflows.AttrState: "delivering"}),
	}}
	operator := tasks.NewOperator(engine, "default", "video")
	filter := tasks.DeliveryFilter{Token: "anna", Phase: workflows.PhaseUndelivered, Since: time.Unix(1000, 0), Until: time.Unix(2000, 0)}
	found, next, err := operator.Deliveries(t.Context(), filter, nil, 50)
	if err != nil || len(found) != 3 || string(next) != "next" {
		t.Fatalf("got %v, %q, %v", found, next, err)
	}
	for i, want := range []tasks.ListedDelivery{
		{Task: "video_1", Event: "video.completed", State: workflows.PhaseDelivering, Token: "anna", Model: "sora-2"},
		{Task: "video_2", Event: "video.failed", State: workflows.PhaseUndelivered},
		{Task: "video_3", Event: "video.completed", State: workflows.PhaseUndelivered},
	} {
		got := found[i]
		if got.Task != want.Task || got.Event != want.Event || got.State != want.State || got.Token != want.Token || got.Model != want.Model {
			t.Errorf("delivery %d: got %+v, want %+v", i, got, want)
		}
		if got.Path != "/namespaces/default/workflows/"+got.ID+"/run" {
			t.Errorf("path %s", got.Path)
		}
	}
	const want = "WorkflowType = 'Notify' AND ExecutionStatus != 'ContinuedAsNew' AND TaskToken = 'anna' AND TaskState = 'undelivered'" +
		" AND StartTime >= '1970-01-01T00:16:40Z' AND StartTime < '1970-01-01T00:33:20Z'"
	if engine.queries[0] != want {
		t.Errorf("asked %s,\nwant %s", engine.queries[0], want)
	}
	if _, _, err := operator.Deliveries(t.Context(), tasks.DeliveryFilter{Token: "' OR ''='"}, nil, 50); kindOf(err) != providers.Invalid {
		t.Errorf("a token with a quote: %v", err)
	}
}

// TestListOfCalls: the kind, the operation and the phase select, and a call has both of its own.
func TestListOfCalls(t *testing.T) {
	t.Parallel()
	engine := &fakeCatalogue{executions: []*workflowpb.WorkflowExecutionInfo{
		listedExecution(t, "call_1", enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, map[string]string{
			workflows.AttrState: "calling", workflows.AttrOperation: "POST /v1/rerank",
		}),
		listedExecution(t, "video_1", enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, map[string]string{workflows.AttrState: "completed"}),
	}}
	filter := tasks.Filter{Kind: "call", Operation: "POST /v1/rerank", Phase: workflows.PhaseCalling}
	found, _, err := tasks.NewOperator(engine, "default", "video").Page(t.Context(), filter, nil, 50)
	if err != nil || len(found) != 2 || found[0].Kind != activities.KindCall || found[0].Operation != "POST /v1/rerank" ||
		found[1].Kind != activities.KindVideo {
		t.Fatalf("got %+v, %v", found, err)
	}
	const want = "WorkflowType IN ('Video', 'Call') AND ExecutionStatus != 'ContinuedAsNew' AND WorkflowType = 'Call'" +
		" AND TaskOperation = 'POST /v1/rerank' AND TaskState = 'calling'"
	if engine.queries[0] != want {
		t.Errorf("asked %s,\nwant %s", engine.queries[0], want)
	}
}

// TestPagesAreShared: twenty tabs that show the same page cost one visibility query in two seconds; another page, or the same
// one later, is read for itself.
func TestPagesAreShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		engine := &fakeCatalogue{}
		operator := tasks.NewOperator(engine, "default", "video")
		page := func(filter tasks.Filter, cursor string) {
			if _, next, err := operator.Page(t.Context(), filter, []byte(cursor), 50); err != nil || string(next) != "next" {
				t.Errorf("page: %q, %v", next, err)
			}
		}
		var tabs sync.WaitGroup
		for range 20 {
			tabs.Go(func() { page(tasks.Filter{Stuck: true}, "") })
		}
		tabs.Wait()
		if got := engine.lists.Load(); got != 1 {
			t.Errorf("%d queries for one page, want 1", got)
		}
		page(tasks.Filter{Stuck: true}, "next")
		page(tasks.Filter{Until: time.Unix(2000, 0)}, "")
		if got := engine.lists.Load(); got != 3 {
			t.Errorf("%d queries for three pages, want 3", got)
		}
		if last := engine.queries[2]; !strings.HasSuffix(last, " AND StartTime < '1970-01-01T00:33:20Z'") {
			t.Errorf("until: asked %s", last)
		}
		<-time.After(2 * time.Second) // of the bubble
		page(tasks.Filter{Stuck: true}, "")
		if got := engine.lists.Load(); got != 4 {
			t.Errorf("%d queries after two seconds, want 4", got)
		}
	})
}

// TestPagesShowRunningTasksAnew: a cached page shows the present state of running tasks without another visibility query.
// Concurrent readers share the Describe calls. An ended task is not described, and a task whose Describe fails stays as it was.
func TestPagesShowRunningTasksAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		engine := &fakeCatalogue{executions: []*workflowpb.WorkflowExecutionInfo{
			listedExecution(t, "video_runs", enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, map[string]string{workflows.AttrState: "polling"}),
			listedExecution(t, "video_ended", enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, map[string]string{workflows.AttrState: "completed"}),
			listedExecution(t, "video_silent", enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, map[string]string{workflows.AttrState: "queued"}),
		}, now: map[string]*workflowpb.WorkflowExecutionInfo{
			"video_runs": listedExecution(t, "video_runs", enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED,
				map[string]string{workflows.AttrState: "completed"}),
		}}
		for i, info := range engine.executions {
			info.Execution.RunId += strconv.Itoa(i)
		}
		operator := tasks.NewOperator(engine, "default", "video")
		want := func(phases ...workflows.Phase) {
			t.Helper()
			found, _, err := operator.Page(t.Context(), tasks.Filter{}, nil, 50)
			if err != nil || len(found) != len(phases) {
				t.Fatalf("got %d tasks, %v", len(found), err)
			}
			for i, phase := range phases {
				if found[i].Phase != phase {
					t.Errorf("%s: %s, want %s", found[i].ID, found[i].Phase, phase)
				}
			}
		}
		want(workflows.PhasePolling, workflows.PhaseCompleted, workflows.PhaseQueued)
		if got := engine.describes.Load(); got != 0 {
			t.Errorf("%d describes for a page that was read just now", got)
		}
		<-time.After(time.Second) // of the bubble
		var tabs sync.WaitGroup
		for range 20 {
			tabs.Go(func() { want(workflows.PhaseCompleted, workflows.PhaseCompleted, workflows.PhaseQueued) })
		}
		tabs.Wait()
		// A failed Describe serves the readers that waited for it. A later reader tries again.
		if got := engine.describes.Load(); got < 2 || got > 21 || engine.described["video_runs"] != 1 || engine.described["video_ended"] != 0 {
			t.Errorf("%d describes, of which %v", got, engine.described)
		}
		if got := engine.lists.Load(); got != 1 {
			t.Errorf("%d visibility queries, want 1", got)
		}
	})
}

// TestCountsAsksAtOnce: Counts runs at most three queries at once, which is faster than one by one and spares a small server.
func TestCountsAsksAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		counter := tasks.NewOperator(&fakeCatalogue{takes: time.Second}, "default", "video")
		began := time.Now()
		if _, err := counter.Counts(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 3*time.Second { // seven counts, three at once
			t.Errorf("it took %s", took)
		}
	})
}

// TestCountsIsNotTakenTwice: a caller after the end of a count, while a slow engine still counts for the next one, waits for
// that.
func TestCountsIsNotTakenTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		engine := &fakeCatalogue{}
		counter := tasks.NewOperator(engine, "default", "video")
		ask := func(age, wait time.Duration) {
			t.Helper()
			began := time.Now()
			counts, err := counter.Counts(t.Context())
			if took := time.Since(began); err != nil || took != wait || time.Since(counts.At) != age {
				t.Errorf("a count of %s ago, %v, after %s; want %s, after %s", time.Since(counts.At), err, took, age, wait)
			}
		}
		ask(0, 0)
		asked := engine.counts.Load()
		engine.takes = 2 * time.Second // three at once: it takes six seconds
		<-time.After(6 * time.Second)  // of the bubble
		ask(6*time.Second, 0)
		<-time.After(5 * time.Second)
		ask(6*time.Second, time.Second)
		if got := engine.counts.Load(); got != 2*asked {
			t.Errorf("%d queries, want %d", got, 2*asked)
		}
	})
}

// TestCounts: all readers within ten seconds share one result.
func TestCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		engine := &fakeCatalogue{}
		counter := tasks.NewOperator(engine, "default", "video")
		var first tasks.Counts
		for range 5 {
			counts, err := counter.Counts(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			first = counts
		}
		if first.Phases[workflows.PhaseQueued] != 12 || first.Stuck != 1 || first.Failed != 2 || first.Undelivered != 3 || first.Workers != 2 ||
			first.At.IsZero() {
			t.Errorf("counted %+v", first)
		}
		asked := engine.counts.Load()
		if asked != int64(len(first.Phases))+3 {
			t.Errorf("%d queries for five readers", asked)
		}
		// After five seconds a reader receives the old result at once, and the counter refreshes it in the background.
		engine.takes = time.Second
		<-time.After(6 * time.Second) // of the bubble
		for range 3 {
			began := time.Now()
			if old, err := counter.Counts(t.Context()); err != nil || !old.At.Equal(first.At) || time.Since(began) != 0 {
				t.Errorf("six seconds later: taken at %s, %v, after %s", old.At, err, time.Since(began))
			}
		}
		<-time.After(3*time.Second + time.Millisecond)
		if next, err := counter.Counts(t.Context()); err != nil || next.At.Sub(first.At) != 6*time.Second || engine.counts.Load() != 2*asked {
			t.Errorf("nine seconds later: taken at %s, %v, %d queries", next.At, err, engine.counts.Load())
		}
		engine.counts.Store(asked)
		engine.takes, first = 0, tasks.Counts{}
		<-time.After(10 * time.Second)
		if next, err := counter.Counts(t.Context()); err != nil || !next.At.After(first.At) || engine.counts.Load() != 2*asked {
			t.Errorf("ten seconds later: taken at %s, %v, %d queries", next.At, err, engine.counts.Load())
		}
	})
}
