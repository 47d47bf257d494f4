package e2e_test

import (
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"modelrelay/dev/e2e/stack"
)

// recordScreens writes the pictures of the operator's document.
var recordScreens = flag.Bool("record-screens", false, "write the screenshots of api/console/testdata")

const screens = repo + "/api/console/testdata"

func consoleGateway(t *testing.T, s *stack.Stack) *stack.Gateway {
	t.Helper()
	return s.StartGateway(stack.GatewayOptions{
		AdminKey: "admin-key-of-this-test", Channels: strings.Replace(s.Channel("main", "sk-upstream-main", ""), "gpt-4o: ", "gpt-4o-mini: ", 1),
	})
}

// TestConsoleFirstMinute: the printed link leads to an answered chat and a video that plays, also after a reload.
func TestConsoleFirstMinute(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	g := consoleGateway(t, stack.Shared(t))
	b := newBrowser(t, g)
	if heading := b.text("h1"); heading != "Set-up" {
		t.Fatalf("the link leads to %q", heading)
	}
	b.press("#hello")
	b.await("an answer to the chat", `document.querySelector('.answer')?.textContent.length > 0 && document.querySelector('.facts-line')`)
	b.press("#make-video")
	b.await("a video that plays", `document.querySelector('video')?.currentTime > 0`)
	b.await("the last tick", `document.querySelectorAll('#steps-in .mark.done').length === 5 && document.querySelector('.head p').textContent === '5 of 5'`)
	b.check("set-up")
	b.record("setup.png")

	b.open("/console/try?kind=video")
	b.press("#send")
	b.await("a video that plays in Try", `document.querySelector('video')?.currentTime > 0`)
	b.check("try a video")
	b.do(chromedp.Reload())
	b.await("the same video after a reload", `document.querySelector('video')?.currentTime > 0`)
	b.record("try.png")
	g.WantNoSecretsLogged(t, "admin-key-of-this-test")
}

// record writes a picture of the document where the flag says so, and checks its size anyway.
func (b *chromiumTab) record(name string) {
	b.t.Helper()
	b.see(1280, "light", "en")
	b.await("the top of the page", `(scrollTo(0, 0), scrollY === 0)`)
	png := b.shoot(false)
	if len(png) > 150<<10 {
		b.t.Errorf("%s has %d bytes, want 150 KiB at most", name, len(png))
	}
	if !*recordScreens {
		return
	}
	if err := os.MkdirAll(screens, 0o750); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(screens, name), png, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// TestConsoleTokens: a token is created, copied, used, changed, rotated and revoked in the browser. Its key is in only one answer.
func TestConsoleTokens(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	g := consoleGateway(t, stack.SharedRelay(t))
	b := newBrowser(t, g)
	b.open("/console/tokens/new")
	b.check("new token")
	b.do(chromedp.SendKeys("#f-name", "browser"), chromedp.SendKeys("#f-models", "gpt-*"))
	b.press("main fieldset button.main")
	b.await("the key", `document.querySelector('#secret .copyable code')`)
	b.check("a new token's key")
	key := b.text("#secret .copyable code")
	if !strings.HasPrefix(key, "sk-") {
		t.Fatalf("the key is %q", key)
	}
	chat := func(key string) int {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, g.URL()+"/v1/chat/completions",
			strings.NewReader(`{"model":"gpt-4o-mini","messages":[{"role":"user","content":"hi"}]}`))
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	if got := chat(key); got != http.StatusOK {
		t.Errorf("a call with the new key: got %d", got)
	}
	b.open("/console/tokens/browser")
	b.check("a token")
	if strings.Contains(b.text("html"), key) {
		t.Error("the key is shown a second time")
	}
	b.record("token.png")
	b.do(chromedp.SetValue("#f-budget", "12.5"))
	b.press("main fieldset button.main")
	b.await("the change", `document.querySelector('[role=status]')?.textContent.includes('changed')`)
	b.press(`button[commandfor="rotate"]`)
	b.press("#rotate button.danger")
	b.await("another key", `document.querySelector('#secret .copyable code')`)
	if got := chat(key); got != http.StatusUnauthorized {
		t.Errorf("a call with the key before: got %d", got)
	}
	b.open("/console/tokens/browser")
	b.press(`button[commandfor="revoke"]`)
	b.await("the question", `document.getElementById('revoke').open`)
	b.check("a question")
	b.do(chromedp.SendKeys("#revoke-typed", "browser"))
	b.press("#revoke button.danger")
	b.await("the list", `location.pathname.endsWith('/tokens')`)
	b.await("that it is said", `document.querySelector('[role=status]')?.textContent.includes('revoked')`)
	for _, language := range []string{"en", "zh"} {
		for _, theme := range []string{"light", "dark"} {
			for _, width := range []int64{1280, 320} {
				b.see(width, theme, language)
				for _, path := range []string{"/", "/console/tokens", "/console/setup", "/console/try", "/console/you", "/console/sign-in"} {
					b.open(path)
					b.check(strings.Join([]string{language, theme, path}, " "))
				}
			}
		}
	}
	g.WantNoSecretsLogged(t, key)
}

// TestConsoleHolder: a holder signs in with a link and sees only the data of its token. The session ends when the token is revoked.
func TestConsoleHolder(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	g := consoleGateway(t, stack.SharedRelay(t))
	key := strings.TrimSpace(g.Run("token", "create", "--name", "holder"))
	if at := strings.Index(key, "sk-"); at >= 0 {
		key = strings.Fields(key[at:])[0]
	}
	b := newBrowser(t, g, "--token", "holder")
	b.open("/console/try")
	b.press("#send")
	b.await("an answer", `document.querySelector('.answer')?.textContent.length > 0`)
	b.allow("404") // what follows is refused
	b.open("/console/tokens")
	if heading := b.text("h1"); heading != "Nothing here" {
		t.Errorf("a holder sees %q at the tokens", heading)
	}
	g.Run("token", "revoke", "holder")
	b.allow("401")
	b.await("the end of the session", `(await fetch('/console/you')).status === 401`)
	g.WantNoSecretsLogged(t, key)
}
