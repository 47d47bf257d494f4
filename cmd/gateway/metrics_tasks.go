package main

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// taskMetrics counts video tasks.
type taskMetrics struct {
	names *atomic.Pointer[names]

	created metric.Int64Counter
}

// temporalBuckets are for the SDK's timers: from an answer of the server to a job that takes an hour.
func temporalBuckets() []float64 { return []float64{.005, .025, .1, .5, 1, 5, 10, 60, 600, 3600} }

func newTaskMetrics(in *instruments, names *atomic.Pointer[names]) *taskMetrics {
	return &taskMetrics{
		names:   names,
		created: in.counter("gateway.tasks.created", "{task}", "Video tasks that were started."),
	}
}

// created counts new tasks; nil where nobody counts.
func (m *metrics) created() func(model string) {
	if m == nil {
		return nil
	}
	return func(model string) {
		m.tasks.created.Add(context.Background(), 1, adds(attribute.String("model", m.names.Load().model(model)))...)
	}
}
