package tasks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"modelrelay/dev/bench/figures"
	"modelrelay/dev/bench/stage"
)

const (
	videosPath = "/v1/videos"
	// creators is how many clients create at the same time at each API, readers how many read.
	creators = 8
	readers  = 100
	// readFor is how long they read.
	readFor = 10 * time.Second
	// retryAfter is the wait after a create that was answered 429 or 503.
	retryAfter = time.Second
	// countEvery is the wait between two counts of the tasks in flight.
	countEvery = 2 * time.Second
	// listPage is how many tasks Temporal lists in one page.
	listPage = 1000
	// over is Temporal's query for the workflows of ended tasks.
	over = "WorkflowType = 'Video' AND ExecutionStatus != 'Running'"
)

// herd is a number of tasks with the same prompt and model.
type herd struct {
	*Bench
	*deployment

	client   *http.Client
	temporal client.Client
	// name begins the prompts of the tasks. The upstream remembers those of earlier loads, so it must be unique.
	name, model string

	began   time.Time // of the first create
	created time.Duration
	mu      sync.Mutex
	ids     []string
	creates []time.Duration
	reads   []time.Duration
	refused int // creates and reads that were answered 429 or 503
}

// herd prepares a herd without tasks. Close it after use.
func (b *Bench) herd(d *deployment, name, model string) (*herd, error) {
	engine, err := client.Dial(client.Options{HostPort: d.temporal.Addr, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		return nil, fmt.Errorf("reach Temporal: %w", err)
	}
	return &herd{
		Bench: b, deployment: d, temporal: engine, name: name + " ", model: model,
		client: &http.Client{Timeout: stage.AnswerTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: readers}},
	}, nil
}

func (h *herd) close() {
	h.client.CloseIdleConnections()
	h.temporal.Close()
}

// task is what the loads read of a task.
type task struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	Prompt string `json:"prompt"`
}

// create makes n more tasks with a number of clients.
func (h *herd) create(ctx context.Context, clients, n int) error {
	h.began = time.Now()
	defer func() { h.created = time.Since(h.began) }()
	first := len(h.ids)
	return stage.Crew(ctx, clients, n, func(ctx context.Context, i int) error { return h.createOne(ctx, first+i) })
}

// createOne makes a task and repeats the create while the gateway asks to come back later.
func (h *herd) createOne(ctx context.Context, i int) error {
	prompt := fmt.Sprintf("%s%06d", h.name, i)
	body := fmt.Appendf(nil, `{"model":%q,"prompt":%q}`, h.model, prompt)
	began := time.Now()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+h.addr(i)+videosPath, bytes.NewReader(body))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", prompt)
		var made task
		refused, err := h.do(request, &made)
		switch {
		case err == nil && !refused && made.ID != "":
			h.mu.Lock()
			defer h.mu.Unlock()
			h.ids = append(h.ids, made.ID)
			h.creates = append(h.creates, time.Since(began))
			h.made++
			return nil
		case err == nil && refused:
			err = stage.Pause(ctx, retryAfter)
		case err == nil:
			err = stage.ErrBroken
		}
		if err != nil {
			return fmt.Errorf("create %q: %w", prompt, err)
		}
	}
}

// read makes clients read random tasks for readFor, each one task after the other without a pause.
func (h *herd) read(ctx context.Context) error {
	until := time.Now().Add(readFor)
	return stage.Crew(ctx, readers, readers, func(ctx context.Context, i int) error {
		for time.Now().Before(until) {
			id := h.ids[rand.IntN(len(h.ids))] //nolint:gosec // any will do
			if err := h.readOne(ctx, i, id); err != nil {
				return err
			}
		}
		return nil
	})
}

// readOne reads a task at the i-th API and records the time, unless the read is refused.
func (h *herd) readOne(ctx context.Context, i int, id string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+h.addr(i)+videosPath+"/"+id, nil)
	if err != nil {
		return err
	}
	var read task
	began := time.Now()
	refused, err := h.do(request, &read)
	took := time.Since(began)
	if err == nil && !refused && read.ID != id {
		err = fmt.Errorf("%w: got task %q", stage.ErrBroken, read.ID)
	}
	if err != nil {
		return fmt.Errorf("read task %s: %w", id, err)
	}
	if !refused {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.reads = append(h.reads, took)
	}
	return nil
}

// do sends a request as the herd's client. refused means that the gateway asked to come back later.
func (h *herd) do(request *http.Request, into any) (refused bool, err error) {
	request.Header.Set("Authorization", "Bearer "+stage.ClientKey)
	err = stage.DoJSON(h.client, request, into)
	var answer *stage.StatusError
	if errors.As(err, &answer) && (answer.Status == http.StatusServiceUnavailable || answer.Status == http.StatusTooManyRequests) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.refused++
		return true, nil
	}
	return false, err
}

// await returns when every task of the deployment has ended.
func (h *herd) await(ctx context.Context) error {
	for {
		answer, err := h.temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: over})
		if err != nil {
			return fmt.Errorf("count tasks: %w", err)
		}
		if answer.GetCount() >= h.made {
			return nil
		}
		if err := stage.Pause(ctx, countEvery); err != nil {
			return fmt.Errorf("%d of %d tasks are over: %w", answer.GetCount(), h.made, err)
		}
	}
}

// closed is when each of the workflows that match a query ended, and how many events its history has, by task id.
func (h *herd) closed(ctx context.Context, query string) (at map[string]time.Time, events map[string]int64, err error) {
	at, events = make(map[string]time.Time), make(map[string]int64)
	for next := []byte(nil); ; {
		page, err := h.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: query, PageSize: listPage, NextPageToken: next,
		})
		if err != nil {
			return nil, nil, fmt.Errorf("list workflows: %w", err)
		}
		for _, info := range page.GetExecutions() {
			id := info.GetExecution().GetWorkflowId()
			at[id], events[id] = info.GetCloseTime().AsTime(), info.GetHistoryLength()
		}
		if next = page.GetNextPageToken(); len(next) == 0 {
			return at, events, nil
		}
	}
}

// list reads all tasks page by page.
func (h *herd) list(ctx context.Context) ([]task, error) {
	var all []task
	for after := ""; ; {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+h.addr(0)+videosPath+"?limit=100&order=asc"+after, nil)
		if err != nil {
			return nil, err
		}
		var page struct {
			Data    []task `json:"data"`
			HasMore bool   `json:"has_more"`
		}
		if refused, err := h.do(request, &page); err != nil || refused {
			return nil, fmt.Errorf("list tasks (refused: %t): %w", refused, err)
		}
		all = append(all, page.Data...)
		if !page.HasMore || len(page.Data) == 0 {
			return all, nil
		}
		after = "&after=" + page.Data[len(page.Data)-1].ID
	}
}

// outcome is the result of a herd whose tasks are all over. Each list has a value for each task.
type outcome struct {
	events          []int64
	polls           []float64
	noticed         []float64 // seconds from a job's end to the poll that reported it
	completed       []float64 // seconds from a job's end to the end of its task
	most            int       // jobs at the upstream at the same time
	submittedPerSec float64
	completedPerSec float64 // from the end of the first job on
}

// outcome checks that no task was lost, paid twice or failed.
func (h *herd) outcome(ctx context.Context) (o outcome, err error) {
	jobs, err := h.jobs(ctx, h.name)
	if err != nil {
		return o, err
	}
	at, events, err := h.closed(ctx, over)
	if err != nil {
		return o, err
	}
	tasks, err := h.list(ctx)
	if err != nil {
		return o, err
	}
	n := len(jobs)
	if n != len(h.ids) {
		return o, fmt.Errorf("%w: the upstream has %d jobs of %d tasks", stage.ErrBroken, n, len(h.ids))
	}
	var (
		atUpstream                           []span
		firstEnd, lastCompleted, lastCreated int64
	)
	for _, t := range tasks {
		job, ok := jobs[t.Prompt]
		if !ok {
			continue // of another herd
		}
		delete(jobs, t.Prompt)
		end, closed := at[t.ID]
		if t.Status != "completed" || !closed {
			return o, fmt.Errorf("%w: %q is %s, its workflow is closed: %t", stage.ErrBroken, t.Prompt, t.Status, closed)
		}
		atUpstream = append(atUpstream, span{job.Created, job.end()})
		o.events = append(o.events, events[t.ID])
		o.polls = append(o.polls, float64(job.Polls))
		o.completed = append(o.completed, float64(end.UnixMilli()-job.end())/1000)
		if job.Seen > 0 { // else the job ended while the answer to a poll was written
			o.noticed = append(o.noticed, float64(job.Seen-job.end())/1000)
		}
		if firstEnd == 0 || job.end() < firstEnd {
			firstEnd = job.end()
		}
		lastCompleted, lastCreated = max(lastCompleted, end.UnixMilli()), max(lastCreated, job.Created)
	}
	if len(jobs) > 0 {
		return o, fmt.Errorf("%w: %d tasks are not in the list", stage.ErrBroken, len(jobs))
	}
	o.most = most(atUpstream)
	o.submittedPerSec = float64(n) / max(1, float64(lastCreated-h.began.UnixMilli())/1000)
	o.completedPerSec = float64(n) / max(0.001, float64(lastCompleted-firstEnd)/1000)
	return o, nil
}

// adder adds a figure to a report.
type adder func(figure, unit string, value float64, want *figures.Target)

// rows adds the figures that all herds have.
func (h *herd) rows(add adder, o outcome) error {
	add("created a second", "1/s", float64(len(h.creates))/h.created.Seconds(), nil)
	add("create p50", "ms", figures.Milliseconds(figures.Quantile(h.creates, 0.50)), nil)
	add("create p99", "ms", figures.Milliseconds(figures.Quantile(h.creates, 0.99)), nil)
	add("answers 429 or 503", "", float64(h.refused), figures.AtMost(0))
	add("submitted a second", "1/s", o.submittedPerSec, nil)
	add("most at the upstream", "", float64(o.most), nil)
	add("from a job's end to the poll that reports it p50", "s", figures.Quantile(o.noticed, 0.50), nil)
	add("from a job's end to the poll that reports it p99", "s", figures.Quantile(o.noticed, 0.99), figures.AtMost(pollMost.Seconds()))
	add("from a job's end to completed p50", "s", figures.Quantile(o.completed, 0.50), nil)
	add("from a job's end to completed p99", "s", figures.Quantile(o.completed, 0.99), nil)
	add("completed a second, from the first job's end on", "1/s", o.completedPerSec, nil)
	add("polls of a task p50", "", figures.Quantile(o.polls, 0.50), figures.AtMost(pollsGoal))
	add("history events of a task p50", "", float64(figures.Quantile(o.events, 0.50)), figures.AtMost(eventsGoal))
	api, worker, err := h.memories()
	add("API, most RSS of one", "MB", figures.Megabytes(api), nil)
	add("worker, most RSS of one", "MB", figures.Megabytes(worker), figures.AtMost(memoryGoal))
	return err
}

// The goals of the tasks.
const (
	// pollMost is the gateway's longest wait between two polls of a job, its default.
	pollMost = 30 * time.Second
	// pollsGoal is for a job of usual length.
	pollsGoal = 8
	// eventsGoal is for a task without a webhook.
	eventsGoal = 30
	// memoryGoal is of a worker, in MB.
	memoryGoal = 300
)

// span is the time between two moments in milliseconds.
type span struct{ from, to int64 }

// most is the largest number of spans that overlap.
func most(spans []span) int {
	type edge struct {
		at   int64
		step int
	}
	edges := make([]edge, 0, 2*len(spans))
	for _, s := range spans {
		edges = append(edges, edge{s.from, 1}, edge{s.to, -1})
	}
	slices.SortFunc(edges, func(a, b edge) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return a.step - b.step
	})
	now, top := 0, 0
	for _, e := range edges {
		now += e.step
		top = max(top, now)
	}
	return top
}
