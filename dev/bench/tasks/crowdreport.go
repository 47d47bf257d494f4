package tasks

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"modelrelay/dev/bench/figures"
	"modelrelay/dev/bench/kernel"
	"modelrelay/dev/bench/stage"
)

// listed is a task as the list has it. Times are seconds since 1970.
type listed struct {
	task

	Prompt      string `json:"prompt"`
	CreatedAt   int64  `json:"created_at"`
	CompletedAt int64  `json:"completed_at"`
}

// tell puts what the crowd showed into the report.
func (h *herd) tell(ctx context.Context, report *figures.Report) error {
	tasks, err := h.list(ctx)
	if err != nil {
		return err
	}
	jobs, err := h.jobsOf(ctx, h.name())
	if err != nil {
		return err
	}
	var (
		over               []string
		late, noticed      []float64
		polls              []float64
		atUpstream, inside []span
	)
	for _, t := range tasks {
		end := t.CompletedAt
		if end == 0 {
			end = time.Now().Unix()
		}
		inside = append(inside, span{t.CreatedAt * 1000, end * 1000})
		j, ok := jobs[t.Prompt]
		if ok {
			atUpstream = append(atUpstream, span{j.Created, j.Created + j.Duration})
		}
		switch t.Status {
		case "completed":
			over = append(over, t.ID)
			late = append(late, max(0, float64(t.CompletedAt)-float64(j.Created+j.Duration)/1000))
			if j.Seen > 0 { // it ended between the count of a poll and its answer where not
				noticed = append(noticed, float64(j.Seen-j.Created-j.Duration)/1000)
			}
			polls = append(polls, float64(j.Polls))
		case "failed":
			return fmt.Errorf("%w: task %s failed", stage.ErrBroken, t.ID)
		}
	}
	if len(tasks) != len(h.ids) || len(over) == 0 || len(noticed) == 0 {
		return fmt.Errorf("%w: %d of %d tasks are listed, %d over", stage.ErrBroken, len(tasks), len(h.ids), len(over))
	}
	events, err := h.events(ctx, over)
	if err != nil {
		return err
	}
	_, peak, err := kernel.Resident(h.worker.PID())
	if err != nil {
		return err
	}
	_, frontPeak, err := kernel.Resident(h.front.PID())
	if err != nil {
		return err
	}
	load := fmt.Sprintf("%d tasks, %d at a time", len(h.ids), h.places)
	add := func(figure, unit string, value float64, want *figures.Target) {
		report.AddOne(load, figure, unit, value, want)
	}
	add("created a second", "1/s", float64(len(h.ids))/h.created.Seconds(), nil)
	add("create p50", "ms", figures.Milliseconds(figures.Quantile(h.creates, 0.50)), nil)
	add("create p99", "ms", figures.Milliseconds(figures.Quantile(h.creates, 0.99)), nil)
	add("most unfinished", "", float64(most(inside)), nil)
	add("most at the upstream", "", float64(most(atUpstream)), nil)
	add("completed", "", float64(len(over)), nil)
	add("from a job's end to the look that saw it p50", "s", figures.Quantile(noticed, 0.50), nil)
	add("from a job's end to the look that saw it p99", "s", figures.Quantile(noticed, 0.99), figures.AtMost(pollMost.Seconds()))
	add("from a job's end to completed p50", "s", figures.Quantile(late, 0.50), nil)
	add("from a job's end to completed p99", "s", figures.Quantile(late, 0.99), nil)
	add("polls of a task p50", "", figures.Quantile(polls, 0.50), figures.AtMost(8))
	add("polls of a task p99", "", figures.Quantile(polls, 0.99), nil)
	add("history events p50", "", float64(figures.Quantile(events, 0.50)), figures.AtMost(45))
	add("history events p99", "", float64(figures.Quantile(events, 0.99)), nil)
	add(fmt.Sprintf("status reads, %d readers", crowdReaders), "1/s", float64(len(h.reads))/crowdReads.Seconds(), figures.AtLeast(1000))
	add("status p50 meanwhile", "ms", figures.Milliseconds(figures.Quantile(h.reads, 0.50)), nil)
	add("status p99 meanwhile", "ms", figures.Milliseconds(figures.Quantile(h.reads, 0.99)), nil)
	add("creates and reads answered 503", "", float64(h.refused.Load()), figures.AtMost(0))
	add("worker, most RSS", "MB", figures.Megabytes(peak), figures.AtMost(300))
	add("front, most RSS", "MB", figures.Megabytes(frontPeak), nil)
	if len(over) < len(tasks) { // what a task costs cannot be told of some that are over and others that stand
		add("Temporal while they stand", "cores", h.standing.temporal.Seconds()/h.stood.Seconds(), nil)
		add("worker while they stand", "cores", h.standing.worker.Seconds()/h.stood.Seconds(), nil)
		return nil
	}
	n := float64(len(over))
	add("tasks over a second", "1/s", n/h.took.Seconds(), nil)
	add("Temporal, CPU of a task", "ms", figures.Milliseconds(h.cost.temporal)/n, nil)
	add("worker, CPU of a task", "ms", figures.Milliseconds(h.cost.worker)/n, nil)
	add("front, CPU of a task", "ms", figures.Milliseconds(h.cost.front)/n, nil)
	load = fmt.Sprintf("a million tasks a day, %.1f/s", perSecond)
	add("Temporal: times its CPU of a task", "cores", perSecond*h.cost.temporal.Seconds()/n, nil)
	add("workers: times theirs", "cores", perSecond*h.cost.worker.Seconds()/n, nil)
	add("fronts: times theirs", "cores", perSecond*h.cost.front.Seconds()/n, nil)
	add("history events: times p50", "1/s", perSecond*float64(figures.Quantile(events, 0.50)), nil)
	return nil
}

// list reads all tasks by the cursor.
func (h *herd) list(ctx context.Context) ([]listed, error) {
	var all []listed
	for after := ""; ; {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, h.base+videosPath+"?limit=100&order=asc"+after, nil)
		if err != nil {
			return nil, err
		}
		var page struct {
			Data    []listed `json:"data"`
			HasMore bool     `json:"has_more"`
		}
		request.Header.Set("Authorization", "Bearer "+stage.ClientKey)
		if err := stage.DoJSON(h.client, request, &page); err != nil {
			return nil, fmt.Errorf("list tasks: %w", err)
		}
		all = append(all, page.Data...)
		if !page.HasMore || len(page.Data) == 0 {
			return all, nil
		}
		after = "&after=" + page.Data[len(page.Data)-1].ID
	}
}

// span is a time from and to, in milliseconds.
type span struct{ from, to int64 }

// most is how many of the spans there are at once at most.
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
