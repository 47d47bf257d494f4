package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/taskindex"
	"modelrelay/storage/testwait"
	"modelrelay/workflows"
)

// streamedCall is a streamed background call whose upstream sends as many events as the test allows. Two clients read it.
type streamedCall struct {
	*stack.Split
	id, stall string
	readers   []*streamReader
	reading   sync.WaitGroup
}

// startStreamed starts a call and returns when both clients have its first events. With none, the upstream does not answer.
func startStreamed(t *testing.T, s *stack.Split, events int) *streamedCall {
	t.Helper()
	rule := map[string]any{"operation": "chat", "action": "stall", "chunks": events}
	if events == 0 {
		rule = map[string]any{"operation": "chat", "action": "hang", "accept": true}
	}
	c := &streamedCall{Split: s, stall: s.Control.AddRule(rule)}
	r := chatIn(strings.Repeat("lighthouse ", 100)) // more events than a test allows
	r.Body = strings.Replace(r.Body.(string), "{", `{"stream":true,`, 1)
	c.id = startBackground(t, s.Front, r).ID
	c.readers = []*streamReader{taskReader(c.id, "Last-Event-ID", s.Front), taskReader(c.id, "", s.Front)}
	t.Cleanup(c.reading.Wait)
	for _, r := range c.readers {
		c.reading.Go(func() {
			if err := r.run(t.Context()); err != nil {
				t.Errorf("after %d events: %v", r.count(), err)
			}
		})
	}
	if events == 0 {
		s.Control.Await("chat", "gpt-4o", "accepted", 1)
	}
	c.awaitReaders(fmt.Sprintf("%d events", events), func(r *streamReader) bool { return r.count() >= events })
	return c
}

// awaitReaders waits until both readers have something.
func (c *streamedCall) awaitReaders(what string, have func(r *streamReader) bool) {
	c.T.Helper()
	testwait.Eventually(c.T, "the readers have "+what, stack.TaskTimeout, func() bool { return have(c.readers[0]) && have(c.readers[1]) })
}

// allow lets the upstream send n events in all, and returns when the readers have them.
func (c *streamedCall) allow(n int) {
	c.T.Helper()
	c.Control.Move(c.stall, n)
	c.awaitReaders(fmt.Sprintf("%d events", n), func(r *streamReader) bool { return r.count() >= n })
}

// wantEnd waits for the end of the call. It was sent so many times, and its readers have what its result has, with last in the last event.
func (c *streamedCall) wantEnd(status, last string, sent int) {
	t := c.T
	t.Helper()
	ended := awaitBackground(t, c.Front, "", c.id)
	if ended.Status != status || (ended.Error == nil) != (status == "completed") || ended.Attempts != sent ||
		ended.Error != nil && ended.Error.Code != workflows.CodeUpstreamUnknown {
		t.Errorf("ended as %+v with %+v, want %s", ended, ended.Error, status)
	}
	if n := len(requestsTo(c.Stack, "chat")); n != sent {
		t.Errorf("the upstream received %d requests, want %d", n, sent)
	}
	c.reading.Wait()
	result := c.Front.Call(t, stack.Request{Path: "/v1/tasks/" + c.id + "/result"})
	for i, r := range c.readers {
		if !strings.Contains(r.last(), last) {
			t.Errorf("reader %d has %d events, the last without %s: %s", i+1, len(r.events), last, r.last())
		}
		if got := strings.Join(r.events, "\n") + "\n"; result.Status == http.StatusOK && got != string(result.Body) {
			t.Errorf("reader %d has %d events:\n%s\nthe result is\n%s", i+1, len(r.events), got, result.Body)
		}
	}
}

// followSending returns whether a worker has reported to another one that it sends the call of the task.
func followSending(s *stack.Stack, id string) (sending func() bool) {
	s.T.Helper()
	changes, reported, ready := taskindex.NewChanges(s.RedisClient("")), new(atomic.Bool), make(chan struct{})
	var following sync.WaitGroup
	following.Go(func() {
		changes.Follow(s.T.Context(), ready, func(change taskindex.Change) {
			if change.TaskID == id && change.Report == taskindex.Sending {
				reported.Store(true)
			}
		})
	})
	s.T.Cleanup(following.Wait)
	<-ready
	return reported.Load
}

// TestOtherWorkerContinuesStream: one of two workers relays a stream and is lost. If it is killed, the other worker finds its claim: the
// rule decides, and a stream with stored events ends with an error event. If only its connection to Temporal is cut, it reports over Redis
// that it sends the call. Then the stream is whole, and the call is sent once.
func TestOtherWorkerContinuesStream(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	for name, test := range map[string]struct {
		rule   string
		events int // that the readers have before
		cut    bool
		status string
		sent   int
	}{
		"killed, repeat":                {rule: "repeat", status: "completed", sent: 2},
		"killed, fail":                  {rule: "fail", status: "failed", sent: 1},
		"killed after events, repeat":   {rule: "repeat", events: 3, status: "failed", sent: 1},
		"without Temporal":              {rule: "repeat", cut: true, status: "completed", sent: 1},
		"without Temporal after events": {rule: "repeat", events: 3, cut: true, status: "completed", sent: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := stack.GatewayOptions{More: "background: {lost_answer: " + test.rule + "}\n", Relay: "grace: 1s"}
			s := splitOf(stack.Shared(t), o)
			c := startStreamed(t, s, test.events)
			sending := followSending(s.Stack, c.id)
			s.StartWorker(o)
			if test.cut {
				s.ToTemporal.Cut()
				testwait.Eventually(t, "the first worker reports that it sends the call", stack.CrashTimeout, sending)
				if test.events > 0 { // the other worker leaves the stream alone
					c.allow(test.events + 1)
				}
			} else {
				s.Worker.Kill()
			}
			s.Control.Clear()
			last := "[DONE]"
			if test.status == "failed" {
				last = "error"
			}
			c.wantEnd(test.status, last, test.sent)
			if !test.cut && sending() {
				t.Error("a worker reports that it sends the call of a killed one")
			}
		})
	}
}

// TestTemporalAwayDuringStream: Temporal is away for longer than a call may be without a heartbeat. Meanwhile the readers receive each
// event in the stream that they have begun. The call ends complete, whether its answer ends before Temporal is back or after.
func TestTemporalAwayDuringStream(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	const away, every = 30 * time.Second, time.Second
	for name, meanwhile := range map[string]bool{"the answer ends meanwhile": true, "the answer ends later": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 3
			c := startStreamed(t, newCallSplit(stack.New(t), "lost_answer: repeat"), n)
			c.Temporal.Kill()
			for began := time.Now(); time.Since(began) < away && pause(t.Context(), every); {
				n++
				c.allow(n)
			}
			for i, r := range c.readers {
				if r.begun() != 1 {
					t.Errorf("reader %d has %d streams", i+1, r.begun())
				}
			}
			if meanwhile {
				c.Control.Clear()
				c.awaitReaders("the last event", func(r *streamReader) bool { return strings.Contains(r.last(), "[DONE]") })
			}
			c.StartTemporal()
			c.Temporal.AwaitReady(t)
			if !meanwhile {
				c.allow(n + 1)
				c.Control.Clear()
			}
			c.wantEnd("completed", "[DONE]", 1)
		})
	}
}
