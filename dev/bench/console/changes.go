package console

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"modelrelay/dev/bench/figures"
	"modelrelay/dev/bench/stage"
)

const (
	changedWithin = 1500 // ms from a task's change to the screen
	playsWithin   = 2000 // ms from the end of a job's archive to playing
	// changeModel is a job that is driven.
	changeModel = "sora-2-manual"
	// pagesRepeat is longer than any of the pages waits before it asks again, and than answers are shared.
	pagesRepeat = 2 * time.Second
	// manyTabs are the tabs that show Tasks at once, queriesIn the time in which they may cause one visibility query.
	manyTabs  = 20
	queriesIn = 2 * time.Second
	// manyViews is how often each of them asks.
	manyViews = 10
)

// seen are times until the screen: of progress from the upstream's own, of a new task from its create's answer, and of a task's end
// from that of its archive at Temporal.
type seen struct{ progress, page, list, made, plays []time.Duration }

// changes drives jobs of an upstream on, one at a time, and measures until a list of Tasks and the task's page show it.
func (b *Bench) changes(ctx context.Context, report *figures.Report) error {
	watched, err := b.videos.Watched(ctx, adminKey)
	if err != nil {
		return err
	}
	front := watched.Front
	browser, err := startChromium(ctx, front.Addr)
	if err != nil {
		return err
	}
	defer browser.end()
	list, err := browser.open(ctx)
	if err != nil {
		return err
	}
	task, err := browser.open(ctx)
	if err != nil {
		return err
	}
	var all seen
	for i := range b.sizes.Changes + 1 {
		one := &all
		if i == 0 {
			one = new(seen) // it opens connections and starts caches
		}
		if err := b.change(ctx, front, list, task, one); err != nil {
			return fmt.Errorf("change %d: %w", i, err)
		}
	}
	list.close()
	task.close()
	load := fmt.Sprintf("console: %d tasks driven on, one at a time", b.sizes.Changes)
	for _, figure := range []struct {
		name  string
		times []time.Duration
		want  *figures.Target
	}{
		{"change of a task to its page", all.page, figures.AtMost(changedWithin)},
		{"change of a task to the list of Tasks", all.list, figures.AtMost(changedWithin)},
		{"new task to the list of Tasks", all.made, nil},
		{"progress at the upstream to the task's page, with poll and heartbeat", all.progress, nil},
		{"end of the archive to playing", all.plays, figures.AtMost(playsWithin)},
	} {
		report.AddOne(load, figure.name+", p50", "ms", figures.Milliseconds(figures.Quantile(figure.times, 0.50)), nil)
		report.AddOne(load, figure.name+", p95", "ms", figures.Milliseconds(figures.Quantile(figure.times, 0.95)), figure.want)
	}
	return b.tabs(ctx, report, watched.Front, watched.Metrics)
}

// change makes a task, lets its job move and end, and notes when the two tabs showed it.
func (b *Bench) change(ctx context.Context, front *stage.Child, list, task *tab, into *seen) error {
	if err := list.open(ctx, "/console/tasks"); err != nil {
		return err
	}
	if err := anyMoment(ctx); err != nil {
		return err
	}
	id, job, err := b.videos.MakeDriven(ctx, "http://"+front.Addr, changeModel)
	if err != nil {
		return err
	}
	made := time.Now()
	row := `[...document.querySelectorAll('#tasks tbody tr')].find((row) => row.textContent.includes('` + id + `'))`
	var group errgroup.Group
	group.Go(func() error {
		at, err := list.when(ctx, row)
		into.made = append(into.made, at.Sub(made))
		return err
	})
	group.Go(func() error { return task.open(ctx, "/console/tasks/"+id) })
	if err := group.Wait(); err != nil {
		return err
	}
	jobID, err := job(ctx)
	if err != nil {
		return err
	}
	if err := anyMoment(ctx); err != nil {
		return err
	}
	moved := time.Now()
	if err := b.drive(ctx, jobID, "in_progress", 40); err != nil {
		return err
	}
	at, err := task.when(ctx, `document.querySelector('[data-running] progress').value >= 40`)
	if err != nil {
		return err
	}
	into.progress = append(into.progress, at.Sub(moved))
	if err := anyMoment(ctx); err != nil {
		return err
	}
	if err := b.drive(ctx, jobID, "completed", 100); err != nil {
		return err
	}
	var shown, ended, plays time.Time
	group = errgroup.Group{}
	group.Go(func() (err error) {
		ended, err = list.when(ctx, row+`.querySelector('.mark.done')`)
		return err
	})
	group.Go(func() (err error) {
		if shown, err = task.when(ctx, `!document.querySelector('[data-running]')`); err != nil {
			return err
		}
		plays, err = task.plays(ctx)
		return err
	})
	if err := group.Wait(); err != nil {
		return err
	}
	archived, err := b.archived(ctx, front, id)
	if err != nil {
		return err
	}
	into.page, into.list, into.plays = append(into.page, shown.Sub(archived)), append(into.list, ended.Sub(archived)), append(into.plays, plays.Sub(archived))
	return nil
}

// plays plays the task's video, as who presses its button at once, and returns when it does.
func (t *tab) plays(ctx context.Context) (time.Time, error) {
	if _, err := t.when(ctx, `document.querySelector('video')`); err != nil {
		return time.Time{}, err
	}
	at, err := evaluate[float64](ctx, t, `new Promise((done) => {
		const video = document.querySelector('video');
		video.muted = true;
		const look = () => { if (video.currentTime > 0) done(Date.now()); else requestAnimationFrame(look); };
		video.play().then(look);
	})`)
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: the video does not play: %w", stage.ErrBroken, err)
	}
	return time.UnixMilli(int64(at)), nil
}

// archived is when the copy of a task's video was done, by Temporal's clock, which is this machine's.
func (b *Bench) archived(ctx context.Context, front *stage.Child, id string) (time.Time, error) {
	var story struct {
		Steps []struct {
			Name  string    `json:"name"`
			Ended time.Time `json:"ended"`
		} `json:"steps"`
	}
	if err := b.GetJSON(ctx, "http://"+front.Addr+"/admin/tasks/"+id, adminKey, &story); err != nil {
		return time.Time{}, fmt.Errorf("read task %s: %w", id, err)
	}
	for _, step := range story.Steps {
		if step.Name == "Archive" && !step.Ended.IsZero() {
			return step.Ended, nil
		}
	}
	return time.Time{}, fmt.Errorf("%w: task %s was not archived", stage.ErrBroken, id)
}

func (b *Bench) drive(ctx context.Context, job, state string, progress int) error {
	return b.Order(ctx, b.Upstream, "/jobs/"+job, fmt.Sprintf(`{"state":%q,"progress":%d}`, state, progress))
}

// anyMoment lets less than a time pass, so that what comes next meets what repeats itself at any point of it.
func anyMoment(ctx context.Context) error {
	return stage.Pause(ctx, rand.N(pagesRepeat)) //nolint:gosec // any will do
}

// tabs lets many tabs of one browser show Tasks, and counts the visibility queries of the gateway's process.
func (b *Bench) tabs(ctx context.Context, report *figures.Report, front *stage.Child, metrics string) error {
	browser, err := signIn(ctx, front.Addr)
	if err != nil {
		return err
	}
	before, err := b.queries(ctx, metrics)
	if err != nil {
		return err
	}
	began := time.Now()
	err = stage.Crew(ctx, manyTabs, manyTabs, func(ctx context.Context, _ int) error {
		if err := anyMoment(ctx); err != nil {
			return err
		}
		for range manyViews {
			every, err := browser.refresh(ctx, "/console/tasks")
			if err == nil {
				err = stage.Pause(ctx, every)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	took := time.Since(began)
	after, err := b.queries(ctx, metrics)
	if err != nil {
		return err
	}
	report.AddOne(fmt.Sprintf("console: %d tabs on Tasks", manyTabs), "visibility queries in 2 s and process", "", (after-before)*float64(queriesIn)/float64(took), figures.AtMost(1))
	return nil
}

// queries is how many visibility queries of lists a process has made, by its own count.
func (b *Bench) queries(ctx context.Context, metrics string) (n float64, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+metrics+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	response, err := b.Client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		line := lines.Text()
		if !strings.HasPrefix(line, "temporal_request_total{") || !strings.Contains(line, `operation="ListWorkflowExecutions"`) {
			continue
		}
		one, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err != nil {
			return 0, fmt.Errorf("read a metric: %w", err)
		}
		n += one
	}
	return n, nil
}
