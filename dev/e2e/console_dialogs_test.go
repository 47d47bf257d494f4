package e2e_test

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"modelrelay/dev/e2e/stack"
)

// TestConsoleQuestions: the confirmation of a dangerous action is a modal dialog. The focus is on the button that cancels, as Escape does.
// The selection stays, and a refusal opens the dialog again with the typed text. The confirmation also works without scripts.
func TestConsoleQuestions(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	g := stack.SharedRelay(t).StartGateway(stack.GatewayOptions{AdminKey: stack.AdminKey})
	for _, name := range []string{"first", "second"} {
		g.Run("token", "create", "--name", name)
	}
	b := newBrowser(t, g)
	const ask = `form:has(.pick) button[value="disable"]` // the dialog has one of its own
	choose := func() {
		t.Helper()
		b.open("/console/tokens")
		b.await("the rows", `document.readyState === 'complete' && document.querySelectorAll('tbody .pick input').length > 1`)
		for _, name := range []string{"first", "second"} {
			b.await("a choice of "+name, `(() => { const row = [...document.querySelectorAll('tbody tr')].find((row) => row.querySelector('th a')?.textContent === `+quoted(name)+`);
				row.querySelector('.pick input').checked = true; return true; })()`)
		}
		b.press(ask)
		b.await("the question", `document.getElementById('ask')?.open && document.querySelector('#ask h2').textContent.startsWith('Disable 2 tokens?')`)
	}
	const isOn = `document.activeElement?.matches('#ask button[form="ask-no"]')`
	choose()
	b.await("a modal question with the focus on no", `document.getElementById('ask').matches(':modal') && `+isOn)
	b.check("a question")
	b.do(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab))
	b.await("the focus within the question", `!document.activeElement || document.activeElement === document.body || document.getElementById('ask').contains(document.activeElement)`)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.await("its end, with all that was chosen", `!document.getElementById('ask').open && document.querySelectorAll('tbody .pick input:checked').length === 2`)
	b.await("the focus on what was chosen", `document.activeElement?.matches('.pick input:checked')`)
	b.press(ask)
	b.await("the question again", `document.getElementById('ask')?.open`)
	b.tabTo(`#ask button[value="disable"]`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.await("both disabled", `document.querySelectorAll('#results .mark.done').length === 2`)

	b.open("/console/channels/main")
	b.tabTo(`button[commandfor="pause"]`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.await("the question of a pause", `document.getElementById('pause').matches(':modal') && document.activeElement?.matches('#pause button[form="pause-no"]')`)
	b.check("a question about a channel")
	b.do(chromedp.KeyEvent(kb.Escape))
	b.await("no pause, and the focus where it was",
		`!document.getElementById('pause').open && document.activeElement?.matches('button[commandfor="pause"]')`)
	b.allow("400")
	b.press(`button[commandfor="pause"]`)
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector('#f-minutes').max = ''; document.querySelector('#f-minutes').value = '99999'; document.querySelector('#f-reason').value = 'billing'; 0`))
	b.press(`#pause button.danger`)
	b.await("the refusal in the dialog, with what was typed",
		`document.getElementById('pause').matches(':modal') && document.querySelector('#pause .field.wrong #f-minutes')?.value === '99999' && document.querySelector('#f-reason').value === 'billing'`)
	b.check("a refused pause")

	b.switchScriptsOff()
	g.Run("token", "update", "first", "--disabled=false")
	g.Run("token", "update", "second", "--disabled=false")
	choose()
	b.await("the question in its place, with the focus on no",
		`!document.getElementById('ask').matches(':modal') && getComputedStyle(document.getElementById('ask')).position === 'static' && `+isOn)
	// as in an old browser
	b.do(chromedp.Evaluate[chromedp.Void](`for (const button of document.querySelectorAll('[command]')) button.removeAttribute('command'); 0`))
	b.press(`#ask button[form="ask-no"]`)
	b.await("its end without scripts", `!document.getElementById('ask').open && document.querySelectorAll('tbody .pick input:checked').length === 2`)
	b.open("/console/channels/main")
	b.press(`button[commandfor="pause"]`)
	b.await("the question of a pause without scripts", `document.getElementById('pause').matches(':modal')`)
	b.press(`#pause button.danger`)
	b.await("a paused channel", `document.querySelector('.said:has(.mark.paused)')?.textContent.includes('Paused by')`)
}
