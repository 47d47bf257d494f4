package workflows_test

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"modelrelay/activities"
	"modelrelay/workflows"
)

// TestCopyQueue: copies have a task queue of their own, where what expires soon is copied first and channels take turns.
func TestCopyQueue(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		dies     time.Duration
		priority int
	}{
		"no date": {},
		"soon":    {dies: time.Minute, priority: 1},
		"later":   {dies: 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestEnv(t)
			s.admits("main")
			s.submits(nil)
			s.settles()
			status := done
			if tc.dies > 0 {
				status.ExpiresAt = s.Now().Add(tc.dies).UTC()
			}
			status.OpenData = json.RawMessage(`{"links":["https://h/1"]}`)
			s.polls(status, nil)
			spy := new(optionSpy)
			s.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute, Interceptors: []interceptor.WorkerInterceptor{spy}})
			var queue string
			s.OnActivity("Archive", mock.Anything, mock.Anything).Return(func(ctx context.Context, in activities.ArchiveInput) ([]activities.Output,
				error,
			) {
				queue = activity.GetInfo(ctx).TaskQueue
				if !in.ExpiresAt.Equal(status.ExpiresAt) {
					t.Errorf("dies at %v, want %v", in.ExpiresAt, status.ExpiresAt)
				}
				if !bytes.Equal(in.Job.Ticket.Data, status.OpenData) {
					t.Errorf("got ticket %s, want what the poll found", in.Job.Ticket.Data)
				}
				return []activities.Output{{Object: "outputs/x/0.mp4", Size: 3, SHA256: "ab"}}, nil
			})
			if got := s.play(t, input()); got.State != workflows.Completed {
				t.Fatalf("got %+v", got)
			}
			want := workflows.CopyQueue(standardQueue)
			turn := spy.seen["Archive"].Priority
			if queue != want || turn.PriorityKey != tc.priority || turn.FairnessKey != "main" {
				t.Errorf("copied on %q with %+v, want %q", queue, turn, want)
			}
		})
	}
}

// standardQueue is the queue of the SDK's test suite.
const standardQueue = "default-test-taskqueue"

// optionSpy sees with which options a workflow runs its activities.
type optionSpy struct {
	interceptor.WorkerInterceptorBase

	seen map[string]workflow.ActivityOptions
}

func (o *optionSpy) InterceptWorkflow(
	_ workflow.Context, next interceptor.WorkflowInboundInterceptor,
) interceptor.WorkflowInboundInterceptor {
	return &spyIn{interceptor.WorkflowInboundInterceptorBase{Next: next}, o}
}

// spyIn is the way into a workflow.
type spyIn struct {
	interceptor.WorkflowInboundInterceptorBase

	spy *optionSpy
}

func (i *spyIn) Init(outbound interceptor.WorkflowOutboundInterceptor) error {
	return i.Next.Init(&spyOut{interceptor.WorkflowOutboundInterceptorBase{Next: outbound}, i.spy})
}

// spyOut is the way out of a workflow.
type spyOut struct {
	interceptor.WorkflowOutboundInterceptorBase

	spy *optionSpy
}

func (o *spyOut) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	if o.spy.seen == nil {
		o.spy.seen = make(map[string]workflow.ActivityOptions)
	}
	o.spy.seen[name] = workflow.GetActivityOptions(ctx)
	return o.Next.ExecuteActivity(ctx, name, args...)
}
