package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/testwait"
)

// TestLiveTasks: the console shows changes without a reload: new and ended tasks on the list, the progress and the video on a task's page.
func TestLiveTasks(t *testing.T) {
	t.Parallel()
	s := stack.Shared(t)
	g := s.StartGateway(stack.GatewayOptions{AdminKey: stack.AdminKey, Video: "poll_min: 200ms, poll_max: 1s"})
	first := g.Create(t.Context(), "sora-2-manual", "the first").ID
	list, page := newBrowser(t, g), newBrowser(t, g)
	row := func(id string) string {
		return `[...document.querySelectorAll('#tasks tbody tr')].find((row) => row.textContent.includes(` + quoted(id) + `))`
	}
	for tab, path := range map[*chromiumTab]string{list: "/console/tasks", page: "/console/tasks/" + first} {
		tab.open(path)
		if _, err := evaluate[bool](tab, `globalThis.stayed = true`); err != nil {
			t.Fatal(err)
		}
	}
	list.await("the first task", row(first))
	second := g.Create(t.Context(), "sora-2-fast", "the second").ID
	list.await("a task that was made", row(second))
	list.await("its end", row(second)+`.querySelector('.mark.done')`)

	s.Control.Await("video.get", "sora-2-manual", "", 1)
	job := s.Control.Job("the first").ID
	s.Control.Drive(job, "in_progress", 40)
	page.await("how far it is", `document.querySelector('[data-running] progress')?.value >= 40`)
	s.Control.Drive(job, "completed", 100)
	page.await("its end", `!document.querySelector('[data-running]')`)
	page.await("its video", `document.querySelector('video')?.readyState > 0`)
	list.await("its end on the list", row(first)+`.querySelector('.mark.done')`)
	for what, tab := range map[string]*chromiumTab{"the list": list, "the page": page} {
		if stayed, err := evaluate[bool](tab, `globalThis.stayed === true`); err != nil || !stayed {
			t.Errorf("%s was loaded anew (%v)", what, err)
		}
	}
}

// TestLiveCall: the page of a streamed call shows its text as it comes, across refreshes, and at the end the answer as it was meant.
func TestLiveCall(t *testing.T) {
	t.Parallel()
	s := stack.Shared(t)
	s.Control.AddRule(map[string]any{"operation": "chat", "model": "gpt-4o", "action": "stall", "chunks": 3, "times": 1})
	g := s.StartGateway(stack.GatewayOptions{AdminKey: stack.AdminKey})
	r := chatIn("something **bold** <b>and</b> more")
	r.Body = strings.Replace(r.Body.(string), "{", `{"stream":true,`, 1)
	task := startBackground(t, g, r)
	operator, holder := newBrowser(t, g), newBrowser(t, g, "--token", "demo")
	for _, tab := range []*chromiumTab{operator, holder} {
		tab.open("/console/tasks/" + task.ID)
		tab.await("the first words", `document.querySelector('live-text')?.textContent.startsWith('You said:')`)
		tab.await("a refresh", `document.getElementById('answer').original !== undefined`)
		tab.await("the same words", `document.querySelector('live-text')?.textContent.startsWith('You said:')`)
		tab.check("a running call")
	}
	s.Control.Clear()
	for _, tab := range []*chromiumTab{operator, holder} {
		tab.await("the answer", `document.querySelector('shaped-text strong')?.textContent === 'bold' && document.querySelector('shaped-text').textContent.includes('<b>and</b> more')`)
		tab.await("its end", `!document.querySelector('live-text, [data-running]')`)
		tab.check("a call that has ended")
	}
}

// TestTwentyTabs: tabs that show Tasks share what a process reads: far fewer visibility queries than views.
func TestTwentyTabs(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	const tabs, views = 20, 5
	s := stack.Shared(t)
	options := stack.GatewayOptions{AdminKey: stack.AdminKey}
	worker := s.StartGateway(options)
	id := worker.Create(t.Context(), "sora-2-manual", "watched").ID
	testwait.Eventually(t, "the task is listed", stack.TaskTimeout, func() bool {
		status, list := worker.Admin(http.MethodGet, "/admin/tasks", "", nil)
		return status == http.StatusOK && strings.Contains(list, id)
	})
	options.Args = []string{"serve", "--worker=false"} // a worker looks for tasks on its own account
	g := s.StartGateway(options)
	anna := newPerson(t, g)
	anna.do(http.MethodPost, "/console/sign-in", url.Values{"key": {stack.AdminKey}})
	queries := func() int {
		n, _ := g.Metrics(t.Context()).Sum("temporal_request_total", "operation", "ListWorkflowExecutions")
		return int(n)
	}
	before := queries()
	var group sync.WaitGroup
	for range tabs {
		group.Go(func() {
			for range views {
				if text, err := anna.refresh("/console/tasks"); err != nil || !strings.Contains(text, id) {
					t.Errorf("a view lacks the task (%v)", err)
				}
			}
		})
	}
	group.Wait()
	if got, most := queries()-before, tabs*views/2; got < 1 || got > most {
		t.Errorf("%d visibility queries for %d views of %d tabs, want 1 to %d", got, tabs*views, tabs, most)
	}
}

// refresh reads a page as its live regions do. Several may at once.
func (p *person) refresh(path string) (string, error) {
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.base+path, http.NoBody)
	if err != nil {
		return "", err
	}
	req.Header.Set("Console-Refresh", "1")
	resp, err := p.http.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("answered %s", resp.Status)
	}
	return string(text), err
}
