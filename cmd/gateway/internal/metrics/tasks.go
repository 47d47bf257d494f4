package metrics

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"modelrelay/activities"
	"modelrelay/workflows"
)

// taskMetrics counts tasks and their steps. The Temporal SDK counts activities and workflows by type.
type taskMetrics struct {
	primed series[string, struct{}] // channels

	created, ended, submits, reconciles, polls, archives, bytes, deliveries, lost metric.Int64Counter
	duration, queued, running, archiving                                          metric.Float64Histogram

	queue queue
}

// queue has the tasks that wait in this process.
type queue struct {
	mu    sync.Mutex
	tasks map[string]queuedTask
}

// queuedTask has the time of a task's creation, and the time until which it counts without another report.
type queuedTask struct{ since, until time.Time }

// queueSlack is added to the interval of a waiting task's reports.
const queueSlack = 10 * time.Second

func (q *queue) take(step activities.Step) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if step.Name != activities.StepQueued {
		delete(q.tasks, step.TaskID)
		return
	}
	if q.tasks == nil {
		q.tasks = make(map[string]queuedTask)
	}
	q.tasks[step.TaskID] = queuedTask{step.Since, time.Now().Add(step.Took + queueSlack)}
}

// oldest returns the age of the oldest waiting task of each kind, 0 for none.
func (q *queue) oldest() map[activities.Kind]time.Duration {
	ages := map[activities.Kind]time.Duration{activities.KindVideo: 0, activities.KindCall: 0}
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(q.tasks, func(_ string, task queuedTask) bool { return now.After(task.until) })
	for id, task := range q.tasks {
		kind := activities.KindOf(id)
		ages[kind] = max(ages[kind], now.Sub(task.since))
	}
	return ages
}

// waitBuckets range from a call that begins immediately to background.deadline and video.queue_limit.
func waitBuckets() []float64 {
	return []float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 21600, 86400}
}

func newTaskMetrics(in *instruments) *taskMetrics {
	t := &taskMetrics{
		created:    in.counter("gateway.tasks.created", "{task}", "Tasks that were started, by kind."),
		ended:      in.counter("gateway.tasks.ended", "{task}", "Tasks that ended, by kind and state, and by code where they failed."),
		submits:    in.counter("gateway.task.submits", "{submit}", "Submits to upstreams; of an unknown one its job is looked for."),
		reconciles: in.counter("gateway.task.reconciles", "{look}", "Outcomes of submits whose answer was lost; unknown ends the task."),
		polls:      in.counter("gateway.task.polls", "{poll}", "Polls of jobs."),
		archives:   in.counter("gateway.task.archives", "{video}", "Copies of finished videos; a failed one is tried again."),
		bytes:      in.counter("gateway.task.archived", "By", "Bytes of videos that were archived."),
		deliveries: in.counter("gateway.webhook.deliveries", "{try}", "Tries to deliver a webhook; given_up: no further attempt follows."),
		duration: in.seconds("gateway.task.duration", "From a task's creation to its end, by kind.", // to video.queue_limit
			[]float64{10, 30, 60, 120, 180, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400}),
		queued: in.seconds("gateway.task.queued.duration",
			"From a task's creation to its first request to an upstream, of a video to the accepted submit, by kind.", waitBuckets()),
		running: in.seconds("gateway.task.running.duration",
			"From a task's first request to an upstream, of a video from the accepted submit, to its end, by kind.", waitBuckets()),
		lost: in.counter("gateway.task.answers.lost", "{answer}",
			"Answers of background calls that were lost; again: the call was sent once more."),
		archiving: in.seconds("gateway.task.archive.duration", "Time of one video's copy.",
			[]float64{.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800}),
	}
	t.primed.make = t.primeChannel
	return t
}

// taskCodes are the gateway's own failure codes. An upstream's own codes count as "upstream".
func taskCodes() []string {
	return []string{
		workflows.CodeCancelled, workflows.CodeDeadlineExceeded, workflows.CodeQueueTimeout, workflows.CodeUpstreamUnknown,
		workflows.CodeArchiveFailed, workflows.CodeChannelGone, workflows.CodeFailedByOperator, workflows.CodeInternal,
		workflows.CodeOutputTooLarge, upstreamCode,
	}
}

const upstreamCode = "upstream"

// prime reports the series of alerts before anything happened: Prometheus sees an increase only of an existing series.
func (t *taskMetrics) prime() {
	ctx := context.Background()
	for _, kind := range []activities.Kind{activities.KindVideo, activities.KindCall} {
		for _, code := range taskCodes() {
			t.ended.Add(ctx, 0, endedLabels(kind, activities.OutcomeFailed, code)...)
		}
		t.ended.Add(ctx, 0, endedLabels(kind, activities.OutcomeCompleted, "")...)
	}
	for _, outcome := range []string{activities.OutcomeAgain, activities.OutcomeUnknown} {
		t.lost.Add(ctx, 0, stepLabels(noName, outcome)...)
	}
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

func kindLabel(kind activities.Kind) attribute.KeyValue {
	return attribute.String("kind", string(kind))
}

func endedLabels(kind activities.Kind, state, code string) []metric.AddOption {
	return adds(kindLabel(kind), attribute.String("state", state), attribute.String("code", code))
}

// Created counts a new task.
func (m *Metrics) Created(kind activities.Kind, model string) {
	m.tasks.created.Add(context.Background(), 1, adds(kindLabel(kind), attribute.String("model", m.names.Load().model(model)))...)
}

// Step counts a step of a task.
func (m *Metrics) Step(step activities.Step) {
	ctx, t, names := context.Background(), m.tasks, m.names.Load()
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
		kind := activities.KindOf(step.TaskID)
		t.queue.take(step)
		t.ended.Add(ctx, 1, endedLabels(kind, step.Outcome, code)...)
		if step.Took > 0 {
			t.duration.Record(ctx, step.Took.Seconds(),
				records(kindLabel(kind), attribute.String("model", names.model(step.Model)), attribute.String("state", step.Outcome))...)
		}
		if step.Ran > 0 && kind == activities.KindVideo { // that of a call is recorded at its beginning
			t.queued.Record(ctx, (step.Took - step.Ran).Seconds(), records(kindLabel(kind))...)
		}
		if step.Ran > 0 {
			t.running.Record(ctx, step.Ran.Seconds(), records(kindLabel(kind), attribute.String("state", step.Outcome))...)
		}
	case activities.StepQueued:
		t.queue.take(step)
	case activities.StepBegun:
		t.queue.take(step)
		t.queued.Record(ctx, step.Took.Seconds(), records(kindLabel(activities.KindOf(step.TaskID)))...)
	case activities.StepRelay:
		t.lost.Add(ctx, 1, stepLabels(channel, step.Outcome)...)
	}
}
