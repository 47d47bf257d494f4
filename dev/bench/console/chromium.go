package console

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"modelrelay/dev/bench/stage"
)

const (
	// chromiumFile is where Debian has it.
	chromiumFile = "/usr/bin/chromium"
	// tabTimeout bounds one step in a tab.
	tabTimeout = time.Minute
)

// chromium is a browser with an empty profile that has signed in with the admin key.
type chromium struct {
	first *tab
	end   func()
}

// tab is one of its tabs.
type tab struct {
	ctx   context.Context //nolint:containedctx // chromedp keeps a tab in one
	base  string          // the gateway's address
	close func()
}

// startChromium starts one and signs in. Whoever starts it ends it.
func startChromium(ctx context.Context, addr string) (b *chromium, err error) {
	if _, err := os.Stat(chromiumFile); err != nil {
		return nil, fmt.Errorf("no browser: %w", err)
	}
	profile, err := os.MkdirTemp("", "bench-chromium-")
	if err != nil {
		return nil, err
	}
	allocator, end := chromedp.NewExecAllocator(ctx, append(
		chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromiumFile), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(profile),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("mute-audio", true),
	)...)
	first, closeTab := chromedp.NewContext(allocator)
	b = &chromium{first: &tab{ctx: first, base: "http://" + addr, close: closeTab}, end: func() {
		closeTab()
		end()
		_ = os.RemoveAll(profile) // below the machine's folder of temporary files
	}}
	// The first step starts the browser, which lives as long as that step's context.
	if err := chromedp.Do(first, chromedp.Navigate("about:blank")); err != nil {
		b.end()
		return nil, fmt.Errorf("start the browser: %w", err)
	}
	if err := b.signIn(ctx); err != nil {
		b.end()
		return nil, err
	}
	return b, nil
}

func (b *chromium) signIn(ctx context.Context) error {
	if err := b.first.open(ctx, "/console/sign-in"); err != nil {
		return err
	}
	if _, err := evaluate[bool](ctx, b.first, `(() => { const field = document.querySelector('input[name="key"]'); field.value = '`+adminKey+`'; field.form.requestSubmit(); return true; })()`); err != nil {
		return err
	}
	_, err := b.first.when(ctx, `document.querySelector('header .who')`)
	return err
}

// open makes a tab that is visible, as the only one of a window would be.
func (b *chromium) open(ctx context.Context) (*tab, error) {
	own, closeTab := chromedp.NewContext(b.first.ctx)
	t := &tab{ctx: own, base: b.first.base, close: closeTab}
	err := chromedp.Do(own, chromedp.Navigate("about:blank")) //nolint:contextcheck // the tab lives as long as its first step's context
	if err == nil {
		within, cancel := t.within(ctx)
		defer cancel()
		_, err = chromedp.Call(within, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	}
	if err != nil {
		closeTab()
		return nil, fmt.Errorf("open a tab: %w", err)
	}
	return t, nil
}

// within is the context of one step in the tab, which ends with ctx as well.
func (t *tab) within(ctx context.Context) (context.Context, context.CancelFunc) {
	step, cancel := context.WithTimeout(t.ctx, tabTimeout)
	stop := context.AfterFunc(ctx, cancel)
	return step, func() {
		stop()
		cancel()
	}
}

// open opens a page of the gateway and waits until all of it is there.
func (t *tab) open(ctx context.Context, path string) error {
	ctx, cancel := t.within(ctx)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Navigate(t.base+path)); err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	return nil
}

// evaluate is the value of an expression of JavaScript, of a promise its end.
func evaluate[T any](ctx context.Context, t *tab, expression string) (T, error) {
	ctx, cancel := t.within(ctx)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// when waits until an expression is true of what the tab shows, and returns when that was on the screen: at the next frame. While
// a page gives way to another it is asked again.
func (t *tab) when(ctx context.Context, expression string) (time.Time, error) {
	for began := time.Now(); ; {
		at, err := evaluate[float64](ctx, t, `new Promise((done) => {
			const look = () => { let there = false; try { there = Boolean(`+expression+`); } catch {} return there; };
			const shown = () => requestAnimationFrame(() => done(Date.now()));
			if (look()) { shown(); return; }
			const watch = new MutationObserver(() => { if (look()) { watch.disconnect(); shown(); } });
			watch.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
		})`)
		if err == nil {
			return time.UnixMilli(int64(at)), nil
		}
		if time.Since(began) > tabTimeout || ctx.Err() != nil {
			return time.Time{}, fmt.Errorf("%w: %s is not shown: %w", stage.ErrBroken, expression, err)
		}
	}
}
