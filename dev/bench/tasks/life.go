package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"modelrelay/dev/bench/figures"
	"modelrelay/dev/bench/stage"
)

const (
	// lifeModel is a job of three polls: after 2, 6 and 14 s, or where its length is known after 5, 9.5 and 11.5 s.
	lifeModel = "clip-10s"
	lifeJob   = 10 * time.Second
	// lifeAlone is which share of the tasks is made while the worker stands still, so that what a create costs is told from
	// what follows it; lifeAloneMost bounds them: the worker's long polls must not end meanwhile.
	lifeAlone, lifeAloneMost = 5, 200
	// lifeLimit bounds the time until the last webhook.
	lifeLimit = 5 * time.Minute
	// lifeSample is of how many tasks the histories are read.
	lifeSample = 25
	// hookSecret signs the webhooks.
	hookSecret = "whsec_YmVuY2hiZW5jaGJlbmNoYmVuY2hiZW5jaA==" //nolint:gosec // of the bench's own receiver
)

// hooks hears of the ends of tasks.
type hooks struct {
	server *httptest.Server
	mu     sync.Mutex
	at     map[string]time.Time // by task
	came   chan struct{}        // has room for one: somebody came
}

func newHooks() *hooks {
	h := &hooks{at: make(map[string]time.Time), came: make(chan struct{}, 1)}
	h.server = httptest.NewServer(h)
	return h
}

// ServeHTTP takes one event.
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
	if _, twice := h.at[event.Data.ID]; !twice {
		h.at[event.Data.ID] = time.Now()
	}
	h.mu.Unlock()
	select {
	case h.came <- struct{}{}:
	default:
	}
}

// await returns when so many tasks were told of, and how long after since each was, in order.
func (h *hooks) await(ctx context.Context, tasks int, since time.Time) ([]time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, lifeLimit)
	defer cancel()
	for {
		h.mu.Lock()
		told := len(h.at)
		h.mu.Unlock()
		if told >= tasks {
			break
		}
		select {
		case <-h.came:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %d of %d webhooks came: %w", stage.ErrBroken, told, tasks, ctx.Err())
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var after []time.Duration
	for _, at := range h.at {
		after = append(after, at.Sub(since))
	}
	slices.Sort(after)
	return after, nil
}

// lives measures whole lives of tasks: create, submit, three polls, archive, settle, webhook. The first of them are made while
// the worker stands still, which tells what a create costs; the others while it works.
func lives(ctx context.Context, b *Bench, report *figures.Report) error {
	heard := newHooks()
	defer heard.server.Close()
	c, err := b.cluster(ctx, setting{webhook: heard.server.URL})
	if err != nil {
		return err
	}
	n := b.sizes.Lives
	few := min(max(1, n/lifeAlone), lifeAloneMost)
	first, err := b.herd(c, lifeModel, 0, few, 0)
	if err != nil {
		return err
	}
	defer first.close()
	rest, err := b.herd(c, lifeModel, 0, n, few)
	if err != nil {
		return err
	}
	defer rest.close()
	began := time.Now()
	start, err := c.spent()
	if err != nil {
		return err
	}
	alone, trips, err := first.alone(ctx)
	if err != nil {
		return err
	}
	if err := rest.create(ctx); err != nil {
		return err
	}
	ends, err := heard.await(ctx, len(first.ids)+len(rest.ids), began)
	if err != nil {
		return err
	}
	end, err := c.spent()
	if err != nil {
		return err
	}
	events, err := lifeEvents(ctx, rest.temporal, rest.ids)
	if err != nil {
		return err
	}
	var (
		load, all = fmt.Sprintf("%d lives of tasks", len(ends)), float64(len(ends))
		cost      = end.less(start)
		add       = func(figure, unit string, value float64, want *figures.Target) {
			report.AddOne(load, figure, unit, value, want)
		}
		made = float64(len(first.ids))
		// The last task waited for its job, too.
		took = max(ends[len(ends)-1]-lifeJob, time.Second)
	)
	add("Temporal, CPU of a task", "ms", figures.Milliseconds(cost.temporal)/all, figures.AtMost(45))
	add("worker, CPU of a task", "ms", figures.Milliseconds(cost.worker)/all, figures.AtMost(15))
	add("front, CPU of a task", "ms", figures.Milliseconds(cost.front)/all, figures.AtMost(2))
	add("tasks over a second", "1/s", all/took.Seconds(), figures.AtLeast(35))
	add("history events of a task", "", events.video, nil)
	add("workflow tasks of a task", "", events.steps, nil)
	add("history events of its webhook", "", events.notify, nil)
	add("created a second", "1/s", float64(len(rest.ids))/rest.created.Seconds(), figures.AtLeast(300))
	add("create p50", "ms", figures.Milliseconds(figures.Quantile(rest.creates, 0.50)), figures.AtMost(20))
	add("create p99", "ms", figures.Milliseconds(figures.Quantile(rest.creates, 0.99)), nil)
	load = fmt.Sprintf("%d creates, the worker stands still", len(first.ids))
	add("created a second", "1/s", made/first.created.Seconds(), nil)
	add("create p50", "ms", figures.Milliseconds(figures.Quantile(first.creates, 0.50)), nil)
	add("Temporal, CPU of a create", "ms", figures.Milliseconds(alone.temporal)/made, nil)
	add("front, CPU of a create", "ms", figures.Milliseconds(alone.front)/made, nil)
	if trips > 0 {
		add("round trips to Redis of a create, the background's with them", "", float64(trips)/made, nil)
	}
	return nil
}

// alone creates the herd's tasks while the worker stands still. trips is how often Redis read from its clients meanwhile, 0
// where it does not tell.
func (h *herd) alone(ctx context.Context) (cost spent, trips int64, err error) {
	var before, after spent
	worker := h.worker.PID()
	if err := syscall.Kill(worker, syscall.SIGSTOP); err != nil {
		return cost, 0, fmt.Errorf("stop the worker: %w", err)
	}
	defer func() { err = errors.Join(err, syscall.Kill(worker, syscall.SIGCONT)) }()
	reads, err := redisReads(ctx, h.Redis.Addr)
	if err != nil {
		return cost, 0, err
	}
	if before, err = h.spent(); err != nil {
		return cost, 0, err
	}
	if err := h.create(ctx); err != nil {
		return cost, 0, err
	}
	if after, err = h.spent(); err != nil {
		return cost, 0, err
	}
	now, err := redisReads(ctx, h.Redis.Addr)
	return after.less(before), now - reads, err
}

// redisReads is how often Redis has read from a client's connection, which is once for each round trip; 0 where it does not tell.
func redisReads(ctx context.Context, addr string) (int64, error) {
	c := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = c.Close() }()
	text, err := c.Info(ctx, "stats").Result()
	if err != nil {
		return 0, nil // the embedded one knows no such section
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "total_reads_processed:"); ok {
			return strconv.ParseInt(value, 10, 64)
		}
	}
	return 0, nil
}

// lived is what the histories of a task have, on average.
type lived struct{ video, steps, notify float64 }

// lifeEvents counts in the histories of some of the tasks, and of their webhooks.
func lifeEvents(ctx context.Context, temporal client.Client, ids []string) (sum lived, err error) {
	n := min(lifeSample, len(ids))
	for _, id := range ids[:n] {
		var child string
		for history := temporal.GetWorkflowHistory(ctx, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); history.HasNext(); {
			event, err := history.Next()
			if err != nil {
				return sum, fmt.Errorf("read the history of %s: %w", id, err)
			}
			sum.video++
			if event.GetEventType() == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
				sum.steps++
			}
			if started := event.GetChildWorkflowExecutionStartedEventAttributes(); started != nil {
				child = started.GetWorkflowExecution().GetWorkflowId()
			}
		}
		described, err := temporal.DescribeWorkflowExecution(ctx, child, "")
		if err != nil {
			return sum, fmt.Errorf("describe the webhook of %s: %w", id, err)
		}
		sum.notify += float64(described.GetWorkflowExecutionInfo().GetHistoryLength())
	}
	return lived{sum.video / float64(n), sum.steps / float64(n), sum.notify / float64(n)}, nil
}
