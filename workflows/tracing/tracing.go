// Package tracing carries the trace of a create through its task with Temporal interceptors for clients and workers. It does not
// influence tasks, and must not import package tasks, storage or an SDK of traces.
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

// tracedTries is the number of tries of one activity that a trace shows: all polls of a job of known length, and all deliveries of an
// event. After it a trace shows only the last try, so the trace of a job of hours stays readable.
const tracedTries = 16

// Attributes of spans of a task.
const (
	traceTry = attribute.Key("gateway.try")
	// traceNext is the wait before the next try, in seconds.
	traceNext  = attribute.Key("gateway.next_try")
	traceState = attribute.Key("gateway.state")
)

// Interceptor records the spans of a task: of its start, of each workflow when that ends, and of the tries of its activities. It records
// nothing outside a sampled trace. The steps of a workflow do not depend on it, so histories of workers with and without it are the same.
//
// It replaces Temporal's own OpenTelemetry interceptor, which records a span for every try without bound, and gives the span of a
// workflow a new id in each worker that takes it over, so that the spans of its activities lose their parent.
type Interceptor struct {
	interceptor.InterceptorBase

	// Tries is the number of tries of one activity that a trace shows; New sets a default.
	Tries  int
	tracer trace.Tracer
}

// New returns an interceptor for clients and workers. The tracer's ids must come from GivenSpanID if it has one.
func New(tracer trace.Tracer) *Interceptor { return &Interceptor{tracer: tracer, Tries: tracedTries} }

// InterceptClient implements interceptor.ClientInterceptor.
func (t *Interceptor) InterceptClient(next interceptor.ClientOutboundInterceptor) interceptor.ClientOutboundInterceptor {
	return &tracedClient{interceptor.ClientOutboundInterceptorBase{Next: next}, t.tracer}
}

// InterceptWorkflow implements interceptor.WorkerInterceptor.
func (t *Interceptor) InterceptWorkflow(
	_ workflow.Context, next interceptor.WorkflowInboundInterceptor,
) interceptor.WorkflowInboundInterceptor {
	return &tracedWorkflow{interceptor.WorkflowInboundInterceptorBase{Next: next}, t.tracer}
}

// InterceptActivity implements interceptor.WorkerInterceptor.
func (t *Interceptor) InterceptActivity(
	_ context.Context, next interceptor.ActivityInboundInterceptor,
) interceptor.ActivityInboundInterceptor {
	return &tracedActivity{interceptor.ActivityInboundInterceptorBase{Next: next}, t.tracer, t.Tries}
}

type tracedClient struct {
	interceptor.ClientOutboundInterceptorBase

	tracer trace.Tracer
}

// ExecuteWorkflow records the start of a workflow.
func (c *tracedClient) ExecuteWorkflow(ctx context.Context, in *interceptor.ClientExecuteWorkflowInput) (client.WorkflowRun, error) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return c.Next.ExecuteWorkflow(ctx, in)
	}
	ctx, span := c.tracer.Start(ctx, "StartWorkflow:"+in.WorkflowType,
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(providers.TraceTask.String(in.Options.ID)))
	defer span.End()
	write(ctx, interceptor.Header(ctx), span.SpanContext())
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

type workflowSpan struct{}

// ExecuteWorkflow starts the workflow's span, with the same id in every worker that takes it over. The last one records it.
func (w *tracedWorkflow) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	parent, ok := read(noContext(), interceptor.WorkflowHeader(ctx))
	if !ok {
		return w.Next.ExecuteWorkflow(ctx, in)
	}
	info := workflow.GetInfo(ctx)
	outer := withSpanID(noContext(), info.WorkflowExecution.RunID)
	_, span := w.tracer.Start(trace.ContextWithRemoteSpanContext(outer, parent), "RunWorkflow:"+info.WorkflowType.Name,
		trace.WithTimestamp(info.WorkflowStartTime), trace.WithAttributes(providers.TraceTask.String(info.WorkflowExecution.ID)))
	result, err := w.Next.ExecuteWorkflow(workflow.WithValue(ctx, workflowSpan{}, span.SpanContext()), in)
	if workflow.IsReplaying(ctx) { // the span was recorded when the workflow ended
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

// pass puts the workflow's span into the header of the next scheduled step.
func pass(ctx workflow.Context) {
	if span, ok := ctx.Value(workflowSpan{}).(trace.SpanContext); ok {
		write(noContext(), interceptor.WorkflowHeader(ctx), span)
	}
}

type tracedActivity struct {
	interceptor.ActivityInboundInterceptorBase

	tracer trace.Tracer
	tries  int
}

// ExecuteActivity records one try.
func (a *tracedActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	parent, ok := read(ctx, interceptor.Header(ctx))
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

func (a *tracedActivity) begin(ctx context.Context, info activity.Info, began time.Time) (context.Context, trace.Span) {
	return a.tracer.Start(ctx, "RunActivity:"+info.ActivityType.Name, trace.WithTimestamp(began), trace.WithAttributes(
		providers.TraceTask.String(info.WorkflowExecution.ID), traceTry.Int(int(info.Attempt)),
	))
}

// isLast reports whether the error, as far as the try knows, permits no other try.
func isLast(err error) bool {
	var app *temporal.ApplicationError
	return !errors.As(err, &app) || app.NonRetryable()
}

// endTry ends the span of a try. A job that has not ended yet is not a failure.
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
