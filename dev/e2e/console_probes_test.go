package e2e_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/chromedp/chromedp"

	"modelrelay/dev/e2e/stack"
)

// xssProbes are texts that try to become a part of a page; those that no name may hold are in bodies only.
func xssProbes(t *testing.T) (all, printed []string) {
	t.Helper()
	raw, err := os.ReadFile(screens + "/probes.json")
	if err == nil {
		err = json.Unmarshal(raw, &all)
	}
	if err != nil || len(all) < 60 {
		t.Fatalf("%d probes, %v", len(all), err)
	}
	for _, probe := range all {
		if len(probe) <= 128 && !strings.ContainsFunc(probe, func(r rune) bool { return !unicode.IsPrint(r) }) {
			printed = append(printed, probe)
		}
	}
	return all, printed
}

// knownElements are those that the templates and the modules of the console make.
func knownElements(t *testing.T) []string {
	t.Helper()
	known := []string{"a", "html", "head", "body", "code", "pre", "em", "br"}
	for pattern, element := range map[string]*regexp.Regexp{
		"/api/console/pages/*.html": regexp.MustCompile(`<([a-z][a-z0-9-]*)`),
		"/api/console/assets/*.js":  regexp.MustCompile(`(?:createElement|element)\([^)]*?'([a-z][a-z0-9]*)'`),
	} {
		files, err := filepath.Glob(repo + pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range element.FindAllSubmatch(text, -1) {
				known = append(known, string(found[1]))
			}
		}
	}
	// Renderer of answers: a heading is the one or the other, a list as well.
	known = append(known, "h3", "h4", "ol", "ul", "thead", "tbody", "tr", "td", "th", "li", "strong")
	slices.Sort(known)
	for _, refused := range []string{"iframe", "object", "embed", "applet", "base", "style", "template", "math", "frame"} {
		if slices.Contains(known, refused) {
			t.Fatalf("the console makes %s, which a probe would be", refused)
		}
	}
	return slices.Compact(known)
}

// What of a page shows that a probe became a part of it: an element that the console does not make, one with a handler or a
// style, a script that is not the console's, an address with a scheme of its own, or a new global.
const probeFindings = `(() => {
	const known = new Set(%s), found = [];
	for (const element of document.querySelectorAll('*')) {
		const tag = element.localName;
		if (!known.has(tag)) found.push('element ' + tag);
		for (const { name, value } of element.attributes) {
			if (name.startsWith('on') || name === 'style' || name === 'srcdoc' || name === 'autofocus' && tag === 'a')
				found.push(tag + ' with ' + name);
			if (['href', 'src', 'action', 'formaction', 'data'].includes(name) && /^\s*(javascript|data|vbscript):/i.test(value))
				found.push(tag + ' leads to ' + value);
		}
		if (tag === 'script' && (element.textContent || !element.src.includes('/console/assets/'))) found.push('a script');
		if (tag === 'meta' && element.httpEquiv) found.push('meta ' + element.httpEquiv);
	}
	const plain = new Set(%s);
	for (const name of Object.getOwnPropertyNames(globalThis)) if (!plain.has(name)) found.push('global ' + name);
	return [...new Set(found)];
})()`

// plainPage is what the console's own pages are made of, as JSON: their elements, and the globals of one without a probe.
type plainPage struct{ elements, globals string }

func newPlainPage(b *chromiumTab) plainPage {
	b.t.Helper()
	elements, _ := json.Marshal(knownElements(b.t)) // texts always encode
	globals, err := evaluate[string](b, `JSON.stringify(Object.getOwnPropertyNames(globalThis))`)
	if err != nil {
		b.t.Fatal(err)
	}
	return plainPage{string(elements), globals}
}

// probedPage opens a page and returns what a probe has become in it.
func (b *chromiumTab) probedPage(plain plainPage, path string) {
	b.t.Helper()
	b.open(path)
	b.await("a heading on "+path, `document.querySelector('h1') && document.readyState === 'complete'`)
	b.probed(plain, path)
}

func (b *chromiumTab) probed(plain plainPage, where string) {
	b.t.Helper()
	found, err := evaluate[[]string](b, fmt.Sprintf(probeFindings, plain.elements, plain.globals))
	if err != nil || len(found) > 0 {
		b.t.Errorf("%.80s: a stranger's text became %q (%v)", where, found, err)
	}
}

// TestConsoleProbes: hostile text stays text on every page in a real browser: no script runs, no dialog opens, no policy reports, nothing
// is loaded. The text is in the name of a token, a model, a channel and a file, in a prompt, an answer, a vendor's error, a user agent, the
// host of a webhook, the reason of a pause, Markdown, a filter and a cell of CSV.
func TestConsoleProbes(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	all, printed := xssProbes(t)
	s := stack.Shared(t)
	p := &probed{t: t, s: s, all: all, printed: printed}
	p.start()
	p.write()
	b := newBrowser(t, p.g)
	b.allow("404") // what is not there
	b.allow("400") // what is no filter, and what a vendor refuses
	b.open("/console/you")
	plain := newPlainPage(b)
	for _, path := range p.pages() {
		b.probedPage(plain, "/console"+path)
	}
	p.answers(b, plain)
	p.prices(b, plain)
	p.csv(b)
	holder := newBrowser(t, p.g, "--token", p.holder)
	holder.allow("404")
	holder.allow("400")
	for _, path := range []string{"", "/calls", "/tasks", "/tasks/" + p.tasks[0], "/models", "/usage", "/try", "/you"} {
		holder.probedPage(plain, "/console"+path)
	}
	p.g.WantNoSecrets(t)
}

// probed is a gateway that holds hostile texts.
type probed struct {
	t            *testing.T
	s            *stack.Stack
	g            *stack.Gateway
	all, printed []string
	tokens       []string // their ids
	holder       string   // the name of the token that made the tasks
	calls, tasks []string
}

// parts are all probes in a few texts.
func (p *probed) parts() (texts []string) {
	for part := range slices.Chunk(p.all, 20) {
		texts = append(texts, strings.Join(part, "\n\n"))
	}
	return texts
}

// start starts a gateway whose models, and one of whose channels, are called by probes.
func (p *probed) start() {
	models := make(map[string]string)
	for _, probe := range p.printed {
		models[probe] = "gpt-4o"
	}
	raw, _ := json.Marshal(models)
	name, _ := json.Marshal(`<img src=x onerror=alert(1)>"><b`)
	p.g = p.s.StartGateway(stack.GatewayOptions{
		AdminKey: stack.AdminKey,
		Channels: p.s.Channel("main", "sk-upstream-main", "") +
			fmt.Sprintf("  - {name: %s, vendor: openai, base_url: \"http://%s/openai/v1\", keys: [sk-upstream-probes], models: %s}\n", name,
				p.s.UpstreamAt, raw),
	})
}

// write writes hostile texts wherever clients can.
func (p *probed) write() {
	t, g := p.t, p.g
	for i, probe := range p.printed {
		body, _ := json.Marshal(map[string]any{"name": probe, "group": probe, "models": []string{probe, "*"}})
		var made struct {
			ID string `json:"id"`
		}
		if status, text := g.Admin(http.MethodPost, "/admin/tokens", string(body), &made); status >= 300 {
			t.Fatalf("a token called %q: %d %s", probe, status, text)
		}
		p.tokens = append(p.tokens, made.ID)
		answer := g.Call(t, stack.Request{
			Method: http.MethodPost, Path: "/v1/chat/completions", Header: map[string]string{"User-Agent": probe},
			Body: map[string]any{"model": probe, "messages": []any{map[string]string{"role": "user", "content": probe}}},
		})
		if i == 0 && answer.Status != http.StatusOK {
			t.Errorf("a model called %q: %d %s", probe, answer.Status, answer.Body)
		}
		if i%10 == 0 {
			reason, _ := json.Marshal(map[string]any{"minutes": 1, "reason": probe})
			if status, text := g.Admin(http.MethodPost, "/admin/channels/main/pause", string(reason), nil); status >= 300 {
				t.Fatalf("pause: %d %s", status, text)
			}
		}
	}
	if status, text := g.Admin(http.MethodPost, "/admin/channels/main/resume", "", nil); status >= 300 {
		t.Fatalf("resume: %d %s", status, text)
	}
	p.holder = "with tasks"
	body := fmt.Sprintf(`{"name":%q,"webhook_url":"https://client.example/'%%22><script>alert(1)</script>","webhook_secret":"new"}`, p.holder)
	var made struct {
		Key string `json:"key"`
	}
	if status, text := g.Admin(http.MethodPost, "/admin/tokens", body, &made); status >= 300 {
		t.Fatalf("a token with a webhook: %d %s", status, text)
	}
	for i, text := range p.parts() {
		p.s.Control.AddRule(map[string]any{
			"operation": "chat", "contains": fmt.Sprint("refuse part ", i), "action": "status", "status": 400,
			"message": text,
		})
		answer := g.Call(t, stack.Request{
			Method: http.MethodPost, Path: "/v1/chat/completions",
			Body: map[string]any{"model": "gpt-4o", "messages": []any{map[string]string{"role": "user", "content": fmt.Sprint("refuse part ", i)}}},
		})
		if !bytes.Contains(answer.Body, []byte("alert(1)")) {
			t.Errorf("a vendor's error: %d %.200s", answer.Status, answer.Body)
		}
		p.calls = append(p.calls, answer.Header.Get("X-Request-Id"))
		var task struct {
			ID string `json:"id"`
		}
		if i == 0 {
			p.s.Control.AddRule(map[string]any{
				"operation": "video.create", "contains": "[0]", "action": "job_fail", "code": "moderation",
				"message": text,
			})
		}
		g.CallJSON(t, stack.Request{
			Method: http.MethodPost, Path: "/v1/videos", Token: made.Key,
			Body: map[string]any{"model": "sora-2-fast", "prompt": fmt.Sprintf("[%d] %s", i, text)},
		}, &task)
		p.tasks = append(p.tasks, task.ID)
	}
	for _, task := range p.tasks {
		p.await(task, made.Key)
	}
}

// await waits for the end of a task of the token that has the key.
func (p *probed) await(task, key string) {
	p.t.Helper()
	var end struct{ Status string }
	for deadline := time.Now().Add(stack.TaskTimeout); end.Status != "completed" && end.Status != "failed"; {
		if time.Now().After(deadline) {
			p.t.Fatalf("%s has not ended: %s", task, end.Status)
		}
		p.g.CallJSON(p.t, stack.Request{Method: http.MethodGet, Path: "/v1/videos/" + task + "?wait=5", Token: key}, &end)
	}
}

// pages are all pages that show what was written, and those whose address has it.
func (p *probed) pages() []string {
	pages := []string{
		"", "/calls", "/tasks", "/tasks?view=webhooks", "/tokens", "/tokens/new", "/channels", "/channels/main", "/models", "/usage", "/audit",
		"/setup", "/you",
		"/channels/" + url.PathEscape(`<img src=x onerror=alert(1)>"><b`), "/usage?by=model", "/usage?by=token",
	}
	for _, call := range p.calls {
		pages = append(pages, "/calls/"+call)
	}
	for _, task := range p.tasks {
		pages = append(pages, "/tasks/"+task)
	}
	for i, probe := range p.printed {
		q := url.QueryEscape(probe)
		pages = append(pages, "/find?q="+q)
		switch i % 6 {
		case 0:
			pages = append(pages, "/tokens/"+p.tokens[i])
		case 1:
			pages = append(pages, "/calls?model="+q+"&channel="+q+"&fault="+q)
		case 2:
			pages = append(pages, "/try?model="+q+"&as="+q+"&kind="+q)
		case 3:
			pages = append(pages, "/audit?subject="+q+"&what="+q)
		case 4:
			pages = append(pages, "/tokens?q="+q+"&group="+q+"&sort="+q)
		default:
			pages = append(pages, "/usage?by="+q+"&model="+q+"&from="+q)
		}
	}
	for _, text := range p.parts() {
		pages = append(pages, "/try?prompt="+url.QueryEscape(text))
	}
	return pages
}

// answers has a model answer with the probes, as it streams and in one piece: they are shaped as Markdown.
func (p *probed) answers(b *chromiumTab, plain plainPage) {
	b.t.Helper()
	for i, text := range p.parts() {
		piece, _ := json.Marshal(map[string]any{
			"id": "chatcmpl-1", "object": "chat.completion.chunk",
			"choices": []any{map[string]any{"index": 0, "delta": map[string]string{"content": text}}},
		})
		rule := p.s.Control.AddRule(map[string]any{
			"operation": "chat", "contains": fmt.Sprint("answer part ", i), "action": "status", "status": 200,
			"headers": map[string]string{"Content-Type": "text/event-stream"}, "body": "data: " + string(piece) + "\n\ndata: [DONE]\n\n",
		})
		if rule == "" {
			b.t.Fatal("no rule")
		}
		b.open("/console/try?model=gpt-4o&prompt=" + url.QueryEscape(fmt.Sprint("answer part ", i)))
		b.press("#send")
		b.await("the answer", `document.querySelector('.answer')?.textContent.length > 100 && document.querySelector('.facts-line')`)
		b.probed(plain, "an answer")
	}
	b.open("/console/try?model=gpt-4o&prompt=" + url.QueryEscape("refuse part 0"))
	b.press("#send")
	b.await("the vendor's error", `document.querySelector('try-call .output')?.textContent.includes('alert(1)')`)
	b.probed(plain, "a vendor's error in Try")
}

// prices has a price list drafted whose name and whose models are probes.
func (p *probed) prices(b *chromiumTab, plain plainPage) {
	b.t.Helper()
	models := make(map[string]any)
	for _, probe := range p.printed {
		models[probe] = map[string]any{"cost": map[string]any{"input": 1, "output": 2}}
	}
	raw, _ := json.Marshal(map[string]any{p.printed[0]: map[string]any{"models": models}})
	file := filepath.Join(b.t.TempDir(), `'"><img src=x onerror=alert(1)>.json`)
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		b.t.Fatal(err)
	}
	b.open("/console/models")
	b.do(chromedp.SetUploadFiles("#f-file", []string{file}))
	b.press(`form:has(#f-file) button`)
	b.await("the draft", `document.querySelector('main')?.textContent.includes('input')`)
	b.await("the whole page", `document.readyState === 'complete'`)
	b.probed(plain, "a draft of prices")
}

// csv reads the rows that pages offer: no cell is a formula.
func (p *probed) csv(b *chromiumTab) {
	b.t.Helper()
	if status, text := p.g.Admin(http.MethodPost, "/admin/tokens", `{"name":"=HYPERLINK(\"http://evil.example\")"}`, nil); status >= 300 {
		b.t.Fatalf("%d %s", status, text)
	}
	for _, path := range []string{"/tokens?sort=name", "/calls", "/usage?by=model", "/audit"} {
		text, err := evaluate[string](b, `fetch(`+quoted("/console"+path+map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")]+
			"format=csv")+`).then((r) => r.text())`)
		if err != nil {
			b.t.Fatal(err)
		}
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil || len(rows) < 2 {
			b.t.Errorf("%s: %d rows, %v", path, len(rows), err)
		}
		for _, cell := range slices.Concat(rows...) {
			if cell == "" || !strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
				continue
			}
			if _, err := strconv.ParseFloat(strings.ReplaceAll(cell, ",", ""), 64); err != nil {
				b.t.Errorf("%s: a spreadsheet takes %q for a formula", path, cell)
			}
		}
	}
}
