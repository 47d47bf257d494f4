package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"go.temporal.io/api/enums/v1"

	"modelrelay/dev/bench/figures"
	"modelrelay/dev/bench/stage"
)

const (
	// lifeModel is a job of usual length with few polls.
	lifeModel = "clip-10s"
	// lifeLimit bounds the time until the last webhook.
	lifeLimit = 5 * time.Minute
	// idleTasks is how many tasks are created, and read at the end, one at a time.
	idleTasks = 50
	// describedAgain is the time after which the gateway asks Temporal again about a task that has ended.
	describedAgain = 5500 * time.Millisecond
	// historySample is of how many tasks the webhooks' histories are read.
	historySample = 25
	// perSecond is a million tasks a day.
	perSecond = 1e6 / 86400
)

// hooks receives the webhooks of tasks.
type hooks struct {
	server *httptest.Server
	mu     sync.Mutex
	tasks  map[string]bool
	came   chan struct{} // has a value after a webhook arrived
}

func newHooks() *hooks {
	h := &hooks{tasks: make(map[string]bool), came: make(chan struct{}, 1)}
	h.server = httptest.NewServer(h)
	return h
}

// ServeHTTP receives one event.
func (h *hooks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var event struct {
		Type string `json:"type"`
		Data struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.NewDecoder(r.Body).Decode(&event); err != nil || event.Type != "video.completed" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	h.tasks[event.Data.ID] = true
	h.mu.Unlock()
	select {
	case h.came <- struct{}{}:
	default:
	}
}

// await returns when webhooks of n tasks have arrived.
func (h *hooks) await(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, lifeLimit)
	defer cancel()
	for {
		h.mu.Lock()
		got := len(h.tasks)
		h.mu.Unlock()
		if got >= n {
			return nil
		}
		select {
		case <-h.came:
		case <-ctx.Done():
			return fmt.Errorf("%w: %d of %d webhooks arrived: %w", stage.ErrBroken, got, n, ctx.Err())
		}
	}
}

// lives measures whole lives of tasks: create, submit, polls, archive, settlement, webhook. The first tasks are created one
// at a time, which shows the latency of a create on an idle stack, the others by several clients.
func lives(ctx context.Context, b *Bench, report *figures.Report) error {
	received := newHooks()
	defer received.server.Close()
	d, err := b.deploy(ctx, setting{parts: b.sizes.Parts, apis: 1, workers: 1, webhook: received.server.URL})
	if err != nil {
		return err
	}
	h, err := b.herd(d, "life", lifeModel)
	if err != nil {
		return err
	}
	defer h.close()
	n := b.sizes.Lives
	before, err := b.costs(d)
	if err != nil {
		return err
	}
	if err := h.create(ctx, 1, min(n, idleTasks)); err != nil {
		return err
	}
	idle := h.creates
	if err := h.create(ctx, creators, n-len(idle)); err != nil {
		return err
	}
	if err := received.await(ctx, n); err != nil {
		return err
	}
	after, err := b.costs(d)
	if err != nil {
		return err
	}
	if err := h.await(ctx); err != nil {
		return err
	}
	result, err := h.outcome(ctx)
	if err != nil {
		return err
	}
	if err := stage.Pause(ctx, describedAgain); err != nil {
		return err
	}
	for i, id := range h.ids[:len(idle)] {
		if err := h.readOne(ctx, i, id); err != nil {
			return err
		}
	}
	delivery, err := h.deliveryEvents(ctx)
	if err != nil {
		return err
	}
	load := fmt.Sprintf("%d lives of tasks", n)
	add := func(figure, unit string, value float64, want *figures.Target) {
		report.AddOne(load, figure, unit, value, want)
	}
	cost := since(after, before)
	for _, group := range groups() {
		if took, ok := cost[group]; ok {
			add("CPU of a task, "+group, "ms", figures.Milliseconds(took)/float64(n), nil)
		}
	}
	events := float64(figures.Quantile(result.events, 0.50))
	add("history events of a task with a webhook p50", "", events, figures.AtMost(45))
	add("history events of the delivery, mean", "", delivery, nil)
	add("polls of a task p50", "", figures.Quantile(result.polls, 0.50), figures.AtMost(pollsGoal))
	for _, of := range []struct {
		name string
		took []time.Duration
		goal float64 // of p50, in ms
	}{{"create", idle, 30}, {"status", h.reads, 3}} {
		add(of.name+" p50, one at a time", "ms", figures.Milliseconds(figures.Quantile(of.took, 0.50)), figures.AtMost(of.goal))
		add(of.name+" p99, one at a time", "ms", figures.Milliseconds(figures.Quantile(of.took, 0.99)), nil)
	}
	load = fmt.Sprintf("a million tasks a day, %.1f/s", perSecond)
	for _, group := range []string{"temporal", "worker", "api"} {
		add(group, "cores", perSecond*cost[group].Seconds()/float64(n), nil)
	}
	add("history events", "1/s", perSecond*(events+delivery), nil)
	return nil
}

// deliveryEvents is the mean number of events in the histories of webhooks.
func (h *herd) deliveryEvents(ctx context.Context) (float64, error) {
	n := min(historySample, len(h.ids))
	var sum int64
	for _, id := range h.ids[:n] {
		var child string
		for history := h.temporal.GetWorkflowHistory(ctx, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); history.HasNext(); {
			event, err := history.Next()
			if err != nil {
				return 0, fmt.Errorf("read the history of %s: %w", id, err)
			}
			if started := event.GetChildWorkflowExecutionStartedEventAttributes(); started != nil {
				child = started.GetWorkflowExecution().GetWorkflowId()
			}
		}
		described, err := h.temporal.DescribeWorkflowExecution(ctx, child, "")
		if err != nil {
			return 0, fmt.Errorf("describe the webhook of %s: %w", id, err)
		}
		sum += described.GetWorkflowExecutionInfo().GetHistoryLength()
	}
	return float64(sum) / float64(n), nil
}
