package metrics

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"modelrelay/storage"
	"modelrelay/storage/slots"
	"modelrelay/workflows/tasks"
)

const (
	// countEvery is the interval at which a process counts the tasks: alerts wait for minutes, and visibility requests are expensive.
	countEvery = time.Minute
	// recountAfter is the wait after a count that failed or found no worker, as at the start, when workers are not ready.
	recountAfter = 10 * time.Second
	// countTimeout bounds one count.
	countTimeout = 10 * time.Second
	// countTTL is how long a count is reported without a newer one: no value is better than an old one.
	countTTL = 3 * countEvery
)

// taskCounter counts what all processes share: tasks in Temporal, and slots and queues in Redis.
type taskCounter struct {
	operator *tasks.Operator
	slots    *slots.Store
	limited  func() []string // the channels with limited jobs

	tasks atomic.Pointer[counted[tasks.Counts]]
	lines atomic.Pointer[counted[map[string]slots.State]]
}

// counted is a value with its time.
type counted[T any] struct {
	figure T
	at     time.Time
}

func fresh[T any](from *atomic.Pointer[counted[T]]) (figure T, ok bool) {
	c := from.Load()
	if c == nil || time.Since(c.at) > countTTL {
		return figure, false
	}
	return c.figure, true
}

func (c *taskCounter) run(ctx context.Context) {
	for wait := time.Duration(0); storage.Sleep(ctx, wait) == nil; {
		wait = countEvery
		if !c.count(ctx) {
			wait = recountAfter
		}
	}
}

// count updates the counts that are available, and reports whether all succeeded and there is a worker. Other code reports outages.
func (c *taskCounter) count(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	channels := c.limited()
	if states, err := c.slots.States(ctx, channels); err == nil {
		lines := make(map[string]slots.State, len(channels))
		for i, channel := range channels {
			lines[channel] = states[i]
		}
		c.lines.Store(&counted[map[string]slots.State]{lines, time.Now()})
	}
	counts, err := c.operator.Counts(ctx)
	if err != nil {
		return false
	}
	c.tasks.Store(&counted[tasks.Counts]{counts, time.Now()})
	return counts.Workers > 0
}

// CountTasks returns the function that counts tasks until its context ends, and reports the counts.
func (m *Metrics) CountTasks(operator *tasks.Operator, slots *slots.Store) (run func(context.Context), err error) {
	c := &taskCounter{operator: operator, slots: slots, limited: func() []string { return m.names.Load().limited }}
	return c.run, m.watchTasks(c)
}

func (m *Metrics) watchTasks(c *taskCounter) error {
	in := &instruments{meter: m.meter}
	tasks := in.gauge("gateway.tasks.unfinished", "Tasks of the whole installation that have not ended, by phase; calling: background calls.")
	stuck := in.gauge("gateway.tasks.stuck", "Tasks of the whole installation that are in their phase for longer than usual.")
	workers := in.gauge("gateway.task.workers", "Processes that asked for tasks within the last minutes.")
	jobs := in.gauge("gateway.channel.jobs", "Video jobs in flight at a channel with max_jobs.")
	line := in.gauge("gateway.channel.queue", "Video tasks in line for a channel with max_jobs.")
	oldest := in.gauge("gateway.tasks.oldest.queued",
		"Age in seconds of the oldest task that waits in the process for an upstream, by kind; 0 for none.")
	return m.observe(in, func(_ context.Context, o metric.Observer) {
		for kind, age := range m.tasks.queue.oldest() {
			o.ObserveInt64(oldest, int64(age.Seconds()), metric.WithAttributes(kindLabel(kind)))
		}
		if counted, ok := fresh(&c.tasks); ok {
			for phase, n := range counted.Phases {
				o.ObserveInt64(tasks, n, metric.WithAttributes(attribute.String("phase", string(phase))))
			}
			o.ObserveInt64(stuck, counted.Stuck)
			o.ObserveInt64(workers, counted.Workers)
		}
		if counted, ok := fresh(&c.lines); ok {
			for channel, state := range counted {
				label := metric.WithAttributes(attribute.String("channel", channel))
				o.ObserveInt64(jobs, state.Held, label)
				o.ObserveInt64(line, state.Waiting, label)
			}
		}
	}, tasks, stuck, workers, jobs, line, oldest)
}
