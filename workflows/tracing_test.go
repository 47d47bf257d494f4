package workflows_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/workflows"
	"modelrelay/workflows/tracing"
)

const createParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// newTracer makes a tracer whose ended spans the exporter keeps.
func newTracer(tb testing.TB) (trace.Tracer, *tracetest.InMemoryExporter) {
	tb.Helper()
	kept := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(kept))
	tb.Cleanup(func() { _ = provider.Shutdown(context.WithoutCancel(tb.Context())) })
	return provider.Tracer("test"), kept
}

// traced puts an environment into a trace.
func (s *testEnv) traced(t *testing.T, header map[string]string) *tracetest.InMemoryExporter {
	t.Helper()
	tracer, kept := newTracer(t)
	tracing := tracing.New(tracer)
	tracing.Tries = 3
	s.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute, Interceptors: []interceptor.WorkerInterceptor{tracing}})
	payload, err := converter.GetDefaultDataConverter().ToPayload(header)
	if err != nil {
		t.Fatal(err)
	}
	s.SetHeader(&commonpb.Header{Fields: map[string]*commonpb.Payload{"_tracer-data": payload}})
	return kept
}

// TestLooksAreBounded: the trace of a job that is polled for hours has the first polls and the last one.
func TestLooksAreBounded(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	kept := s.traced(t, map[string]string{"traceparent": createParent})
	s.admits("a")
	s.OnActivity("Submit", mock.Anything, mock.Anything).Return(func(context.Context, activities.SubmitInput) (activities.Job, error) {
		return activities.Job{TaskID: "video_test", AcceptedAt: s.Now()}, nil
	})
	looks := 0
	s.OnActivity("Poll", mock.Anything, mock.Anything).Return(func(context.Context, activities.PollInput) (providers.VideoStatus, error) {
		switch looks++; {
		case looks < 10:
			return providers.VideoStatus{}, temporal.NewApplicationErrorWithOptions("not yet", "Pending",
				temporal.ApplicationErrorOptions{NextRetryDelay: time.Millisecond, Category: temporal.ApplicationErrorCategoryBenign})
		default:
			return providers.VideoStatus{State: providers.JobDone, Outputs: 1}, nil
		}
	})
	s.OnActivity("Archive", mock.Anything, mock.Anything).Return(func(context.Context, activities.ArchiveInput) ([]activities.Output, error) {
		return nil, temporal.NewApplicationErrorWithOptions("the upstream's private words", "Fault",
			temporal.ApplicationErrorOptions{NonRetryable: true, Category: temporal.ApplicationErrorCategoryBenign})
	})
	if result := s.run(t); result.State != workflows.Failed || looks != 10 {
		t.Fatalf("got %+v after %d looks", result, looks)
	}
	count, last := make(map[string]int), make(map[string]tracetest.SpanStub)
	for _, span := range kept.GetSpans() {
		count[span.Name]++
		last[span.Name] = span
		if span.SpanContext.TraceID().String() != "4bf92f3577b34da6a3ce929d0e0e4736" {
			t.Errorf("%s is in trace %s", span.Name, span.SpanContext.TraceID())
		}
		if text := fmt.Sprintf("%+v", span); strings.Contains(text, "private") || strings.Contains(text, "a cat") {
			t.Errorf("a span has private data: %s", text)
		}
	}
	if count["RunActivity:Poll"] != 4 || count["RunActivity:Submit"] != 1 || count["RunWorkflow:Video"] != 1 {
		t.Errorf("got spans %v, want three looks and the last", count)
	}
	if span := last["RunActivity:Poll"]; attributeOf(span, "gateway.try") != "10" || span.Status.Code != codes.Unset {
		t.Errorf("the last look is %+v", span.Attributes)
	}
	if got := last["RunActivity:Archive"].Status.Code; got != codes.Error {
		t.Errorf("the failed activity has status %v", got)
	}
	if span := last["RunWorkflow:Video"]; attributeOf(span, "gateway.state") != "failed" ||
		span.Parent.SpanID().String() != "00f067aa0ba902b7" {
		t.Errorf("the workflow's span is %+v of %v", span.Attributes, span.Parent)
	}
}

func attributeOf(span tracetest.SpanStub, key string) string {
	for _, a := range span.Attributes {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

// TestUnreadableTrace: with an invalid header no task fails, and none is traced.
func TestUnreadableTrace(t *testing.T) {
	t.Parallel()
	for name, header := range map[string]map[string]string{
		"empty": {}, "nonsense": {"traceparent": "00-zz"}, "no trace": {"traceparent": "00-00000000000000000000000000000000-00f067aa0ba902b7-01"},
		"no span":   {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-0-01"},
		"unsampled": {"traceparent": strings.TrimSuffix(createParent, "1") + "0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestEnv(t)
			kept := s.traced(t, header)
			s.OnActivity("Admit", mock.Anything, mock.Anything).Return(activities.Admission{}, errors.New("broken"))
			s.ExecuteWorkflow(workflows.Video, input())
			if spans := kept.GetSpans(); len(spans) != 0 {
				t.Errorf("got %+v", spans)
			}
		})
	}
}

// TestStartsAreTraced: a start within a recorded span has a span of its own, one outside has none.
func TestStartsAreTraced(t *testing.T) {
	t.Parallel()
	tracer, kept := newTracer(t)
	var within []trace.SpanContext
	out := &starter{start: func(ctx context.Context) { within = append(within, trace.SpanContextFromContext(ctx)) }}
	starts := tracing.New(tracer).InterceptClient(out)
	ctx, span := tracer.Start(t.Context(), "request")
	for _, ctx := range []context.Context{t.Context(), ctx} {
		in := &interceptor.ClientExecuteWorkflowInput{Options: &client.StartWorkflowOptions{ID: "video_1"}, WorkflowType: "Video"}
		if _, err := starts.ExecuteWorkflow(ctx, in); err != nil {
			t.Fatal(err)
		}
	}
	span.End()
	if within[0].IsValid() {
		t.Errorf("a start outside of a trace is within %v", within[0])
	}
	if spans := kept.GetSpans(); len(spans) != 2 || spans[0].SpanContext.SpanID() != within[1].SpanID() ||
		spans[0].Name != "StartWorkflow:Video" || spans[0].Parent.SpanID() != span.SpanContext().SpanID() ||
		attributeOf(spans[0], "gateway.task") != "video_1" {
		t.Errorf("got %+v", spans)
	}
}

// starter ends the chain of interceptors.
type starter struct {
	interceptor.ClientOutboundInterceptorBase

	start func(context.Context)
}

func (s *starter) ExecuteWorkflow(ctx context.Context, _ *interceptor.ClientExecuteWorkflowInput) (client.WorkflowRun, error) {
	s.start(ctx)
	return nil, nil
}
