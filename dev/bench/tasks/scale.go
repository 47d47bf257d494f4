package tasks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"modelrelay/dev/bench/figures"
	"modelrelay/dev/bench/stage"
)

// productionParts and embeddedParts are the kinds of services that a fleet may have, in the words of the parts' own flag.
const (
	productionParts = "production"
	embeddedParts   = "embedded"
)

// ScaleOptions says how many tasks are measured on what.
type ScaleOptions struct {
	// Parts is the kind of services: embedded or production.
	Parts string
	// Sizes are how many tasks there are at once, one size after the other on the same deployment.
	Sizes []int
	// APIs and Workers are how many processes of the gateway there are.
	APIs, Workers int
}

const (
	maxProcesses = 16
	// scaleCreators are the clients of each API that create at once.
	scaleCreators = 8
	// scaleFirstRate is how many tasks a second a machine is taken to submit before it was measured.
	scaleFirstRate = 10
	// scaleSpare is how long the first job goes on after the last came, so that for a moment all tasks are at the upstream.
	scaleSpare = 20 * time.Second
	// scaleSlack lets tasks come slower than at the size before.
	scaleSlack = 1.5
	// scalePage is how many tasks are listed at once.
	scalePage = 1000
	// scaleLessons are the tasks made first, which teach the gateway how long jobs take.
	scaleLessons = 4
)

func (o ScaleOptions) check() error {
	switch {
	case o.Parts != productionParts && o.Parts != embeddedParts:
		return fmt.Errorf("parts: %q is neither %s nor %s", o.Parts, embeddedParts, productionParts)
	case o.APIs < 1 || o.APIs > maxProcesses:
		return fmt.Errorf("apis: %d is not between 1 and %d", o.APIs, maxProcesses)
	case o.Workers < 1 || o.Workers > maxProcesses:
		return fmt.Errorf("workers: %d is not between 1 and %d", o.Workers, maxProcesses)
	case len(o.Sizes) == 0:
		return errors.New("sizes: there is none")
	}
	for _, size := range o.Sizes {
		if size < 1 || size > maxCrowd {
			return fmt.Errorf("sizes: %d is not between 1 and %d", size, maxCrowd)
		}
	}
	return nil
}

// Scale measures growing numbers of tasks on a deployment of several gateways and workers: all of a size are at the upstream at
// once, then all end, and every process's CPU and what is kept of a task is counted. A task that is lost, paid twice or failed is
// an error.
func Scale(ctx context.Context, on stage.Options, o ScaleOptions) (report *figures.Report, err error) {
	report = figures.NewReport()
	if err := o.check(); err != nil {
		return report, err
	}
	b := New(stage.New(on), Sizes{})
	defer func() { err = errors.Join(err, b.Close()) }()
	if err := b.BuildGateway(ctx); err != nil {
		return report, err
	}
	if err := b.StartUpstream(ctx); err != nil {
		return report, err
	}
	on.Log.Info("starting", "parts", o.Parts, "apis", o.APIs, "workers", o.Workers)
	f, err := b.fleet(ctx, o)
	if err != nil {
		return report, err
	}
	engine, err := dialTemporal(f.temporal.Addr)
	if err != nil {
		return report, err
	}
	defer engine.Close()
	rate := float64(scaleFirstRate)
	for _, size := range o.Sizes {
		on.Log.Info("measuring", "load", "scale", "tasks", size)
		r := &scaleRun{Bench: b, fleet: f, engine: engine, size: size, job: scaleJob(size, rate)}
		if err := r.run(ctx, report); err != nil {
			return report, fmt.Errorf("%d tasks: %w", size, err)
		}
		rate = r.coming
	}
	return report, nil
}

// scaleJob is how long the jobs of a size take, where so many tasks a second come to the upstream.
func scaleJob(size int, rate float64) time.Duration {
	coming := time.Duration(scaleSlack * float64(size) / rate * float64(time.Second))
	return (coming + scaleSpare).Round(time.Second)
}

// scaleRun is one size under way.
type scaleRun struct {
	*Bench
	*fleet

	engine  client.Client
	size    int
	job     time.Duration
	creates []time.Duration
	created time.Duration // until the last was
	took    time.Duration // until all were over
	began   time.Time     // of the first create
	coming  float64       // tasks that came to the upstream a second
	refused int           // creates answered 503, which were sent again
	cpu     map[string]time.Duration
	kept    map[string]float64 // what the stores have more of after the run
	mu      sync.Mutex
}

func (r *scaleRun) rate() float64 { return float64(r.size) / r.created.Seconds() }

// name begins the prompts of the run's tasks.
func (r *scaleRun) name() string { return fmt.Sprintf("scale %d ", r.size) }

func (r *scaleRun) run(ctx context.Context, report *figures.Report) error {
	model := fmt.Sprintf("clip-%ds", int(r.job.Seconds()))
	for i := range scaleLessons {
		if err := r.create(ctx, i, "lesson "+r.name(), model); err != nil {
			return err
		}
	}
	if err := r.over(ctx); err != nil {
		return err
	}
	r.creates, r.refused = nil, 0
	kept, err := r.stored(ctx)
	if err != nil {
		return err
	}
	before, err := r.costs(r.fleet)
	if err != nil {
		return err
	}
	r.began = time.Now()
	if err := stage.Crew(ctx, scaleCreators*len(r.apis), r.size, func(ctx context.Context, i int) error {
		return r.create(ctx, i, r.name(), model)
	}); err != nil {
		return err
	}
	r.created = time.Since(r.began)
	if err := r.over(ctx); err != nil {
		return err
	}
	r.took = time.Since(r.began)
	after, err := r.costs(r.fleet)
	if err != nil {
		return err
	}
	r.cpu = less(after, before)
	if r.kept, err = r.stored(ctx); err != nil {
		return err
	}
	for name, had := range kept {
		r.kept[name] -= had
	}
	return r.tell(ctx, report)
}

// create makes a task at one of the APIs, and asks again while that is told to come later.
func (r *scaleRun) create(ctx context.Context, i int, name, model string) error {
	prompt := fmt.Sprintf("%s%06d", name, i)
	body := fmt.Appendf(nil, `{"model":%q,"prompt":%q}`, model, prompt)
	began := time.Now()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+r.apis[i%len(r.apis)].Addr+videosPath, bytes.NewReader(body))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", "Bearer "+stage.ClientKey)
		request.Header.Set("Idempotency-Key", prompt)
		var made task
		err = r.DoJSON(request, &made)
		var answer *stage.StatusError
		switch {
		case err == nil && made.ID != "":
			r.mu.Lock()
			defer r.mu.Unlock()
			r.creates = append(r.creates, time.Since(began))
			return nil
		case errors.As(err, &answer) && (answer.Status == http.StatusServiceUnavailable || answer.Status == http.StatusTooManyRequests):
			r.mu.Lock()
			r.refused++
			r.mu.Unlock()
			if err := stage.Pause(ctx, time.Second); err != nil {
				return err
			}
		default:
			return fmt.Errorf("create %q: %w", prompt, errors.Join(err, stage.ErrBroken))
		}
	}
}

// over returns when no task is under way any more.
func (r *scaleRun) over(ctx context.Context) error {
	for {
		answer, err := r.engine.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: "WorkflowType = 'Video' AND ExecutionStatus = 'Running'"})
		if err != nil {
			return fmt.Errorf("count tasks: %w", err)
		}
		if answer.GetCount() == 0 {
			return nil
		}
		if err := stage.Pause(ctx, crowdLook); err != nil {
			return fmt.Errorf("%d tasks are under way: %w", answer.GetCount(), err)
		}
	}
}

// ended is when each task's workflow ended, and how many events its history has, by id.
func (r *scaleRun) ended(ctx context.Context) (at map[string]time.Time, events []int64, err error) {
	at = make(map[string]time.Time)
	for next := []byte(nil); ; {
		page, err := r.engine.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: "WorkflowType = 'Video' AND ExecutionStatus != 'Running'", PageSize: scalePage, NextPageToken: next,
		})
		if err != nil {
			return nil, nil, fmt.Errorf("list tasks: %w", err)
		}
		for _, info := range page.GetExecutions() {
			at[info.GetExecution().GetWorkflowId()] = info.GetCloseTime().AsTime()
			events = append(events, info.GetHistoryLength())
		}
		if next = page.GetNextPageToken(); len(next) == 0 {
			slices.Sort(events)
			return at, events, nil
		}
	}
}
