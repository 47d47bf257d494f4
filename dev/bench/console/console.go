// Package console measures what the gateway's console takes to show a page, and how large it is, where there is much to show:
// tokens, tasks that stand, and a full log of calls. It reads the pages as a browser does; what scripts and the screen take it
// measures in Chromium.
package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/dev/bench/calls"
	"modelrelay/dev/bench/figures"
	"modelrelay/dev/bench/stage"
	"modelrelay/dev/bench/tasks"
)

// Sizes say how much there is to show, and how often it is looked at.
type Sizes struct {
	Views int // of each page; 0: none
	Cold  int // openings of each page in Chromium, with nothing loaded before; 0: none
	// Changes are the tasks that are driven on while Chromium shows them; 0: none.
	Changes int

	Calls  int // in the log
	Tokens int // made at run time
	Tasks  int // that stand
}

const (
	maxViews  = 1_000
	maxCalls  = 1_000_000
	maxTokens = 10_000
	maxTasks  = 20_000

	adminKey = "sk-bench-admin-0123456789abcdef"
	// tokenMakers are the clients that make tokens at once.
	tokenMakers = 8
	// logKey is the log of calls in Redis, and logDatabase the database of it.
	logKey      = "mr:calls"
	logDatabase = 1
	// logKeeps is how many calls the log keeps, the gateway's default.
	logKeeps = 100_000
	// logMemory is what they may take, in MB.
	logMemory = 31
	// logLag bounds the time until the last call stands in the log; its writers need a second.
	logLag = 30 * time.Second
	// viewsApart lets answers that views share grow too old to be shared.
	viewsApart = 2100 * time.Millisecond
)

// Check says which number is out of its bounds.
func (s Sizes) Check() error {
	err := stage.Check(
		stage.Bound{Name: "console views", Is: s.Views, UpTo: maxViews},
		stage.Bound{Name: "console cold", Is: s.Cold, UpTo: maxViews},
		stage.Bound{Name: "console changes", Is: s.Changes, UpTo: maxViews},
	)
	if err != nil || s.Views == 0 && s.Cold == 0 {
		return err
	}
	return stage.Check(
		stage.Bound{Name: "console calls", Is: s.Calls, From: 1, UpTo: maxCalls},
		stage.Bound{Name: "console tokens", Is: s.Tokens, From: 1, UpTo: maxTokens},
		stage.Bound{Name: "console tasks", Is: s.Tasks, From: 1, UpTo: maxTasks},
	)
}

// Bench measures the console.
type Bench struct {
	*stage.Stage

	relayed *calls.Bench
	videos  *tasks.Bench
	sizes   Sizes
}

// New measures on a stage with what calls and tasks are made by.
func New(s *stage.Stage, relayed *calls.Bench, videos *tasks.Bench, sizes Sizes) *Bench {
	return &Bench{Stage: s, relayed: relayed, videos: videos, sizes: sizes}
}

// Loads are what is measured.
func (b *Bench) Loads() []stage.Load {
	return []stage.Load{
		{Name: "console", Size: max(b.sizes.Views, b.sizes.Cold), Run: b.run},
		{Name: "console changes", Size: b.sizes.Changes, Run: b.changes},
	}
}

func (b *Bench) run(ctx context.Context, report *figures.Report) error {
	front, standing, err := b.videos.Standing(ctx, adminKey, b.sizes.Tasks)
	if err != nil {
		return err
	}
	if err := b.relayed.Fill(ctx, front, b.sizes.Calls); err != nil {
		return err
	}
	if err := b.makeTokens(ctx, front); err != nil {
		return err
	}
	logged, bytesOf, err := b.logged(ctx)
	if err != nil {
		return err
	}
	if bytesOf > 0 {
		const load = "log of calls in Redis"
		report.AddOne(load, "calls kept", "", float64(logged), nil)
		report.AddOne(load, "memory of 100,000 calls", "MB", figures.Megabytes(bytesOf)*logKeeps/float64(logged), figures.AtMost(logMemory))
	}
	load := fmt.Sprintf("console: %d tasks, %d tokens, %d calls", standing, b.sizes.Tokens, logged)
	if b.sizes.Views > 0 {
		if err := b.views(ctx, report, load, front); err != nil {
			return err
		}
	}
	if b.sizes.Cold > 0 {
		return b.cold(ctx, report, load, front)
	}
	return nil
}

// views reads the pages without running their scripts.
func (b *Bench) views(ctx context.Context, report *figures.Report, load string, front *stage.Child) error {
	browser, err := signIn(ctx, front.Addr)
	if err != nil {
		return err
	}
	pages := views()
	times := make([][]time.Duration, len(pages))
	for i := range b.sizes.Views {
		if i > 0 {
			if err := stage.Pause(ctx, viewsApart); err != nil {
				return err
			}
		}
		for j := range pages {
			took, err := pages[j].look(ctx, browser)
			if err != nil {
				return fmt.Errorf("%s: %w", pages[j].name, err)
			}
			times[j] = append(times[j], took)
		}
	}
	for j, p := range pages {
		report.AddOne(load, p.name+", p50", "ms", figures.Milliseconds(figures.Quantile(times[j], 0.50)), nil)
		report.AddOne(load, p.name+", p95", "ms", figures.Milliseconds(figures.Quantile(times[j], 0.95)), figures.AtMost(p.within))
		report.AddOne(load, p.name+", gzip", "KB", p.kilobytes, figures.AtMost(pageSize))
	}
	return b.assets(ctx, report, load, browser, pages)
}

// assets measures what a first view of a page loads besides the page.
func (b *Bench) assets(ctx context.Context, report *figures.Report, load string, browser *browser, pages []*view) error {
	requests, scripts, styles := 0, 0.0, 0.0
	for _, p := range pages {
		var script, style float64
		for _, path := range p.assets {
			_, packed, _, err := browser.get(ctx, path)
			switch {
			case err != nil:
				return fmt.Errorf("%s: %w", path, err)
			case strings.HasSuffix(path, ".js"):
				script += float64(packed) / (1 << 10)
			case strings.HasSuffix(path, ".css"):
				style += float64(packed) / (1 << 10)
			}
		}
		requests, scripts, styles = max(requests, 1+len(p.assets)), max(scripts, script), max(styles, style)
	}
	report.AddOne(load, "requests of a first view, most of these pages", "", float64(requests), figures.AtMost(5))
	report.AddOne(load, "scripts of such a page, gzip", "KB", scripts, figures.AtMost(10))
	report.AddOne(load, "styles, gzip", "KB", styles, figures.AtMost(10))
	all, err := browser.scripts(ctx)
	if err != nil {
		return err
	}
	report.AddOne(load, "all scripts, gzip", "KB", all, figures.AtMost(30))
	return b.binary(ctx, report, load)
}

// makeTokens makes the tokens by the API.
func (b *Bench) makeTokens(ctx context.Context, front *stage.Child) error {
	return stage.Crew(ctx, tokenMakers, b.sizes.Tokens, func(ctx context.Context, i int) error {
		body := fmt.Sprintf(`{"name":"console-%05d","models":["*"],"requests_per_minute":%d,"budget":%d}`, i, 60+i%100, 1+i%50)
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+front.Addr+"/admin/tokens", strings.NewReader(body))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", "Bearer "+adminKey)
		var made struct {
			Key string `json:"key"`
		}
		err = b.DoJSON(request, &made)
		if err == nil && made.Key == "" {
			err = errors.New("it has no key")
		}
		if err != nil {
			return fmt.Errorf("%w: make a token: %w", stage.ErrBroken, err)
		}
		return nil
	})
}

// logged waits until the log has all calls that were sent, and returns how many those are and what they take in Redis; 0 bytes
// where that does not tell.
func (b *Bench) logged(ctx context.Context) (calls, size int64, err error) {
	c := redis.NewClient(&redis.Options{Addr: b.Redis.Addr, DB: logDatabase})
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithTimeout(ctx, logLag)
	defer cancel()
	want := int64(min(b.sizes.Calls, logKeeps))
	for {
		calls, err = c.XLen(ctx, logKey).Result()
		if err != nil {
			return 0, 0, fmt.Errorf("count the calls in the log: %w", err)
		}
		if calls >= want {
			break
		}
		if err := stage.Pause(ctx, 100*time.Millisecond); err != nil {
			return 0, 0, fmt.Errorf("%w: the log has %d of %d calls: %w", stage.ErrBroken, calls, want, err)
		}
	}
	size, err = c.MemoryUsage(ctx, logKey, 0).Result()
	if err != nil {
		b.Options.Log.Info("this redis does not tell what a key takes", "error", err)
		return calls, 0, nil // an embedded one does not know the command
	}
	return calls, size, nil
}
