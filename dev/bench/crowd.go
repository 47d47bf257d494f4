package bench

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
	"sync/atomic"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
)

const (
	// drainMost is how many tasks of a crowd are measured to their end first, a quarter of them running at a time.
	drainMost = 500
	// drainModel is their job of a few seconds; the whole crowd's takes minutes, so that it stands still to be looked at.
	drainModel = "clip-3s"
	standModel = "clip-240s"
	// crowdCreators are the clients that create at once, crowdReaders those that read.
	crowdCreators = 8
	crowdReaders  = 100
	// crowdCreates bounds the time of creating; of the tasks that do not fit the report has none.
	crowdCreates = 4 * time.Minute
	// crowdReads is how long they read.
	crowdReads = 10 * time.Second
	// crowdLimit bounds the time until the last task is over, or of looking at those that stand.
	crowdLimit = 8 * time.Minute
	crowdLook  = 2 * time.Second
	// pollMost is the gateway's longest wait between two polls of a job, its default.
	pollMost = 30 * time.Second
	// historySample is of how many tasks the events are counted.
	historySample = 100
	// perSecond is a million tasks a day.
	perSecond = 1e6 / 86400
)

// herd is a crowd under way.
type herd struct {
	*stage
	*cluster
	client   *http.Client
	temporal client.Client
	model    string
	places   int
	first    int // number of the herd's first task
	ids      []string
	creates  []time.Duration
	reads    []time.Duration
	refused  atomic.Int64  // creates and reads that were answered 503; both are asked again
	created  time.Duration // until all were
	took     time.Duration // until all were over, or were looked at for long enough
	cost     spent         // of took, without the readers
	standing spent         // after the readers
	stood    time.Duration // after the readers
}

// crowd measures many tasks at once: some of them to their end, which tells what one costs, then all of them while they
// stand, some at the upstream and the others in line.
func crowd(ctx context.Context, s *stage, report *Report) error {
	some := min(s.options.Crowd, drainMost)
	if err := flock(ctx, s, report, some, max(1, some/4), drainModel); err != nil || some == s.options.Crowd {
		return err
	}
	if err := s.clear(); err != nil {
		return err
	}
	return flock(ctx, s, report, s.options.Crowd, s.options.Places, standModel)
}

// flock creates tasks as fast as the gateway takes them, lets clients read them, and looks on until they are over.
func flock(ctx context.Context, s *stage, report *Report, tasks, places int, model string) error {
	c, err := s.cluster(ctx, setting{places: places})
	if err != nil {
		return err
	}
	h := &herd{stage: s, cluster: c, model: model, places: places, ids: make([]string, tasks), creates: make([]time.Duration, tasks)}
	h.client = &http.Client{Timeout: answerTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: crowdReaders}}
	defer h.client.CloseIdleConnections()
	if h.temporal, err = client.Dial(client.Options{HostPort: c.temporal.addr, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))}); err != nil {
		return fmt.Errorf("reach Temporal: %w", err)
	}
	defer h.temporal.Close()
	var (
		began = time.Now()
		marks []spent
	)
	for _, step := range []func(context.Context) error{
		func(context.Context) error { return nil }, h.create, h.read, func(ctx context.Context) error { return h.await(ctx, began) },
	} {
		if err := step(ctx); err != nil {
			return err
		}
		mark, err := c.spent()
		if err != nil {
			return err
		}
		marks = append(marks, mark)
	}
	h.took = time.Since(began)
	// What the readers cost is none of the tasks'. What the tasks cost meanwhile goes with it.
	h.standing = marks[3].less(marks[2])
	h.cost = h.standing.plus(marks[1].less(marks[0]))
	return h.tell(ctx, report)
}

// name begins the prompts of the herd's tasks. The upstream knows those of an earlier one.
func (h *herd) name() string { return h.model + " " }

// create makes the tasks, as many as there is time for.
func (h *herd) create(ctx context.Context) error {
	began := time.Now()
	err := crew(ctx, crowdCreators, len(h.ids), func(ctx context.Context, i int) error {
		if time.Since(began) > crowdCreates {
			return nil
		}
		prompt := fmt.Sprintf("%s%06d", h.name(), h.first+i)
		body := fmt.Appendf(nil, `{"model":%q,"prompt":%q}`, h.model, prompt)
		var made task
		for since := time.Now(); made.ID == ""; h.creates[i] = time.Since(since) {
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.base+videosPath, bytes.NewReader(body))
			if err != nil {
				return err
			}
			request.Header.Set("Content-Type", "application/json")
			request.Header.Set("Idempotency-Key", prompt)
			if err := h.do(request, &made); err != nil {
				return fmt.Errorf("create task %d: %w", i, err)
			}
		}
		h.ids[i] = made.ID
		return nil
	})
	h.created = time.Since(began)
	h.creates = slices.DeleteFunc(h.creates, func(took time.Duration) bool { return took == 0 })
	h.ids = slices.DeleteFunc(h.ids, func(id string) bool { return id == "" })
	return err
}

// read lets clients read any of the tasks, each one after the other, as fast as they are answered.
func (h *herd) read(ctx context.Context) error {
	until := time.Now().Add(crowdReads)
	var mu sync.Mutex
	return crew(ctx, crowdReaders, crowdReaders, func(ctx context.Context, _ int) error {
		var took []time.Duration
		for time.Now().Before(until) {
			id := h.ids[rand.IntN(len(h.ids))] //nolint:gosec // any will do
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, h.base+videosPath+"/"+id, nil)
			if err != nil {
				return err
			}
			var read task
			began := time.Now()
			switch err := h.do(request, &read); {
			case err != nil:
				return fmt.Errorf("read task %s: %w", id, err)
			case read.ID == id:
				took = append(took, time.Since(began))
			}
		}
		mu.Lock()
		defer mu.Unlock()
		h.reads = append(h.reads, took...)
		return nil
	})
}

// await returns when all tasks are over, or the time is.
func (h *herd) await(ctx context.Context, began time.Time) error {
	since := time.Now()
	defer func() { h.stood = time.Since(since) }()
	for time.Since(began) < crowdLimit {
		answer, err := h.temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: "WorkflowType = 'Video' AND ExecutionStatus = 'Running'"})
		if err != nil {
			return fmt.Errorf("count tasks: %w", err)
		}
		if answer.GetCount() == 0 {
			return nil
		}
		if err := pause(ctx, crowdLook); err != nil {
			return err
		}
	}
	return nil
}

// do is doJSON as the herd's client does it. An answer of 503 is none: it leaves into as it was.
func (h *herd) do(request *http.Request, into any) error {
	request.Header.Set("Authorization", "Bearer "+clientKey)
	err := doJSON(h.client, request, into)
	var answer *statusError
	if errors.As(err, &answer) && answer.status == http.StatusServiceUnavailable {
		h.refused.Add(1)
		return nil
	}
	return err
}

// events counts the events of some tasks' histories.
func (h *herd) events(ctx context.Context, ids []string) ([]int64, error) {
	step := max(1, len(ids)/historySample)
	var counts []int64
	for i := 0; i < len(ids); i += step {
		answer, err := h.temporal.DescribeWorkflowExecution(ctx, ids[i], "")
		if err != nil {
			return nil, fmt.Errorf("describe %s: %w", ids[i], err)
		}
		counts = append(counts, answer.GetWorkflowExecutionInfo().GetHistoryLength())
	}
	slices.Sort(counts)
	return counts, nil
}

// crew does n pieces of work with so many workers. The first error ends it.
func crew(ctx context.Context, workers, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for i := range next {
				if err := do(ctx, i); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	for i := range n {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	group.Wait()
	return context.Cause(ctx)
}
