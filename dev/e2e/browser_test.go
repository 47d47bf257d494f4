package e2e_test

import (
	"context"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"modelrelay/dev/e2e/stack"
)

const (
	// chromium is where Debian has it.
	chromium = "/usr/bin/chromium"
	// axeFile checks the accessibility of a page.
	axeFile = nodeDir + "/node_modules/axe-core/axe.min.js"
	// browserTimeout is how long a step may take on a machine that does everything else as well.
	browserTimeout = 3 * time.Minute
)

// chromiumTab is Chromium with an empty profile, which notes what must not happen: reports of the policy, errors of scripts,
// requests to other hosts.
type chromiumTab struct {
	t    *testing.T
	ctx  context.Context //nolint:containedctx // the browser lives as long as its test
	base string          // the gateway's address
	bare bool            // pages run no scripts

	mu    sync.Mutex
	wrong []string
	// allowed are beginnings of errors that a test provokes.
	allowed []string
}

// newBrowser starts Chromium and signs in with a link of the gateway's own command.
func newBrowser(t *testing.T, g *stack.Gateway, who ...string) *chromiumTab {
	t.Helper()
	b := &chromiumTab{t: t, base: g.URL()}
	ctx, closeTab := startChromium(t)
	b.ctx = ctx
	b.listen()
	t.Cleanup(func() {
		closeTab()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, wrong := range b.wrong {
			t.Error(wrong)
		}
	})
	b.do(chromedp.Navigate(strings.TrimSpace(g.Run(append([]string{"console"}, who...)...))))
	b.press("main button")
	b.await("the first page", `document.querySelector('header .who')`)
	return b
}

// startChromium starts Chromium with an empty profile, and opens a tab in it.
func startChromium(t *testing.T) (tab context.Context, closeTab context.CancelFunc) {
	t.Helper()
	if _, err := os.Stat(chromium); err != nil {
		t.Fatalf("install chromium: %v", err)
	}
	allocator, end := chromedp.NewExecAllocator(t.Context(), append(
		chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("mute-audio", true),
	)...)
	t.Cleanup(end)
	tab, closeTab = chromedp.NewContext(allocator)
	// The first step starts the browser, which lives as long as that step's context.
	if err := chromedp.Do(tab, chromedp.Navigate("about:blank")); err != nil {
		t.Fatalf("start the browser: %v", err)
	}
	return tab, closeTab
}

// listen notes what must not happen.
func (b *chromiumTab) listen() {
	messages, requests := chromedp.Console(b.ctx), chromedp.Events(b.ctx, network.RequestWillBeSent)
	dialogs := chromedp.Events(b.ctx, page.JavascriptDialogOpening)
	go func() {
		for dialog, err := range dialogs {
			if err != nil {
				return
			}
			b.note("a dialog: " + dialog.Message)
		}
	}()
	go func() {
		for message, err := range messages {
			if err != nil {
				return
			}
			if message.Type == chromedp.ConsoleError || message.Type == chromedp.ConsoleWarning || message.IsException() ||
				message.Source == "security" {
				b.note("the browser's console: " + message.String())
			}
		}
	}()
	go func() {
		for request, err := range requests {
			if err != nil {
				return
			}
			address, err := url.Parse(request.Request.URL)
			if err != nil || address.Scheme != "data" && address.Scheme != "blob" && address.Scheme != "about" &&
				!strings.HasPrefix(request.Request.URL, b.base+"/") {
				b.note("a request to another host: " + request.Request.URL)
			}
		}
	}()
}

func (b *chromiumTab) note(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, allowed := range b.allowed {
		if strings.Contains(what, allowed) {
			return
		}
	}
	b.wrong = append(b.wrong, what)
}

// allow lets errors of the console pass that hold a text.
func (b *chromiumTab) allow(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allowed = append(b.allowed, text)
}

func (b *chromiumTab) within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(b.ctx, browserTimeout)
}

func (b *chromiumTab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := b.within()
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("in the browser: %v\n%s", err, b.text("body"))
	}
}

// open opens a page of the gateway.
func (b *chromiumTab) open(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.base + path))
}

// text is what an element says; "" where there is none.
func (b *chromiumTab) text(selector string) string {
	text, _ := evaluate[string](b, `document.querySelector(`+quoted(selector)+`)?.innerText ?? ""`)
	return text
}

// await waits until an expression of JavaScript is true. While a page gives way to the next one it is asked again.
func (b *chromiumTab) await(what, expression string) {
	b.t.Helper()
	ctx, cancel := b.within()
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		question := chromedp.Evaluate[bool](`(async () => { try { return Boolean(`+expression+`); } catch { return false; } })()`,
			chromedp.EvalAwaitPromise)
		if b.bare { // where no promise is ever kept
			question = chromedp.Evaluate[bool](`(() => { try { return Boolean(` + expression + `); } catch { return false; } })()`)
		}
		ok, err := chromedp.Run(ctx, question)
		if err == nil && ok {
			return
		}
		select {
		case <-ctx.Done():
			b.t.Fatalf("%s did not happen (%v)\n%s", what, err, b.text("main"))
		case <-tick.C:
		}
	}
}

// press presses what a selector finds, as soon as it is there and may be pressed.
func (b *chromiumTab) press(selector string) {
	b.t.Helper()
	b.await("a press of "+selector, `(() => { const found = document.querySelector(`+quoted(selector)+`);
		if (!found || found.disabled || !found.checkVisibility()) return false;
		found.scrollIntoView({ block: 'center' });
		found.click();
		return true; })()`)
}

func evaluate[T any](b *chromiumTab, expression string) (T, error) {
	ctx, cancel := b.within()
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `\'`) + "'" }

// see sets how wide the page is, in which theme and in which language.
func (b *chromiumTab) see(width int64, theme, language string) {
	b.t.Helper()
	ctx, cancel := b.within()
	defer cancel()
	err := chromedp.Do(ctx, chromedp.EmulateViewport(width, 900))
	if err == nil {
		_, err = chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
		})
	}
	if err == nil {
		_, err = chromedp.Call(ctx, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{
			UserAgent:      "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/148.0.0.0 Safari/537.36",
			AcceptLanguage: language,
		})
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// switchScriptsOff has pages run none from now on; the test itself still asks them.
func (b *chromiumTab) switchScriptsOff() {
	b.t.Helper()
	ctx, cancel := b.within()
	defer cancel()
	if _, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled,
		emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		b.t.Fatal(err)
	}
	b.bare = true
}

// check looks for what people stumble over who cannot see or use no mouse, by the rules of WCAG 2.2 AA, and for a page that
// is wider than its window.
func (b *chromiumTab) check(what string) {
	b.t.Helper()
	axe, err := os.ReadFile(axeFile)
	if err != nil {
		b.t.Fatalf("run npm ci in dev/node: %v", err)
	}
	if _, err := evaluate[bool](b, string(axe)+`; true`); err != nil {
		b.t.Fatalf("%s: axe does not load: %v", what, err)
	}
	found, err := evaluate[[]string](b, `axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] }).then((r) =>
		r.violations.map((v) => v.id + ': ' + v.help + ' at ' + v.nodes.slice(0, 3).map((n) => n.target.join(' ') + ' ' + (n.any[0]?.message ?? '')).join(', ')))`)
	if err != nil {
		b.t.Fatalf("%s: axe does not run: %v", what, err)
	}
	for _, violation := range found {
		b.t.Errorf("%s: %s", what, violation)
	}
	if over, err := evaluate[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); err != nil || over > 0 {
		b.t.Errorf("%s: the page is %d px wider than its window (%v)", what, over, err)
	}
}

// shoot takes a picture of the window, or of the whole page.
func (b *chromiumTab) shoot(whole bool) []byte {
	b.t.Helper()
	ctx, cancel := b.within()
	defer cancel()
	shot, err := chromedp.Call(ctx, page.CaptureScreenshot,
		page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng, CaptureBeyondViewport: &whole})
	if err != nil {
		b.t.Fatal(err)
	}
	return shot.Data
}
