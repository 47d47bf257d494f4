// Package tracing carries the trace of a create through its task: Temporal interceptors of clients and workers. It decides
// nothing of a task, and must not import package tasks, storage or an SDK of traces.
package tracing

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/workflows"
)

// tracedTries is how many tries of one activity a trace shows each: a job's looks, where its length is known, and all
// deliveries of an event. Of later ones it shows the last, so that a job of hours does not make a trace that nobody can
// read.
const tracedTries = 16

// Attributes of spans of a task.
const (
	traceTry = attribute.Key("gateway.try")
	// traceNext is the wait before the next try, in seconds.
	traceNext  = attribute.Key("gateway.next_try")
	traceState = attribute.Key("gateway.state")
)

// Interceptor carries the trace of a create through its task and to its webhook: spans of the start, of each workflow once it
// has ended, and of the tries of its activities. What begins outside of a recorded trace has none. A workflow's steps do
// not depend on it, so histories of workers with and without it are the same to both.
//
// Temporal's own OpenTelemetry interceptor is not used because it has a span for every try, without bound, and draws a
// new id for a workflow's span in each worker that takes it over, which leaves the spans of its activities without their parent.
type Interceptor struct {
	interceptor.InterceptorBase

	// Tries is how many tries of one activity a trace shows each; New sets a default.
	Tries  int
	tracer trace.Tracer
}

// New makes the interceptor of clients and workers. The tracer's ids must come from GivenSpanID where it has one.
func New(tracer trace.Tracer) *Interceptor { return &Interceptor{tracer: tracer, Tries: tracedTries} }

// InterceptClient implements interceptor.ClientInterceptor.
func (t *Interceptor) InterceptClient(next interceptor.ClientOutboundInterceptor) interceptor.ClientOutboundInterceptor {
	return &tracedClient{interceptor.ClientOutboundInterceptorBase{Next: next}, t.tracer}
}

// InterceptWorkflow implements interceptor.WorkerInterceptor.
func (t *Interceptor) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &tracedWorkflow{interceptor.WorkflowInboundInterceptorBase{Next: next}, t.tracer}
}

// InterceptActivity implements interceptor.WorkerInterceptor.
func (t *Interceptor) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &tracedActivity{interceptor.ActivityInboundInterceptorBase{Next: next}, t.tracer, t.Tries}
}

type tracedClient struct {
	interceptor.ClientOutboundInterceptorBase

	tracer trace.Tracer
}

// ExecuteWorkflow is the start of a workflow.
func (c *tracedClient) ExecuteWorkflow(ctx context.Context, in *interceptor.ClientExecuteWorkflowInput) (client.WorkflowRun, error) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return c.Next.ExecuteWorkflow(ctx, in)
	}
	ctx, span := c.tracer.Start(ctx, "StartWorkflow:"+in.WorkflowType,
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(providers.TraceTask.String(in.Options.ID)))
	defer span.End()
	write(interceptor.Header(ctx), span.SpanContext())
	run, err := c.Next.ExecuteWorkflow(ctx, in)
	if err != nil {
		span.SetStatus(codes.Error, "")
	}
	return run, err
}

type tracedWorkflow struct {
	interceptor.WorkflowInboundInterceptorBase

	tracer trace.Tracer
}

// Init implements interceptor.WorkflowInboundInterceptor.
func (w *tracedWorkflow) Init(outbound interceptor.WorkflowOutboundInterceptor) error {
	return w.Next.Init(&tracedSteps{interceptor.WorkflowOutboundInterceptorBase{Next: outbound}})
}

// workflowSpan is where a workflow's context has its trace.SpanContext.
type workflowSpan struct{}

// ExecuteWorkflow begins the workflow's span in every worker that takes the workflow over, under the same id, and ends it
// in the one in which the workflow ends.
func (w *tracedWorkflow) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	parent, ok := read(interceptor.WorkflowHeader(ctx))
	if !ok {
		return w.Next.ExecuteWorkflow(ctx, in)
	}
	info := workflow.GetInfo(ctx)
	outer := withSpanID(context.Background(), info.WorkflowExecution.RunID) //nolint:forbidigo // a workflow has no context of this kind
	_, span := w.tracer.Start(trace.ContextWithRemoteSpanContext(outer, parent), "RunWorkflow:"+info.WorkflowType.Name,
		trace.WithTimestamp(info.WorkflowStartTime), trace.WithAttributes(providers.TraceTask.String(info.WorkflowExecution.ID)))
	result, err := w.Next.ExecuteWorkflow(workflow.WithValue(ctx, workflowSpan{}, span.SpanContext()), in)
	if workflow.IsReplaying(ctx) { // it has ended before
		return result, err
	}
	if workflow.IsContinueAsNewError(err) {
		span.End()
		return result, err
	}
	if ended, ok := result.(workflows.Result); ok && err == nil {
		span.SetAttributes(traceState.String(string(ended.State)))
		if ended.State == workflows.Failed {
			span.SetStatus(codes.Error, "")
		}
	}
	if err != nil {
		span.SetStatus(codes.Error, "")
	}
	span.End()
	return result, err
}

type tracedSteps struct {
	interceptor.WorkflowOutboundInterceptorBase
}

// ExecuteActivity implements interceptor.WorkflowOutboundInterceptor.
func (s *tracedSteps) ExecuteActivity(ctx workflow.Context, activityType string, args ...any) workflow.Future {
	pass(ctx)
	return s.Next.ExecuteActivity(ctx, activityType, args...)
}

// ExecuteLocalActivity implements interceptor.WorkflowOutboundInterceptor.
func (s *tracedSteps) ExecuteLocalActivity(ctx workflow.Context, activityType string, args ...any) workflow.Future {
	pass(ctx)
	return s.Next.ExecuteLocalActivity(ctx, activityType, args...)
}

// ExecuteChildWorkflow implements interceptor.WorkflowOutboundInterceptor.
func (s *tracedSteps) ExecuteChildWorkflow(ctx workflow.Context, childType string, args ...any) workflow.ChildWorkflowFuture {
	pass(ctx)
	return s.Next.ExecuteChildWorkflow(ctx, childType, args...)
}

// NewContinueAsNewError implements interceptor.WorkflowOutboundInterceptor.
func (s *tracedSteps) NewContinueAsNewError(ctx workflow.Context, run any, args ...any) error {
	pass(ctx)
	return s.Next.NewContinueAsNewError(ctx, run, args...)
}

// pass hands the workflow's span on to the step that is about to be scheduled.
func pass(ctx workflow.Context) {
	if span, ok := ctx.Value(workflowSpan{}).(trace.SpanContext); ok {
		write(interceptor.WorkflowHeader(ctx), span)
	}
}

type tracedActivity struct {
	interceptor.ActivityInboundInterceptorBase

	tracer trace.Tracer
	tries  int
}

// ExecuteActivity is one try.
func (a *tracedActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	parent, ok := read(interceptor.Header(ctx))
	if !ok {
		return a.Next.ExecuteActivity(ctx, in)
	}
	info, began := activity.GetInfo(ctx), time.Now()
	outer := trace.ContextWithRemoteSpanContext(ctx, parent)
	if int(info.Attempt) > a.tries {
		result, err := a.Next.ExecuteActivity(ctx, in)
		if isLast(err) {
			_, span := a.begin(outer, info, began)
			endTry(span, err)
		}
		return result, err
	}
	ctx, span := a.begin(outer, info, began)
	result, err := a.Next.ExecuteActivity(ctx, in)
	endTry(span, err)
	return result, err
}

// begin begins the span of a try that began at a time.
func (a *tracedActivity) begin(ctx context.Context, info activity.Info, began time.Time) (context.Context, trace.Span) {
	return a.tracer.Start(ctx, "RunActivity:"+info.ActivityType.Name, trace.WithTimestamp(began), trace.WithAttributes(
		providers.TraceTask.String(info.WorkflowExecution.ID), traceTry.Int(int(info.Attempt)),
	))
}

// isLast tells that no other try follows, as far as the try itself knows.
func isLast(err error) bool {
	var app *temporal.ApplicationError
	return !errors.As(err, &app) || app.NonRetryable()
}

// endTry ends the span of a try. That a job is not done yet is no failure.
func endTry(span trace.Span, err error) {
	defer span.End()
	var app *temporal.ApplicationError
	if errors.As(err, &app) && app.NextRetryDelay() > 0 {
		span.SetAttributes(traceNext.Float64(app.NextRetryDelay().Seconds()))
	}
	if app != nil && app.Category() == temporal.ApplicationErrorCategoryBenign && !app.NonRetryable() {
		return
	}
	if fault, bad := activities.Outcome(err); bad {
		span.SetAttributes(attribute.String("error.type", string(fault.Kind)))
		span.SetStatus(codes.Error, "")
	}
}
