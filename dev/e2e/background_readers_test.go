package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"modelrelay/activities"
	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/testwait"
	"modelrelay/workflows"
)

// streamReader reads the stream of a background response to its end. After each break it continues after its last event, at the next
// gateway.
type streamReader struct {
	task   string
	fronts []*stack.Gateway
	// path returns where the stream continues. Header, if not "", is the header with the id of the last event.
	path   func(events int, id string) string
	header string

	mu      sync.Mutex
	events  []string // without their ids
	ids     []string // "" for an event without one
	streams int      // that gateways have begun, one after each break
}

// taskReader returns a reader of a task's events. It continues by the header; with "" by the query.
func taskReader(task, header string, fronts ...*stack.Gateway) *streamReader {
	path := "/v1/tasks/" + task + "/events"
	return &streamReader{task: task, fronts: fronts, header: header, path: func(_ int, last string) string {
		if header != "" || last == "" {
			return path
		}
		return path + "?after=" + last
	}}
}

func (r *streamReader) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.events)
}

// last returns the last event, "" for none.
func (r *streamReader) last() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.events) == 0 {
		return ""
	}
	return r.events[len(r.events)-1]
}

// begun returns the number of streams that gateways have begun.
func (r *streamReader) begun() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.streams
}

// run reads until the task has ended and there is no further event.
func (r *streamReader) run(ctx context.Context) error {
	const again = 50 * time.Millisecond
	for turn := 0; ; turn++ {
		g, before := r.fronts[turn%len(r.fronts)], r.count()
		whole, err := r.read(ctx, g)
		if err != nil {
			return err
		}
		if whole && r.count() == before {
			var task background
			answer, err := g.Send(ctx, stack.Request{Path: "/v1/tasks/" + r.task})
			if err == nil && answer.Status == http.StatusOK && json.Unmarshal(answer.Body, &task) == nil && task.ended() {
				return nil
			}
		}
		if !pause(ctx, again) {
			return ctx.Err()
		}
	}
}

// read reads what one gateway sends, and reports whether the answer was whole. A gateway that is away, or without what it depends on, sends
// nothing. An answer that a client must not repeat is an error.
func (r *streamReader) read(ctx context.Context, g *stack.Gateway) (whole bool, err error) {
	id := ""
	if n := len(r.ids); n > 0 {
		id = r.ids[n-1]
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.URL()+r.path(len(r.events), id), nil)
	if err != nil {
		return false, err
	}
	req.Header.Set("Authorization", "Bearer "+stack.Token)
	if r.header != "" && id != "" {
		req.Header.Set(r.header, id)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false, nil // the gateway is away
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		if resp.StatusCode/100 == 4 {
			return false, fmt.Errorf("%s: %d %s", req.URL, resp.StatusCode, text)
		}
		return false, nil
	}
	r.mu.Lock()
	r.streams++
	r.mu.Unlock()
	from, event := bufio.NewReader(resp.Body), ""
	for id := ""; ; {
		line, err := from.ReadString('\n')
		switch {
		case err != nil:
			return err == io.EOF && event == "", nil // the stream broke off
		case strings.HasPrefix(line, "id: "):
			id = strings.TrimSpace(line[len("id: "):])
		case line != "\n":
			event += line
		case !strings.HasPrefix(event, ":"):
			r.mu.Lock()
			r.events, r.ids = append(r.events, event), append(r.ids, id)
			r.mu.Unlock()
			fallthrough
		default:
			id, event = "", ""
		}
	}
}

// TestReadersUnderKills: three readers at two gateways read one stream to its end, each in another way and the last one from late on, while
// the gateways, Temporal, Redis, which loses all, the store and the worker are killed in turn. All of them read the same events. Of a
// stream that the worker relays, its death is the end, with an error event. One that the vendor runs is whole.
func TestReadersUnderKills(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	for name, runs := range map[string]bool{"relayed": false, "run by the vendor": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			readUnderKills(t, runs)
		})
	}
}

// stepEvents is how many events of the stream pass between two kills.
const stepEvents = 8

func readUnderKills(t *testing.T, runs bool) {
	t.Helper()
	on := stack.New(t)
	o := stack.GatewayOptions{Relay: "grace: 1s"}
	if runs {
		o.Channels = on.Channel("main", "sk-upstream-main", "    background: upstream\n")
	}
	s := splitOf(on, o)
	o.Args = []string{"serve", "--worker=false"}
	fronts := []*stack.Gateway{s.Front, s.StartGateway(o)}
	var stalls []string
	for _, operation := range []string{"responses", "responses.get"} {
		stalls = append(stalls, s.Control.AddRule(map[string]any{"operation": operation, "action": "stall", "chunks": stepEvents}))
	}
	prompt := strings.Repeat("lighthouse ", 10*stepEvents)
	id := createAndLeave(t, s.Front, prompt)

	readers := []*streamReader{
		taskReader(id, "Last-Event-ID", fronts...),
		{task: id, fronts: []*stack.Gateway{fronts[1], fronts[0]}, path: func(n int, _ string) string {
			if n == 0 {
				return "/v1/responses/" + id + "?stream=true"
			}
			return fmt.Sprintf("/v1/responses/%s?stream=true&starting_after=%d", id, n-1)
		}},
		taskReader(id, "", fronts...),
	}
	ctx, cancel := context.WithTimeout(t.Context(), stack.CrashTimeout)
	defer cancel()
	var reading sync.WaitGroup
	read := func(r *streamReader) {
		reading.Go(func() {
			if err := r.run(ctx); err != nil {
				t.Errorf("after %d events: %v", r.count(), err)
			}
		})
	}
	early := readers[:2]
	for _, r := range early {
		read(r)
	}
	allowed := stepEvents
	kills := killsInTurn(s, fronts, runs)
	for i, kill := range kills {
		testwait.Eventually(t, fmt.Sprintf("the readers have %d events", allowed), stack.CrashTimeout, func() bool {
			return !slices.ContainsFunc(early, func(r *streamReader) bool { return r.count() < allowed })
		})
		if i == len(kills)-1 { // Redis has lost events that the archive gets within seconds; without them and their worker they are lost
			testwait.Eventually(t, "the archive has the events", stack.CrashTimeout, func() bool { return archivedEvents(s.Stack, id) >= allowed })
		}
		allowed += stepEvents
		for _, stall := range stalls {
			s.Control.Move(stall, allowed) // the next events are on their way
		}
		kill()
	}
	read(readers[2])
	s.Control.Clear()
	reading.Wait()

	want := "completed"
	if !runs {
		want = "failed"
	}
	ended := awaitBackground(t, s.Front, "", id)
	if ended.Status != want || ended.Attempts != 1 || !runs && ended.Error.Code != workflows.CodeUpstreamUnknown {
		t.Errorf("ended as %+v with %+v, want %s", ended, ended.Error, want)
	}
	result := s.Front.Call(t, stack.Request{Path: "/v1/tasks/" + id + "/result"})
	whole := strings.SplitAfter(string(result.Body), "\n\n")
	whole = whole[:len(whole)-1]
	for i, r := range readers {
		if got := strings.Join(r.events, "\n") + "\n"; got != string(result.Body) {
			t.Errorf("reader %d has %d events, the result %d:\n%s\nwant\n%s", i+1, len(r.events), len(whole), got, result.Body)
		}
		for n, id := range r.ids {
			if id != "" && id != fmt.Sprintf("%s-%d", r.task, n) {
				t.Errorf("reader %d: event %d has the id %s", i+1, n, id)
			}
		}
	}
	for n, event := range whole {
		if !strings.Contains(event, fmt.Sprintf(`"sequence_number":%d`, n)) && (runs || n < len(whole)-1) {
			t.Errorf("event %d is %s", n, event)
		}
	}
	if last := whole[len(whole)-1]; runs && !strings.Contains(last, "You said: "+strings.TrimSpace(prompt)) || !runs &&
		!strings.Contains(last, "error") || len(whole) < allowed-stepEvents {
		t.Errorf("%d events, of which the last is %s", len(whole), last)
	}
	if sent := len(requestsTo(s.Stack, "responses")); sent != 1 {
		t.Errorf("sent %d times", sent)
	}
}

// archivedEvents returns how many events of a running stream the archive has. The name of a part has the numbers of its events.
func archivedEvents(s *stack.Stack, id string) (n int) {
	for object, err := range s.Archive().List(s.T.Context(), activities.TaskPrefix(id)) {
		var first, end int
		if _, name, found := strings.Cut(object.Key, "/events/events/"); err == nil && found {
			if _, err := fmt.Sscanf(name, "%d-%d-", &first, &end); err != nil {
				s.T.Errorf("the part %s: %v", object.Key, err)
			}
		}
		n = max(n, end)
	}
	return n
}

// createAndLeave creates a streamed response in the background, and leaves its stream after the first event.
func createAndLeave(t *testing.T, g *stack.Gateway, prompt string) (id string) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"model": "gpt-4o", "input": prompt, "background": true, "stream": true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.URL()+"/v1/responses", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+stack.Token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var created struct{ Response struct{ ID string } }
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			if err := json.Unmarshal([]byte(data), &created); err != nil || created.Response.ID == "" {
				t.Fatalf("the first event is %s, %v", data, err)
			}
			return created.Response.ID
		}
	}
	t.Fatalf("no event: %d", resp.StatusCode)
	return ""
}

// killsInTurn are kills of what a stream depends on, each with the return of its victim. That of the worker of a relayed stream is the
// last.
func killsInTurn(s *stack.Split, fronts []*stack.Gateway, runs bool) (kills []func()) {
	worker := func() { s.Worker.Kill(); s.RestartWorker() }
	front := func(i int) func() { return func() { fronts[i].Kill(); fronts[i].Start() } }
	kills = append(kills, front(0), func() { s.Temporal.Kill(); s.StartTemporal(); s.Temporal.AwaitReady(s.T) })
	if runs {
		kills = append(kills, worker)
	}
	kills = append(kills,
		func() {
			s.Redis.Kill()
			s.StartRedis()
			s.Redis.AwaitReady(s.T)
			if err := s.RedisClient("").FlushAll(s.T.Context()).Err(); err != nil {
				s.T.Error(err)
			}
		},
		func() { s.S3.Kill(); s.StartS3(); s.S3.AwaitReady(s.T) },
		front(1),
	)
	if !runs {
		kills = append(kills, worker)
	}
	return kills
}
