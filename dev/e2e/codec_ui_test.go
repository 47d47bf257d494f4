package e2e_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/testport"
	"modelrelay/storage/testwait"
)

// TestCodecInTheUI: in a browser, the Temporal UI is refused before a person has signed in at /codec/decode, and from then on shows in
// the clear what is encrypted.
func TestCodecInTheUI(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.New(t)
	const canary = "a canary that only operators hear"
	ui := testport.Address(t)
	g := s.Configure(stack.GatewayOptions{
		AdminKey: stack.AdminKey, Temporal: ", ui_origin: http://" + ui + ", payload_keys: [" + payloadKey("first", "a") + "]",
	})
	s.AddUI(ui, g.URL()+"/codec")
	g.Start()
	id := g.Create(t.Context(), "sora-2-fast", canary).ID
	g.AwaitCompleted(id, stack.TaskTimeout)

	tab, closeTab := startChromium(t)
	defer closeTab()
	b := &chromiumTab{t: t, ctx: tab, base: "http://" + ui}
	b.do(chromedp.EmulateViewport(1400, 3000))
	const shows = `document.body.textContent.includes('` + canary + `')`
	look := func() { t.Helper(); b.open("/namespaces/default/workflows/" + id) }

	look()
	testwait.Eventually(t, "the UI asks and is refused", stack.TaskTimeout, func() bool {
		for line := range strings.Lines(g.Out.Text()) {
			if strings.Contains(line, "codecDecode") && strings.Contains(line, "401") {
				return true
			}
		}
		return false
	})
	// A person signs in once, with any name.
	signIn := url.URL{Scheme: "http", User: url.UserPassword("anna", stack.AdminKey), Host: g.Address, Path: "/codec/decode"}
	b.do(chromedp.Navigate(signIn.String()))
	look()
	b.await("the UI shows the prompt", shows)
	g.WantNoSecretsLogged(t, stack.AdminKey, canary)
}
