package metrics

import (
	"context"
	"slices"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"modelrelay/activities"
	"modelrelay/workflows"
)

// taskMetrics counts video tasks and their steps. The Temporal SDK counts the rest: activities and workflows by their
// type, their failures and times.
type taskMetrics struct {
	names  *atomic.Pointer[names]
	primed series[string, struct{}] // channels

	created, ended, submits, reconciles, polls, archives, bytes, deliveries metric.Int64Counter
	duration, archiving                                                     metric.Float64Histogram
}

// temporalBuckets are for the SDK's timers: from an answer of the server to a job that takes an hour.
func temporalBuckets() []float64 { return []float64{.005, .025, .1, .5, 1, 5, 10, 60, 600, 3600} }

// taskBuckets go from the fastest videos to video.queue_limit. Most take one to ten minutes, a crowded upstream hours.
func taskBuckets() []float64 {
	return []float64{10, 30, 60, 120, 180, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400}
}

// archiveBuckets are for a few to some thousand megabytes.
func archiveBuckets() []float64 { return []float64{.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800} }

func newTaskMetrics(in *instruments, names *atomic.Pointer[names]) *taskMetrics {
	t := &taskMetrics{
		names:      names,
		created:    in.counter("gateway.tasks.created", "{task}", "Video tasks that were started."),
		ended:      in.counter("gateway.tasks.ended", "{task}", "Video tasks that ended, by state, and by code where they failed."),
		submits:    in.counter("gateway.task.submits", "{submit}", "Submits to upstreams; of an unknown one its job is looked for."),
		reconciles: in.counter("gateway.task.reconciles", "{look}", "What became of submits whose answer was lost; unknown ends the task."),
		polls:      in.counter("gateway.task.polls", "{poll}", "Polls of jobs."),
		archives:   in.counter("gateway.task.archives", "{video}", "Copies of finished videos; a failed one is tried again."),
		bytes:      in.counter("gateway.task.archived", "By", "Bytes of videos that were archived."),
		deliveries: in.counter("gateway.webhook.deliveries", "{try}", "Tries to deliver a webhook; given_up: no further attempt follows."),
		duration:   in.seconds("gateway.task.duration", "From a task's creation to its end.", taskBuckets()),
		archiving:  in.seconds("gateway.task.archive.duration", "Time of one video's copy.", archiveBuckets()),
	}
	t.primed.make = t.primeChannel
	return t
}

// taskCodes are our own reasons of a failure. An upstream's own codes count as "upstream".
func taskCodes() []string {
	return []string{
		workflows.CodeCancelled, workflows.CodeDeadlineExceeded, workflows.CodeQueueTimeout, workflows.CodeUpstreamUnknown,
		workflows.CodeArchiveFailed, workflows.CodeChannelGone, workflows.CodeFailedByOperator, workflows.CodeInternal, upstreamCode,
	}
}

const upstreamCode = "upstream"

// prime shows the series that alerts read before anything happened: an increase is only seen of what was there.
func (t *taskMetrics) prime() {
	ctx := context.Background()
	for _, code := range taskCodes() {
		t.ended.Add(ctx, 0, endedLabels(activities.OutcomeFailed, code)...)
	}
	t.ended.Add(ctx, 0, endedLabels(activities.OutcomeCompleted, "")...)
	for _, outcome := range []string{activities.OutcomeDelivered, activities.OutcomeAgain, activities.OutcomeGivenUp} {
		t.deliveries.Add(ctx, 0, adds(attribute.String("outcome", outcome))...)
	}
}

// primeChannel does the same for a channel at its first step: most channels never run a task.
func (t *taskMetrics) primeChannel(channel string) struct{} {
	ctx := context.Background()
	for _, outcome := range []string{activities.OutcomeAccepted, activities.OutcomeRefused, activities.OutcomeUnknown} {
		t.submits.Add(ctx, 0, stepLabels(channel, outcome)...)
	}
	for _, outcome := range []string{activities.OutcomeFound, activities.OutcomeNever, activities.OutcomeUnknown} {
		t.reconciles.Add(ctx, 0, stepLabels(channel, outcome)...)
	}
	t.archives.Add(ctx, 0, stepLabels(channel, activities.OutcomeOK)...)
	t.bytes.Add(ctx, 0, adds(attribute.String("channel", channel))...)
	return struct{}{}
}

func stepLabels(channel, outcome string) []metric.AddOption {
	return adds(attribute.String("channel", channel), attribute.String("outcome", outcome))
}

func endedLabels(state, code string) []metric.AddOption {
	return adds(attribute.String("state", state), attribute.String("code", code))
}

// Created counts new tasks; a nil *Metrics counts nothing.
func (m *Metrics) Created() func(model string) {
	if m == nil {
		return nil
	}
	return func(model string) {
		m.tasks.created.Add(context.Background(), 1, adds(attribute.String("model", m.names.Load().model(model)))...)
	}
}

// Steps counts the steps of tasks; a nil *Metrics counts nothing.
func (m *Metrics) Steps() func(activities.Step) {
	if m == nil {
		return nil
	}
	return m.tasks.told
}

func (t *taskMetrics) told(step activities.Step) {
	ctx, names := context.Background(), t.names.Load()
	channel := names.channel(step.Channel)
	if step.Channel != "" {
		t.primed.of(channel)
	}
	switch step.Name {
	case activities.StepSubmit:
		t.submits.Add(ctx, 1, stepLabels(channel, step.Outcome)...)
	case activities.StepReconcile:
		t.reconciles.Add(ctx, 1, stepLabels(channel, step.Outcome)...)
	case activities.StepPoll:
		t.polls.Add(ctx, 1, stepLabels(channel, step.Outcome)...)
	case activities.StepArchive:
		t.archives.Add(ctx, 1, stepLabels(channel, step.Outcome)...)
		if step.Outcome == activities.OutcomeOK {
			t.bytes.Add(ctx, step.Bytes, adds(attribute.String("channel", channel))...)
			t.archiving.Record(ctx, step.Took.Seconds())
		}
	case activities.StepDeliver:
		t.deliveries.Add(ctx, 1, adds(attribute.String("outcome", step.Outcome))...)
	case activities.StepEnd:
		code := step.Code
		if code != "" && !slices.Contains(taskCodes(), code) {
			code = upstreamCode
		}
		t.ended.Add(ctx, 1, endedLabels(step.Outcome, code)...)
		if step.Took > 0 {
			t.duration.Record(ctx, step.Took.Seconds(),
				records(attribute.String("model", names.model(step.Model)), attribute.String("state", step.Outcome))...)
		}
	}
}
