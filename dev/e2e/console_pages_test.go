package e2e_test

import (
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"modelrelay/dev/e2e/stack"
)

// shotsTo is the folder for a picture of each page; "" writes none.
var shotsTo = flag.String("shots", "", "folder for a picture of each page of the console")

// probe is what an attacker writes to become a part of a page: it would set a global.
const probe = `"'><img src=x onerror=globalThis.harmed=1><svg onload=globalThis.harmed=2>`

// Keys and secrets that no page may show.
func consoleCanaries() []string {
	return []string{stack.AdminKey, stack.Token, "sk-upstream-main", "sk-upstream-broken", stack.SecretKey}
}

// staffPages are all pages of an operator; those of one thing have it in them.
func staffPages(call, task, token string) []string {
	return []string{
		"", "/calls", "/calls/" + call, "/calls?status=failed", "/tasks", "/tasks?view=webhooks", "/tasks/" + task, "/tokens", "/tokens/" + token,
		"/tokens/new", "/channels", "/channels/broken", "/models", "/usage", "/audit", "/try", "/try?kind=video", "/setup", "/you",
		"/find?q=none",
		"/find?q=" + url.QueryEscape(probe),
	}
}

// paintings are how far the parts of a page have shifted so far, and when its largest one was there, in ms.
const paintings = `new Promise((done) => {
	let shifted = 0, largest = 0;
	new PerformanceObserver((list) => { for (const e of list.getEntries()) if (!e.hadRecentInput) shifted += e.value; }).
		observe({ type: 'layout-shift', buffered: true });
	new PerformanceObserver((list) => { for (const e of list.getEntries()) largest = e.startTime; }).
		observe({ type: 'largest-contentful-paint', buffered: true });
	setTimeout(() => done([shifted, largest]), 50); // buffered entries come in the next task
})`

// look opens a page, holds it to the rules, and takes a picture where one is wanted.
func (b *chromiumTab) look(name, path string) {
	b.t.Helper()
	b.open("/console" + path)
	b.await("a heading on "+path, `document.querySelector('h1')`)
	b.check(name + " " + path)
	// Nothing jumps. The time to the largest part is logged and has no bound, since tests share the machine.
	const shiftsAtMost = 0.02
	if seen, err := evaluate[[2]float64](b, paintings); err != nil || seen[0] > shiftsAtMost {
		b.t.Errorf("%s %s: what is shown has shifted by %.3f, want %.2f at most (%v)", name, path, seen[0], shiftsAtMost, err)
	} else {
		b.t.Logf("%s %s: shifted %.3f, largest part after %.0f ms", name, path, seen[0], seen[1])
	}
	harmed, err := evaluate[bool](b, `globalThis.harmed !== undefined || Boolean(document.querySelector('main img[src="x"], [onload], [onerror]'))`)
	if err != nil || harmed {
		b.t.Errorf("%s %s: what a stranger wrote is a part of the page (%v)", name, path, err)
	}
	text, err := evaluate[string](b, `document.documentElement.outerHTML`)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, canary := range consoleCanaries() {
		if strings.Contains(text, canary) {
			b.t.Errorf("%s %s: the page shows a secret", name, path)
		}
	}
	if *shotsTo != "" {
		file := strings.NewReplacer("/", "-", "?", "-", "=", "-", "%", "-").Replace(name + path)
		if err := os.WriteFile(filepath.Join(*shotsTo, file[:min(len(file), 80)]+".png"), b.shoot(true), 0o600); err != nil {
			b.t.Fatal(err)
		}
	}
}

// TestConsolePages: every page meets WCAG 2.2 AA, violates no security policy, and has no script error, no secret and no horizontal
// scrolling. It is tested empty, with hostile texts, with faults and without services, in both themes and languages, wide and narrow.
func TestConsolePages(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.New(t)
	options := stack.GatewayOptions{
		AdminKey: stack.AdminKey,
		Channels: s.Channel("main", "sk-upstream-main", "") + fmt.Sprintf(`  - {name: broken, vendor: openai, base_url: "http://%s/v1", keys: [sk-upstream-broken], models: {broken-model: }}
`, stack.Nowhere),
	}
	g := s.StartGateway(options)
	b := newBrowser(t, g)
	b.see(1280, "dark", "en")
	b.allow("404") // what is not there
	for _, path := range staffPages("req_none", "video_none", "none") {
		b.look("empty", path)
	}
	call, task, token := fillConsole(t, g)
	pages := staffPages(call, task, token)
	b.see(1280, "light", "en")
	for _, path := range pages {
		b.look("full", path)
	}
	b.see(320, "dark", "zh-CN")
	for _, path := range pages {
		b.look("narrow-zh", path)
	}
	g.Run("token", "create", "--name", "holder", "--budget", "5")
	holder := newBrowser(t, g, "--token", "holder")
	holder.see(320, "light", "zh-CN")
	for _, path := range []string{"", "/calls", "/tasks", "/models", "/usage", "/try", "/you", "/find?q=x"} {
		holder.look("holder", path)
	}
	s.Temporal.Kill()
	s.S3.Kill()
	b.see(1280, "light", "zh-CN")
	b.allow("503")
	for _, path := range []string{"", "/calls", "/tasks", "/tasks/" + task, "/tokens/" + token, "/channels", "/setup", "/usage"} {
		b.look("away", path)
	}
	g.WantNoSecretsLogged(t, consoleCanaries()...)
}

// fillConsole makes what pages show: calls that went well and badly, a channel that cools down, videos, tokens, and hostile texts
// wherever they can write one.
func fillConsole(t *testing.T, g *stack.Gateway) (call, task, token string) {
	t.Helper()
	for range 3 {
		call = chatOnce(t, g, "gpt-4o")
	}
	for range 6 {
		chatOnce(t, g, "broken-model")
	}
	g.Call(t, stack.Request{
		Method: http.MethodPost, Path: "/v1/chat/completions", Header: map[string]string{"User-Agent": probe},
		Body: map[string]any{"model": probe, "messages": []any{map[string]string{"role": "user", "content": probe}}},
	})
	var made struct {
		ID string `json:"id"`
	}
	for i, body := range []string{
		`{"name":"studio","models":["gpt-*","sora-2"],"budget":10,"requests_per_minute":600,"webhook_url":"https://client.example/hook","webhook_secret":"new"}`,
		fmt.Sprintf(`{"name":"ends soon","expires":%q}`, time.Now().Add(24*time.Hour).UTC().Format(time.RFC3339)),
	} {
		if status, text := g.Admin(http.MethodPost, "/admin/tokens", body, &made); status >= 300 {
			t.Fatalf("make a token: %d %s", status, text)
		}
		if i == 0 {
			token = made.ID
		}
	}
	if status, text := g.Admin(http.MethodPost, "/admin/channels/main/pause", fmt.Sprintf(`{"minutes":1,"reason":%q}`, probe[:40]),
		nil); status >= 300 {
		t.Fatalf("pause: %d %s", status, text)
	}
	if status, text := g.Admin(http.MethodPost, "/admin/channels/main/resume", "", nil); status >= 300 {
		t.Fatalf("resume: %d %s", status, text)
	}
	task = g.Create(t.Context(), "sora-2-fast", probe).ID
	g.AwaitEnd(task, time.Minute)
	g.AwaitEnd(g.Create(t.Context(), "sora-2-fast-fail", "it fails").ID, time.Minute)
	g.Create(t.Context(), "sora-2-manual", "it waits")
	return call, task, token
}

// tabTo moves the focus with the keyboard until it is on what a selector finds.
func (b *chromiumTab) tabTo(selector string) {
	b.t.Helper()
	b.await("something to go to: "+selector, `document.querySelector(`+quoted(selector)+`)`)
	for range 200 {
		if on, err := evaluate[bool](b, `Boolean(document.activeElement?.matches(`+quoted(selector)+`))`); err == nil && on {
			return
		}
		b.do(chromedp.KeyEvent(kb.Tab))
	}
	b.t.Fatalf("no way to %s with the keyboard\n%s", selector, b.text("main"))
}

// TestConsoleKeyboard: the main path works with the keyboard alone: navigation, a new token, its page, and a chat.
func TestConsoleKeyboard(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	g := stack.SharedRelay(t).StartGateway(stack.GatewayOptions{AdminKey: stack.AdminKey})
	b := newBrowser(t, g)
	const loaded = `document.readyState === 'complete' && ` // until then the page has no handler for keys
	at := func(path string) string { return loaded + `location.pathname.endsWith(` + quoted(path) + `)` }
	b.await("set-up or overview", loaded+`document.querySelector('nav a[data-key="k"]')`)
	b.do(chromedp.KeyEvent("g"), chromedp.KeyEvent("k"))
	b.await("the tokens", at("/tokens"))
	b.do(chromedp.KeyEvent("?"))
	b.await("the list of shortcuts", `document.getElementById('shortcuts').open`)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.await("its end", `!document.getElementById('shortcuts').open`)
	b.tabTo(`main a[href$="tokens/new"]`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.await("the form", at("/tokens/new"))
	b.tabTo("#f-name")
	b.do(chromedp.KeyEvent("typed"), chromedp.KeyEvent(kb.Enter))
	b.await("the key", loaded+`document.querySelector('#secret .copyable code')`)
	b.do(chromedp.KeyEvent("/"))
	// The driver sends a key's character as an event of its own, which comes although the page took the key. What is typed next
	// takes its place.
	b.await("the search", `document.activeElement?.id === 'find' && (document.activeElement.select(), true)`)
	b.do(chromedp.KeyEvent("typed"), chromedp.KeyEvent(kb.Enter))
	b.await("what is found", at("/find")+` && [...document.querySelectorAll('main a[href*="tokens/"]')].some((a) => a.textContent === 'typed')`)
	b.open("/console/tokens")
	b.await("the rows", loaded+`document.querySelector('main tbody tr')`)
	b.do(chromedp.KeyEvent("j"), chromedp.KeyEvent(kb.Enter))
	b.await("a token", `/\/tokens\/.+/.test(location.pathname)`)
	b.open("/console/try")
	b.tabTo("#send")
	b.do(chromedp.KeyEvent(kb.Enter))
	b.await("an answer", `document.querySelector('.answer')?.textContent.length > 0 && document.querySelector('.facts-line')`)
}
