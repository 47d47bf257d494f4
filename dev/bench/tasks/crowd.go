package tasks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"modelrelay/dev/bench/figures"
	"modelrelay/dev/bench/stage"
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
	*Bench
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
	within   time.Duration // that there is to create them; crowdCreates where nothing else is said
	created  time.Duration // until all were

	looked
}

// looked is what was seen of a herd from its beginning on.
type looked struct {
	took     time.Duration // until all were over, or were looked at for long enough
	cost     spent         // of took, without the readers
	standing spent         // after the readers
	stood    time.Duration // after the readers
}

// herd is one of so many tasks, which are not made yet. first is the number of its first. Its maker closes it.
func (b *Bench) herd(c *cluster, model string, places, tasks, first int) (*herd, error) {
	h := &herd{Bench: b, cluster: c, model: model, places: places, first: first, ids: make([]string, tasks), creates: make([]time.Duration, tasks), within: crowdCreates}
	var err error
	if h.temporal, err = dialTemporal(c.temporal.Addr); err != nil {
		return nil, err
	}
	h.client = &http.Client{Timeout: stage.AnswerTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: crowdReaders}}
	return h, nil
}

func (h *herd) close() {
	h.client.CloseIdleConnections()
	h.temporal.Close()
}

// crowd measures many tasks at once: some of them to their end, which tells what one costs, then all of them while they
// stand, some at the upstream and the others in line.
func crowd(ctx context.Context, b *Bench, report *figures.Report) error {
	some := min(b.sizes.Crowd, drainMost)
	if err := flock(ctx, b, report, some, max(1, some/4), drainModel); err != nil || some == b.sizes.Crowd {
		return err
	}
	if err := b.Clear(); err != nil {
		return err
	}
	return flock(ctx, b, report, b.sizes.Crowd, b.sizes.Places, standModel)
}

// flock creates tasks as fast as the gateway takes them, lets clients read them, and looks on until they are over.
func flock(ctx context.Context, b *Bench, report *figures.Report, tasks, places int, model string) error {
	c, err := b.cluster(ctx, setting{places: places})
	if err != nil {
		return err
	}
	h, err := b.herd(c, model, places, tasks, 0)
	if err != nil {
		return err
	}
	defer h.close()
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

// Standing starts a gateway with an admin key and creates tasks that nobody works on, at most so many: the time of creating is
// bounded. It returns the gateway's process and how many tasks they are. They end with the load.
func (b *Bench) Standing(ctx context.Context, admin string, n int) (front *stage.Child, made int, err error) {
	c, err := b.cluster(ctx, setting{admin: admin})
	if err != nil {
		return nil, 0, err
	}
	if err := c.worker.Stop(); err != nil {
		return nil, 0, err
	}
	h, err := b.herd(c, standModel, 0, n, 0)
	if err != nil {
		return nil, 0, err
	}
	defer h.close()
	err = h.create(ctx)
	return c.front, len(h.ids), err
}

// name begins the prompts of the herd's tasks. The upstream knows those of an earlier one.
func (h *herd) name() string { return h.model + " " }

// create makes the tasks, as many as there is time for.
func (h *herd) create(ctx context.Context) error {
	began := time.Now()
	err := stage.Crew(ctx, crowdCreators, len(h.ids), func(ctx context.Context, i int) error {
		if time.Since(began) > h.within {
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
	return stage.Crew(ctx, crowdReaders, crowdReaders, func(ctx context.Context, _ int) error {
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
		if err := stage.Pause(ctx, crowdLook); err != nil {
			return err
		}
	}
	return nil
}

// do is doJSON as the herd's client does it. An answer of 503 is none: it leaves into as it was.
func (h *herd) do(request *http.Request, into any) error {
	request.Header.Set("Authorization", "Bearer "+stage.ClientKey)
	err := stage.DoJSON(h.client, request, into)
	var answer *stage.StatusError
	if errors.As(err, &answer) && answer.Status == http.StatusServiceUnavailable {
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
