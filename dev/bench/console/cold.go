package console

import (
	"context"
	"fmt"
	"slices"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"modelrelay/dev/bench/figures"
	"modelrelay/dev/bench/stage"
)

const (
	paintedWithin = 500  // ms until the largest part of a page is painted
	shiftedMost   = 0.02 // of what is shown
	blockedMost   = 50   // ms of the main thread
)

// watchPaint notes what a page does from its first byte on.
const watchPaint = `(() => {
	const seen = globalThis.benchSeen = { largest: 0, shifted: 0, blocked: 0 };
	const watch = (type, take) => new PerformanceObserver((list) => list.getEntries().forEach(take)).observe({ type, buffered: true });
	watch('largest-contentful-paint', (e) => { seen.largest = Math.max(seen.largest, e.startTime); });
	watch('layout-shift', (e) => { if (!e.hadRecentInput) seen.shifted += e.value; });
	watch('longtask', (e) => { seen.blocked += Math.max(0, e.duration - 50); });
})()`

// readPaint waits for what follows a page's end and reads what it did. Entries of observers come in a later task.
const readPaint = `new Promise((done) => setTimeout(() => done({
	...benchSeen,
	foreign: performance.getEntriesByType('resource').filter((e) => !e.name.startsWith(location.origin + '/')).length,
	fonts: performance.getEntriesByType('resource').filter((e) => /\.(woff2?|ttf|otf)$/.test(e.name)).length,
}), 700))`

// painted is what one opening showed: times in ms.
type painted struct {
	Largest float64 `json:"largest"`
	Shifted float64 `json:"shifted"`
	Blocked float64 `json:"blocked"`
	Foreign int     `json:"foreign"`
	Fonts   int     `json:"fonts"`
}

// coldPages are the pages that are opened, by name; task is a task's id.
func coldPages(task string) [][2]string {
	return [][2]string{
		{"Overview", "/console"},
		{"Calls", "/console/calls"},
		{"Tasks", "/console/tasks"},
		{"Task", "/console/tasks/" + task},
		{"Tokens", "/console/tokens"},
		{"Channels", "/console/channels"},
		{"Models", "/console/models"},
		{"Money", "/console/usage"},
		{"Audit", "/console/audit"},
		{"Try", "/console/try"},
		{"Set-up", "/console/setup"},
	}
}

// cold opens each page in a tab of its own, without anything that was loaded before.
func (b *Bench) cold(ctx context.Context, report *figures.Report, load string, front *stage.Child) error {
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := b.GetJSON(ctx, "http://"+front.Addr+"/admin/tasks?limit=1", adminKey, &list); err != nil {
		return fmt.Errorf("find a task to open: %w", err)
	}
	if len(list.Data) == 0 {
		return fmt.Errorf("%w: there is no task to open", stage.ErrBroken)
	}
	browser, err := startChromium(ctx, front.Addr)
	if err != nil {
		return err
	}
	defer browser.end()
	pages := coldPages(list.Data[0].ID)
	seen := make([][]painted, len(pages))
	for range b.sizes.Cold {
		for i, p := range pages {
			one, err := browser.paint(ctx, p[1])
			if err != nil {
				return fmt.Errorf("%s: %w", p[0], err)
			}
			seen[i] = append(seen[i], one)
		}
	}
	of := func(i int, figure func(painted) float64) (values []float64) {
		for _, one := range seen[i] {
			values = append(values, figure(one))
		}
		return values
	}
	foreign, fonts := 0, 0
	for i, p := range pages {
		name := p[0] + " in Chromium, cold: "
		largest, blocked := of(i, func(p painted) float64 { return p.Largest }), of(i, func(p painted) float64 { return p.Blocked })
		report.AddOne(load, name+"largest paint p50", "ms", figures.Quantile(largest, 0.50), nil)
		report.AddOne(load, name+"largest paint p95", "ms", figures.Quantile(largest, 0.95), figures.AtMost(paintedWithin))
		report.AddOne(load, name+"layout shift, most", "", slices.Max(of(i, func(p painted) float64 { return p.Shifted })), figures.AtMost(shiftedMost))
		report.AddOne(load, name+"main thread blocked p50", "ms", figures.Quantile(blocked, 0.50), nil)
		report.AddOne(load, name+"main thread blocked p95", "ms", figures.Quantile(blocked, 0.95), figures.AtMost(blockedMost))
		for _, one := range seen[i] {
			foreign, fonts = foreign+one.Foreign, fonts+one.Fonts
		}
	}
	report.AddOne(load, "requests to other hosts", "", float64(foreign), figures.AtMost(0))
	report.AddOne(load, "fonts loaded", "", float64(fonts), figures.AtMost(0))
	return nil
}

// paint opens a page in a new tab with an empty cache.
func (b *chromium) paint(ctx context.Context, path string) (seen painted, err error) {
	t, err := b.open(ctx)
	if err != nil {
		return seen, err
	}
	defer t.close()
	within, cancel := t.within(ctx)
	defer cancel()
	if _, err := chromedp.Call(within, network.ClearBrowserCache, cdp.Empty{}); err != nil {
		return seen, fmt.Errorf("clear the cache: %w", err)
	}
	if _, err := chromedp.Call(within, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watchPaint}); err != nil {
		return seen, fmt.Errorf("watch a page: %w", err)
	}
	if err := t.open(ctx, path); err != nil {
		return seen, err
	}
	seen, err = evaluate[painted](ctx, t, readPaint)
	if err == nil && seen.Largest == 0 {
		err = fmt.Errorf("%w: %s painted nothing", stage.ErrBroken, path)
	}
	return seen, err
}
