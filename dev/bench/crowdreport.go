package bench

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// upstreamJob is what the upstream says of a job. Times are milliseconds since 1970.
type upstreamJob struct {
	ID       string `json:"id"`
	Prompt   string `json:"prompt"`
	State    string `json:"state"`
	SHA256   string `json:"sha256"`
	Created  int64  `json:"created"`
	Duration int64  `json:"duration"`
	Polls    int    `json:"polls"`
	Seen     int64  `json:"seen"` // when a poll first found it over
}

// listed is a task as the list has it. Times are seconds since 1970.
type listed struct {
	task

	Prompt      string `json:"prompt"`
	CreatedAt   int64  `json:"created_at"`
	CompletedAt int64  `json:"completed_at"`
}

// tell puts what the crowd showed into the report.
func (h *herd) tell(ctx context.Context, report *Report) error {
	tasks, err := h.list(ctx)
	if err != nil {
		return err
	}
	var answer struct {
		Jobs []upstreamJob `json:"jobs"`
	}
	if err := h.getJSON(ctx, "http://"+h.upstream.addr+"/_control/jobs?contains="+url.QueryEscape(h.name()), "", &answer); err != nil {
		return err
	}
	jobs := make(map[string]upstreamJob, len(answer.Jobs))
	for _, j := range answer.Jobs {
		if _, twice := jobs[j.Prompt]; twice {
			return fmt.Errorf("%w: %s was paid twice", ErrBroken, j.Prompt)
		}
		jobs[j.Prompt] = j
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
			return fmt.Errorf("%w: task %s failed", ErrBroken, t.ID)
		}
	}
	if len(tasks) != len(h.ids) || len(over) == 0 || len(noticed) == 0 {
		return fmt.Errorf("%w: %d of %d tasks are listed, %d over", ErrBroken, len(tasks), len(h.ids), len(over))
	}
	events, err := h.events(ctx, over)
	if err != nil {
		return err
	}
	_, peak, err := resident(h.worker.process.Pid())
	if err != nil {
		return err
	}
	_, frontPeak, err := resident(h.front.process.Pid())
	if err != nil {
		return err
	}
	load := fmt.Sprintf("%d tasks, %d at a time", len(h.ids), h.places)
	add := func(figure, unit string, value float64, want *Target) {
		report.add(load, figure, unit, series{gateway: []float64{value}}, want)
	}
	add("created a second", "1/s", float64(len(h.ids))/h.created.Seconds(), nil)
	add("create p50", "ms", milliseconds(quantile(h.creates, 0.50)), nil)
	add("create p99", "ms", milliseconds(quantile(h.creates, 0.99)), nil)
	add("most unfinished", "", float64(most(inside)), nil)
	add("most at the upstream", "", float64(most(atUpstream)), nil)
	add("completed", "", float64(len(over)), nil)
	add("from a job's end to the look that saw it p50", "s", quantile(noticed, 0.50), nil)
	add("from a job's end to the look that saw it p99", "s", quantile(noticed, 0.99), atMost(pollMost.Seconds()))
	add("from a job's end to completed p50", "s", quantile(late, 0.50), nil)
	add("from a job's end to completed p99", "s", quantile(late, 0.99), nil)
	add("polls of a task p50", "", quantile(polls, 0.50), atMost(8))
	add("polls of a task p99", "", quantile(polls, 0.99), nil)
	add("history events p50", "", float64(quantile(events, 0.50)), atMost(45))
	add("history events p99", "", float64(quantile(events, 0.99)), nil)
	add(fmt.Sprintf("status reads, %d readers", crowdReaders), "1/s", float64(len(h.reads))/crowdReads.Seconds(), atLeast(1000))
	add("status p50 meanwhile", "ms", milliseconds(quantile(h.reads, 0.50)), nil)
	add("status p99 meanwhile", "ms", milliseconds(quantile(h.reads, 0.99)), nil)
	add("creates and reads answered 503", "", float64(h.refused.Load()), atMost(0))
	add("worker, most RSS", "MB", megabytes(peak), atMost(300))
	add("front, most RSS", "MB", megabytes(frontPeak), nil)
	if len(over) < len(tasks) { // what a task costs cannot be told of some that are over and others that stand
		add("Temporal while they stand", "cores", h.standing.temporal.Seconds()/h.stood.Seconds(), nil)
		add("worker while they stand", "cores", h.standing.worker.Seconds()/h.stood.Seconds(), nil)
		return nil
	}
	n := float64(len(over))
	add("tasks over a second", "1/s", n/h.took.Seconds(), nil)
	add("Temporal, CPU of a task", "ms", milliseconds(h.cost.temporal)/n, nil)
	add("worker, CPU of a task", "ms", milliseconds(h.cost.worker)/n, nil)
	add("front, CPU of a task", "ms", milliseconds(h.cost.front)/n, nil)
	load = fmt.Sprintf("a million tasks a day, %.1f/s", perSecond)
	add("Temporal: times its CPU of a task", "cores", perSecond*h.cost.temporal.Seconds()/n, nil)
	add("workers: times theirs", "cores", perSecond*h.cost.worker.Seconds()/n, nil)
	add("fronts: times theirs", "cores", perSecond*h.cost.front.Seconds()/n, nil)
	add("history events: times p50", "1/s", perSecond*float64(quantile(events, 0.50)), nil)
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
		request.Header.Set("Authorization", "Bearer "+clientKey)
		if err := doJSON(h.client, request, &page); err != nil {
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
