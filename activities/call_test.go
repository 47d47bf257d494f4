package activities_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/api/serviceerror"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/providers/sse"
	"modelrelay/storage"
	"modelrelay/storage/archive"
	"modelrelay/storage/eventlog"
	"modelrelay/storage/fair"
	"modelrelay/storage/ledger"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/taskindex"
	"modelrelay/storage/testwait"
)

// fakeCaller serves calls by serve.
type fakeCaller struct {
	serve func(w http.ResponseWriter, r *http.Request, run *activities.CallRun)
	// sent counts the requests that an upstream would have received.
	sent atomic.Int32
}

func (c *fakeCaller) ServeCall(w http.ResponseWriter, r *http.Request, run *activities.CallRun) {
	c.serve(w, r, run)
}

func (c *fakeCaller) FaultEvents(activities.StagedCall, *providers.Fault, int64) []byte { return nil }

// send is what the relay does with a channel.
func (c *fakeCaller) send(r *http.Request, run *activities.CallRun) bool {
	if err := run.Begin(r.Context(), "main"); err != nil {
		run.Fault = providers.AsFault(err)
		return false
	}
	c.sent.Add(1)
	return true
}

// answers serves every call with a status and a body.
func (c *fakeCaller) answers(status int, body string) *fakeCaller {
	c.serve = func(w http.ResponseWriter, r *http.Request, run *activities.CallRun) {
		if !c.send(r, run) {
			return
		}
		run.Sent()
		run.Usage, run.Cost, run.Priced = providers.Usage{Input: 3, Output: 4}, 70, true
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
	return c
}

// loses serves every call with an answer that breaks off.
func (c *fakeCaller) loses() *fakeCaller {
	c.serve = func(_ http.ResponseWriter, r *http.Request, run *activities.CallRun) {
		if c.send(r, run) {
			run.Fault = &providers.Fault{Kind: providers.Upstream, Message: "broken"}
		}
	}
	return c
}

// answersLate serves each call with "answer N". begun is closed when the first one is sent, and its answer waits for finish.
func (c *fakeCaller) answersLate() (begun <-chan struct{}, finish func()) {
	first, finished := make(chan struct{}), make(chan struct{})
	c.serve = func(w http.ResponseWriter, r *http.Request, run *activities.CallRun) {
		if !c.send(r, run) {
			return
		}
		n := c.sent.Load()
		if n == 1 {
			close(first)
			select {
			case <-finished:
			case <-r.Context().Done():
				run.Fault = &providers.Fault{Kind: providers.Canceled}
				return
			}
		}
		_, _ = fmt.Fprintf(w, "answer %d", n) // of memory
	}
	return first, sync.OnceFunc(func() { close(finished) })
}

// calls are the tries of one call over one archive.
type calls struct {
	archive *storagetest.MemoryArchive
	caller  *fakeCaller
	relayer activities.Relayer
	in      activities.RelayInput
	// cancel ends the activity's context as Temporal does; closing stop stops the worker. Of the latest try.
	cancel context.CancelFunc
	stop   chan struct{}
	// progress is what the tries before reported, beats returns the heartbeats of the latest try.
	progress activities.CallProgress
	beats    func() []activities.CallProgress
}

func newCalls(t *testing.T, caller *fakeCaller) *calls {
	t.Helper()
	c := &calls{archive: storagetest.NewMemoryArchive(), caller: caller, stop: make(chan struct{})}
	quiet := slog.New(slog.DiscardHandler)
	c.relayer = activities.Relayer{
		Listing: &activities.Listing{Log: quiet}, Caller: caller, Objects: c.archive, Slots: activities.CallShares(2), MaxOutput: 1 << 10,
		Repeats: func(bool, string) bool { return true },
		Running: new(activities.RunningCalls), Log: quiet,
	}
	body := `{"model":"gpt-4o"}`
	if _, err := c.archive.Put(t.Context(), "staged/body", bytes.NewReader([]byte(body)), int64(len(body)), archive.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	c.in = activities.RelayInput{
		TaskID: "call_1", Incarnation: "one", Token: "demo", Model: "gpt-4o", Deadline: time.Now().Add(time.Hour), Reservation: "r",
		Call: activities.StagedCall{
			Method: http.MethodPost, Path: "/v1/chat/completions", Body: "staged/body", Size: int64(len(body)),
			Amount: 1000,
		},
	}
	return c
}

// try runs the activity once. The claims of the tries of one environment have one owner; number distinguishes them as Temporal does.
func (c *calls) try(t *testing.T) (activities.Answered, error) {
	t.Helper()
	r := c.worker(t, c.relayer)
	r.env.SetHeartbeatDetails(c.progress)
	c.beats = beats[activities.CallProgress](t, r)
	c.cancel = r.cancelable(t)
	return do[activities.Answered](t, r, r.acts.Relayer.Relay, c.in)
}

// worker returns a worker with the relayer.
func (c *calls) worker(t *testing.T, relayer activities.Relayer) *testEnv {
	t.Helper()
	r := newTestEnv(t, nil)
	r.acts.Relayer = &relayer
	r.env.RegisterActivity(&relayer)
	r.env.SetWorkerStopChannel(c.stop)
	return r
}

// dies gives a claim to a try whose worker died.
func (c *calls) dies(t *testing.T, n int) {
	t.Helper()
	c.give(t, n, fmt.Sprintf("dead %d", n))
}

// give gives a claim to an owner.
func (c *calls) give(t *testing.T, n int, owner string) {
	t.Helper()
	begun := activities.SubmitInput{TaskID: c.in.TaskID, Incarnation: c.in.Incarnation, Attempt: n}.BegunObject()
	if err := c.archive.Delete(t.Context(), begun); err != nil {
		t.Fatal(err)
	}
	if _, err := c.archive.Claim(t.Context(), begun, owner); err != nil {
		t.Fatal(err)
	}
}

// buries changes the owner of the claim of a real try; the rest of the claim stays.
func (c *calls) buries(t *testing.T, n int) {
	t.Helper()
	begun := activities.SubmitInput{TaskID: c.in.TaskID, Incarnation: c.in.Incarnation, Attempt: n}.BegunObject()
	body, err := c.archive.Open(t.Context(), begun)
	if err != nil {
		t.Fatal(err)
	}
	owner, _ := io.ReadAll(body) // of memory
	owner = append([]byte("dead-"), owner...)
	if _, err := c.archive.Put(t.Context(), begun, bytes.NewReader(owner), int64(len(owner)), archive.PutOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestRelayStoresTheAnswer(t *testing.T) {
	t.Parallel()
	c := newCalls(t, new(fakeCaller).answers(http.StatusOK, `{"ok":true}`))
	got, err := c.try(t)
	if err != nil || got.Status != http.StatusOK || got.Failure != nil || got.Output == nil || got.Output.Size != 11 ||
		got.Output.ContentType != "application/json" {
		t.Fatalf("got %+v, %v", got, err)
	}
	if got.Attempts != 1 || got.Channel != "main" || got.StartedAt.IsZero() || got.Lost != 0 || got.Cost != 70 || got.Usage.Output != 4 ||
		!got.Priced || got.Copy != nil {
		t.Errorf("got %+v", got)
	}
	object, err := c.archive.Open(t.Context(), got.Output.Object)
	if err != nil {
		t.Fatal(err)
	}
	if raw, _ := io.ReadAll(object); string(raw) != `{"ok":true}` {
		t.Errorf("stored %q", raw)
	}
	c.dies(t, 1) // before it reported the answer
	again, err := c.try(t)
	if err != nil || again.Output == nil || again.Output.Object != got.Output.Object || again.Cost != got.Cost || c.caller.sent.Load() != 1 {
		t.Errorf("the second try has %+v, %v; sent %d times, want the stored answer", again, err, c.caller.sent.Load())
	}
}

func TestRelayStoresFailures(t *testing.T) {
	t.Parallel()
	c := newCalls(t, new(fakeCaller).answers(http.StatusBadRequest, `{"error":{"code":"context_length_exceeded","message":"too long"}}`))
	got, err := c.try(t)
	if err != nil || got.Status != http.StatusBadRequest || got.Failure == nil || got.Failure.Code != "context_length_exceeded" ||
		got.Failure.Message != "too long" || got.Output == nil {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestRelayFailureIsShort: a workflow's result takes two megabytes, whatever an upstream writes.
func TestRelayFailureIsShort(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3<<20)
	caller := new(fakeCaller).answers(http.StatusOK, "{}")
	serve := caller.serve
	caller.serve = func(w http.ResponseWriter, r *http.Request, run *activities.CallRun) {
		w.Header().Set("X-Relay-Dropped", long)
		w.Header().Set("X-Relay-Channel", "main")
		serve(w, r, run)
		run.Failure = &providers.VideoFailure{Code: long, Message: long}
	}
	c := newCalls(t, caller)
	got, err := c.try(t)
	raw, _ := json.Marshal(got) // plain values always marshal
	if err != nil || got.Failure == nil || len(raw) > 8<<10 || got.Header.Get("X-Relay-Channel") != "main" {
		t.Errorf("the result has %d bytes: %.200s, %v", len(raw), raw, err)
	}
}

// TestOnlyEvents: a stream is stored without the comments and the blank lines between its events, and each event is whole.
func TestOnlyEvents(t *testing.T) {
	t.Parallel()
	for stream, want := range map[string]string{
		"data: a\n\ndata: b\n\n":                              "data: a\n\ndata: b\n\n",
		"\n\n\ndata: a\n\n\n\n\n":                             "data: a\n\n",
		": ping\n\n: ping\n\nevent: x\ndata: a\n\n: ping\n\n": "event: x\ndata: a\n\n",
		"data: a\n: within\ndata: b\n\n":                      "data: a\n: within\ndata: b\n\n",
		"\r\n\r\ndata: a\r\n\r\n\r\n":                         "data: a\r\n\r\n",
		"data: a\rdata: b\r\rdata: c\r\r":                     "data: a\rdata: b\r\rdata: c\r\r",
		"data: a\n\ndata: [DONE]\n":                           "data: a\n\ndata: [DONE]\n\n",
		"data: [DONE]":                                        "data: [DONE]\n\n",
		strings.Repeat("\n", 1000):                            "",
	} {
		if got := activities.OnlyEvents(stream); got != want {
			t.Errorf("%q: got %q, want %q", stream, got, want)
		}
	}
}

// TestCallShares: the hanging calls of one token leave slots to others.
func TestCallShares(t *testing.T) {
	t.Parallel()
	for total, share := range map[int64]int{1: 1, 2: 1, 6: 5, 1000: 750} {
		slots := activities.CallShares(total)
		taken := 0
		for slots.Try("hostile", 1) == nil {
			taken++
		}
		if taken != share || (slots.Try("other", 1) == nil) != (total > 1) {
			t.Errorf("of %d slots one token takes %d, want %d", total, taken, share)
		}
	}
}

// TestSmallWorkerHasALine: the calls that wait for the only slot of a worker get it lane by lane.
func TestSmallWorkerHasALine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slots := activities.CallShares(1)
		_ = slots.Try("first", 1)
		got := make(chan string)
		for _, name := range []string{"low", "normal", "high"} {
			go func() {
				ask := fair.Ask[string]{Key: name, Lane: activities.LaneIndex(name)}
				if _, err := fair.Wait(t.Context(), ask, slots); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				got <- name
			}()
			synctest.Wait()
		}
		held := "first"
		for _, want := range []string{"high", "normal", "low"} {
			slots.Release(held, 1)
			if held = <-got; held != want {
				t.Errorf("got %s, want %s", held, want)
			}
		}
	})
}

// TestRelayRule: a lost answer is requested once more under the rule repeat, and never under fail.
func TestRelayRule(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		repeats bool
		dead    int // earlier tries whose workers died
		loses   bool
		sent    int32
		lost    int
		ok      bool
	}{
		"worker died, repeat":                  {repeats: true, dead: 1, sent: 1, lost: 1, ok: true},
		"worker died, fail":                    {dead: 1, sent: 0, lost: 1},
		"two workers died, repeat":             {repeats: true, dead: 2, sent: 0, lost: 2},
		"connection broke, repeat":             {repeats: true, loses: true, sent: 2, lost: 2},
		"connection broke, fail":               {loses: true, sent: 1, lost: 1},
		"worker died, connection broke":        {repeats: true, dead: 1, loses: true, sent: 1, lost: 2},
		"nothing lost":                         {repeats: true, sent: 1, ok: true},
		"worker died, connection broke, fail":  {dead: 1, loses: true, sent: 0, lost: 1},
		"two workers died, connection, repeat": {repeats: true, dead: 2, loses: true, sent: 0, lost: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			caller := new(fakeCaller).answers(http.StatusOK, "{}")
			if test.loses {
				caller.loses()
			}
			c := newCalls(t, caller)
			c.relayer.Repeats = func(bool, string) bool { return test.repeats }
			for n := range test.dead {
				c.dies(t, n+1)
			}
			got, err := c.try(t)
			if err != nil {
				t.Fatal(err)
			}
			if caller.sent.Load() != test.sent || got.Lost != test.lost {
				t.Errorf("sent %d times and lost %d, want %d and %d", caller.sent.Load(), got.Lost, test.sent, test.lost)
			}
			if want := test.dead + int(test.sent); got.Attempts != want {
				t.Errorf("%d attempts, want %d", got.Attempts, want)
			}
			if ok := got.Failure == nil && got.Status == http.StatusOK; ok != test.ok {
				t.Errorf("got %+v with %+v", got, got.Failure)
			}
			want := int64(test.lost) * 1000 // each lost attempt costs its reservation
			if test.ok {
				want += 70
			} else if got.Failure == nil || got.Failure.Code != "upstream_unknown" || !got.Unknown {
				t.Errorf("got %+v with %+v, want upstream_unknown", got, got.Failure)
			}
			if got.Cost != want {
				t.Errorf("cost %d, want %d", got.Cost, want)
			}
		})
	}
}

// TestRelayRuleOfChannel: the rule is that of the channel that lost the answer, although only the claim of the dead worker names it.
func TestRelayRuleOfChannel(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		channels []string // in the order of the attempts of the lost try
		repeated bool
	}{
		"repeat": {channels: []string{"main"}, repeated: true}, "fail": {channels: []string{"dear one"}},
		"fell over to repeat": {channels: []string{"dear one", "main"}, repeated: true},
		"fell over to fail":   {channels: []string{"main", "dear one"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCalls(t, new(fakeCaller))
			c.relayer.Repeats = func(_ bool, channel string) bool { return channel == "main" }
			c.caller.serve = func(_ http.ResponseWriter, r *http.Request, run *activities.CallRun) {
				for _, channel := range test.channels {
					if err := run.Begin(r.Context(), channel); err != nil {
						t.Error(err)
					}
				}
				close(c.stop) // the worker ends with the answer
				<-r.Context().Done()
				run.Fault = providers.AsFault(context.Cause(r.Context()))
			}
			first, err := c.try(t)
			if ended := err == nil; ended == test.repeated {
				t.Errorf("the stopped worker has %+v, %v", first, err)
			}
			c.buries(t, 1)
			c.stop = make(chan struct{})
			c.caller.answers(http.StatusOK, "{}")
			second, err := c.try(t)
			want := test.channels[len(test.channels)-1]
			if ok := err == nil && second.Failure == nil; ok != test.repeated || !ok && second.Channel != want || ok && second.Channel != "main" {
				t.Errorf("another worker has %+v with %+v, %v", second, second.Failure, err)
			}
		})
	}
}

// losingArchive loses the replies to claims whose keys end so.
type losingArchive struct {
	*storagetest.MemoryArchive

	suffix string
}

func (a losingArchive) Claim(ctx context.Context, key, owner string) (string, error) {
	holder, err := a.MemoryArchive.Claim(ctx, key, owner)
	if strings.HasSuffix(key, a.suffix) {
		return "", storage.ErrUnavailable
	}
	return holder, err
}

// TestRelayLostClaim: a try whose claim gets no answer sends nothing, and the next try does not count it as lost.
func TestRelayLostClaim(t *testing.T) {
	t.Parallel()
	// losing runs a try that loses the reply to the n-th claim, and returns the owner of the claim as the third try of the same run.
	losing := func(t *testing.T, c *calls, n int) string {
		t.Helper()
		key := activities.SubmitInput{TaskID: c.in.TaskID, Incarnation: c.in.Incarnation, Attempt: n}.BegunObject()
		c.relayer.Objects = losingArchive{c.archive, key}
		_, err := c.try(t)
		if err == nil {
			t.Fatal("it ended")
		}
		if r, retried, _ := fault(t, err); !retried || r.Accepted != providers.NotAccepted {
			t.Errorf("got %+v, retried %t", r, retried)
		}
		c.relayer.Objects = c.archive
		owner, err := c.archive.Claim(t.Context(), key, "another")
		if err != nil {
			t.Fatal(err)
		}
		run, _, _ := strings.Cut(owner, " ")
		return run + " 3 main"
	}
	last := func(c *calls) activities.CallProgress { return c.beats()[len(c.beats())-1] }
	t.Run("sent later", func(t *testing.T) {
		t.Parallel()
		c := newCalls(t, new(fakeCaller).answers(http.StatusOK, "{}"))
		owner := losing(t, c, 1)
		if got := last(c); !slices.Equal(got.Unsent, []int32{1}) || c.caller.sent.Load() != 0 {
			t.Errorf("reported %+v, sent %d times", got, c.caller.sent.Load())
		}
		c.give(t, 1, owner)
		c.progress.Unsent = []int32{3}
		if got, err := c.try(t); err != nil || got.Status != http.StatusOK || got.Lost != 0 || got.Cost != 70 || c.caller.sent.Load() != 1 {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	t.Run("lost later", func(t *testing.T) {
		t.Parallel()
		c := newCalls(t, new(fakeCaller).answers(http.StatusOK, "{}"))
		c.give(t, 1, losing(t, c, 1))
		c.dies(t, 2)
		c.dies(t, 3)
		c.progress.Unsent = []int32{3}
		if got, err := c.try(t); err != nil || !got.Unknown || got.Lost != 2 || got.Cost != 2000 || c.caller.sent.Load() != 0 {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	t.Run("never sent", func(t *testing.T) {
		t.Parallel()
		c := newCalls(t, new(fakeCaller).answers(http.StatusOK, "{}"))
		c.give(t, 1, losing(t, c, 1))
		c.progress.Unsent, c.in.Deadline = []int32{3}, time.Now().Add(-time.Second)
		if _, err := c.try(t); err == nil {
			t.Error("it counts as lost")
		} else if r, _, _ := fault(t, err); !r.Deadline || r.Accepted != providers.NotAccepted {
			t.Errorf("got %+v", r)
		}
		c.progress, c.in.Deadline = activities.CallProgress{}, time.Now().Add(time.Hour)
		if _, err := c.try(t); err != nil || c.caller.sent.Load() != 0 { // by a worker whose clock is late
			t.Errorf("sent %d times, %v", c.caller.sent.Load(), err)
		}
	})
	t.Run("after an answer that this try lost", func(t *testing.T) {
		t.Parallel()
		c := newCalls(t, new(fakeCaller).loses())
		losing(t, c, 2)
		if got := last(c); len(got.Unsent) != 0 || c.caller.sent.Load() != 1 {
			t.Errorf("reported %+v, sent %d times", got, c.caller.sent.Load())
		}
	})
}

// TestRelayRepeatsWithinTheBudget: a repeat has a reservation of its own.
func TestRelayRepeatsWithinTheBudget(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		budget float64
		sent   int32
	}{"enough": {budget: 1, sent: 1}, "spent": {budget: 0.0000015, sent: 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCalls(t, new(fakeCaller).answers(http.StatusOK, "{}"))
			budgets := ledger.NewBudgets(storagetest.Redis(t), 0)
			c.relayer.Budgets, c.in.Call.Budget = budgets, test.budget
			if err := budgets.Reserve(t.Context(), ledger.Estimate{
				ID: "r", Token: "demo", Model: "gpt-4o", Budget: test.budget,
				Amount: 1000,
			}); err != nil {
				t.Fatal(err)
			}
			c.dies(t, 1)
			got, err := c.try(t)
			if err != nil || c.caller.sent.Load() != test.sent || (got.Failure == nil) != (test.sent == 1) {
				t.Errorf("got %+v with %+v, %v; sent %d times", got, got.Failure, err, c.caller.sent.Load())
			}
			if held, err := budgets.Reservations(t.Context(), "demo"); err != nil || len(held) != 1+int(test.sent) {
				t.Errorf("got %d reservations, %v", len(held), err)
			}
		})
	}
}

// TestRelayWaits: nothing was sent, so the call is tried again later.
func TestRelayWaits(t *testing.T) {
	t.Parallel()
	refuses := func(fault *providers.Fault) *fakeCaller {
		return &fakeCaller{serve: func(_ http.ResponseWriter, _ *http.Request, run *activities.CallRun) { run.Fault = fault }}
	}
	for name, test := range map[string]struct {
		caller  *fakeCaller
		prepare func(*calls)
	}{
		"no channel":        {caller: refuses(&providers.Fault{Kind: providers.Overloaded, Accepted: providers.NotAccepted})},
		"no channel has it": {caller: refuses(&providers.Fault{Kind: providers.ModelNotFound, Accepted: providers.NotAccepted})},
		"tokens cannot be read": {caller: &fakeCaller{serve: func(w http.ResponseWriter, _ *http.Request, _ *activities.CallRun) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}}},
		"archive away": {caller: new(fakeCaller).answers(http.StatusOK, "{}"), prepare: func(c *calls) {
			c.archive.Fail = func(operation, _ string) error {
				if operation == "put" {
					return storage.ErrUnavailable
				}
				return nil
			}
		}},
		"no slot": {caller: new(fakeCaller).answers(http.StatusOK, "{}"), prepare: func(c *calls) {
			c.relayer.Slots = fair.New[string](fair.Bounds{})
		}},
		"worker stops": {caller: new(fakeCaller).answers(http.StatusOK, "{}"), prepare: func(c *calls) {
			c.relayer.Slots = activities.CallShares(1)
			_ = c.relayer.Slots.Try("another", 1)
			close(c.stop)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCalls(t, test.caller)
			if test.prepare != nil {
				test.prepare(c)
			}
			_, err := c.try(t)
			if err == nil {
				t.Fatal("it ended")
			}
			if r, retried, delay := fault(t, err); !retried || delay <= 0 || r.Accepted != providers.NotAccepted || c.caller.sent.Load() != 0 {
				t.Errorf("got %+v, retried %t after %v, sent %d times", r, retried, delay, c.caller.sent.Load())
			}
		})
	}
}

// TestRelayQueuePosition: a call that waits for a slot reports its place, by lane, weight and age.
func TestRelayQueuePosition(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, test := range map[string]struct {
		in   func(*activities.RelayInput)
		want int
	}{
		"another token came before": {in: func(*activities.RelayInput) {}, want: 2},
		"an earlier lane":           {in: func(in *activities.RelayInput) { in.Lane = "high" }, want: 1},
		"a later lane":              {in: func(in *activities.RelayInput) { in.Lane = "low" }, want: 2},
		"an older call of its token": {in: func(in *activities.RelayInput) {
			in.Token, in.Entry.Created = "other", now.Add(time.Second)
		}, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCalls(t, new(fakeCaller).answers(http.StatusOK, "{}"))
			c.relayer.Slots = fair.New[string](fair.Bounds{Line: 1, Lines: 1})
			ctx, leave := context.WithCancel(t.Context())
			var other sync.WaitGroup
			defer other.Wait()
			defer leave()
			other.Go(func() { _, _ = fair.Wait(ctx, fair.Ask[string]{Key: "other", Lane: 1, Due: now}, c.relayer.Slots) })
			testwait.Eventually(t, "the other waits", time.Minute, func() bool { return c.relayer.Slots.Waiting() == 1 })
			c.in.Entry.Created = now
			test.in(&c.in)
			if _, err := c.try(t); err == nil {
				t.Fatal("it ended")
			}
			for _, beat := range c.beats() {
				if beat.Position != test.want {
					t.Errorf("got place %d, want %d", beat.Position, test.want)
				}
			}
			if len(c.beats()) == 0 {
				t.Error("it reports no place")
			}
		})
	}
}

// TestRelayCancels: a call whose token may no longer be used is cancelled before it is sent.
func TestRelayCancels(t *testing.T) {
	t.Parallel()
	c := newCalls(t, &fakeCaller{serve: func(w http.ResponseWriter, _ *http.Request, _ *activities.CallRun) {
		w.WriteHeader(http.StatusUnauthorized)
	}})
	if got, err := c.try(t); err != nil || !got.Cancelled || got.Cost != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
	c = newCalls(t, c.caller)
	c.dies(t, 1)
	if got, err := c.try(t); err != nil || !got.Cancelled || got.Cost != 1000 || got.Lost != 1 {
		t.Errorf("after a lost answer: got %+v, %v", got, err)
	}
}

// hangs serves every call until its context ends, as a synchronous call whose client leaves.
func hangs(began func()) *fakeCaller {
	c := new(fakeCaller)
	c.serve = func(_ http.ResponseWriter, r *http.Request, run *activities.CallRun) {
		if !c.send(r, run) {
			return
		}
		began()
		<-r.Context().Done()
		run.Fault, run.Cost = providers.AsFault(context.Cause(r.Context())), 30
	}
	return c
}

// TestRelayEnds: the ways in which a running call ends without an answer.
func TestRelayEnds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end   func(*calls)
		check func(t *testing.T, c *calls, got activities.Answered, err error)
	}{
		"cancelled": {end: func(c *calls) { c.cancel() }, check: func(t *testing.T, _ *calls, got activities.Answered, err error) {
			t.Helper()
			if err != nil || !got.Cancelled || got.Unknown || got.Cost != 30 || got.Attempts != 1 {
				t.Errorf("got %+v, %v", got, err)
			}
		}},
		"worker stopped": {end: func(c *calls) { close(c.stop) }, check: func(t *testing.T, c *calls, _ activities.Answered, err error) {
			t.Helper()
			if err == nil {
				t.Fatal("it ended")
			}
			if _, retried, _ := fault(t, err); !retried {
				t.Error("it is not tried again")
			}
			c.caller.answers(http.StatusOK, "{}")
			c.dies(t, 1)
			c.stop = make(chan struct{})
			if got, err := c.try(t); err != nil || got.Status != http.StatusOK || got.Lost != 1 || got.Cost != 1070 || c.caller.sent.Load() != 2 {
				t.Errorf("another worker: got %+v, %v", got, err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c *calls
			c = newCalls(t, hangs(func() { test.end(c) }))
			got, err := c.try(t)
			test.check(t, c, got, err)
		})
	}
}

// TestRelayStoppedUnderFail: a call that outlives the grace of its worker is lost at once where it is not repeated.
func TestRelayStoppedUnderFail(t *testing.T) {
	t.Parallel()
	var c *calls
	c = newCalls(t, hangs(func() { close(c.stop) }))
	c.relayer.Repeats = func(bool, string) bool { return false }
	got, err := c.try(t)
	if err != nil || !got.Unknown || got.Failure == nil || got.Failure.Code != "upstream_unknown" || got.Cost != 1000 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestRelayDeadline: the deadline ends a call wherever it is.
func TestRelayDeadline(t *testing.T) {
	t.Parallel()
	t.Run("running", func(t *testing.T) {
		t.Parallel()
		c := newCalls(t, hangs(func() {}))
		c.in.Deadline = time.Now().Add(2 * time.Second)
		if got, err := c.try(t); err != nil || got.Failure == nil || got.Failure.Code != "deadline_exceeded" || got.Unknown || got.Cost != 30 {
			t.Errorf("got %+v with %+v, %v", got, got.Failure, err)
		}
	})
	t.Run("never sent", func(t *testing.T) {
		t.Parallel()
		c := newCalls(t, new(fakeCaller).answers(http.StatusOK, "{}"))
		c.in.Deadline = time.Now().Add(-time.Second)
		_, err := c.try(t)
		if err == nil {
			t.Fatal("it was sent")
		}
		if r, retried, _ := fault(t, err); retried || !r.Deadline || r.Accepted != providers.NotAccepted {
			t.Errorf("got %+v, retried %t", r, retried)
		}
		c.in.Deadline = time.Now().Add(time.Hour)
		if got, err := c.try(t); err != nil || got.Failure == nil || c.caller.sent.Load() != 0 {
			t.Errorf("a worker whose clock is late sends it: %+v, %v", got, err)
		}
	})
	t.Run("after a lost answer", func(t *testing.T) {
		t.Parallel()
		c := newCalls(t, new(fakeCaller).answers(http.StatusOK, "{}"))
		c.in.Deadline = time.Now().Add(-time.Second)
		c.dies(t, 1)
		if got, err := c.try(t); err != nil || !got.Unknown || got.Failure.Code != "upstream_unknown" || got.Cost != 1000 ||
			c.caller.sent.Load() != 0 {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	t.Run("after a stored answer", func(t *testing.T) {
		t.Parallel()
		c := newCalls(t, new(fakeCaller).answers(http.StatusOK, "{}"))
		if _, err := c.try(t); err != nil {
			t.Fatal(err)
		}
		c.dies(t, 1)
		c.in.Deadline = time.Now().Add(-time.Second)
		if got, err := c.try(t); err != nil || got.Status != http.StatusOK || got.Output == nil || got.Cost != 70 {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

// TestRelayTooLarge: an answer above the limit ends the call and its request.
func TestRelayTooLarge(t *testing.T) {
	t.Parallel()
	c := newCalls(t, nil)
	caller := new(fakeCaller)
	caller.serve = func(w http.ResponseWriter, r *http.Request, run *activities.CallRun) {
		if !caller.send(r, run) {
			return
		}
		if _, err := w.Write(make([]byte, 2<<10)); err == nil || r.Context().Err() == nil {
			t.Error("the request goes on")
		}
		run.Fault = providers.AsFault(r.Context().Err())
	}
	c.relayer.Caller, c.caller = caller, caller
	if got, err := c.try(t); err != nil || got.Failure == nil || got.Failure.Code != "output_too_large" || got.Output != nil {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestRelayAddition: what the server adds to an answer does not count for the limit.
func TestRelayAddition(t *testing.T) {
	t.Parallel()
	c := newCalls(t, nil)
	caller := new(fakeCaller)
	caller.serve = func(w http.ResponseWriter, r *http.Request, run *activities.CallRun) {
		if !caller.send(r, run) {
			return
		}
		if limited, ok := w.(interface{ Add(n int) }); ok {
			limited.Add(2 << 10)
		}
		if _, err := w.Write(make([]byte, 2<<10+1)); err != nil {
			t.Error(err)
		}
	}
	c.relayer.Caller, c.caller = caller, caller
	if got, err := c.try(t); err != nil || got.Failure != nil || got.Output == nil {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestConclude: what a workflow records of a call whose activity reported nothing.
func TestConclude(t *testing.T) {
	t.Parallel()
	conclude := func(t *testing.T, c *calls) activities.Answered {
		t.Helper()
		r := c.worker(t, c.relayer)
		got, err := do[activities.Answered](t, r, r.acts.Relayer.Conclude, c.in)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	t.Run("never sent", func(t *testing.T) {
		t.Parallel()
		c := newCalls(t, new(fakeCaller).answers(http.StatusOK, "{}"))
		for range 2 {
			if got := conclude(t, c); got.Status != 0 || got.Failure != nil || got.Cost != 0 || got.Unknown {
				t.Errorf("got %+v", got)
			}
		}
		if _, err := c.try(t); err != nil || c.caller.sent.Load() != 0 { // a worker that was late
			t.Errorf("sent %d times after that, %v", c.caller.sent.Load(), err)
		}
	})
	t.Run("lost", func(t *testing.T) {
		t.Parallel()
		c := newCalls(t, nil)
		c.dies(t, 1)
		c.dies(t, 2)
		if got := conclude(t, c); !got.Unknown || got.Lost != 2 || got.Cost != 2000 || got.Failure.Code != "upstream_unknown" {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("answered", func(t *testing.T) {
		t.Parallel()
		c := newCalls(t, new(fakeCaller).answers(http.StatusOK, "{}"))
		if _, err := c.try(t); err != nil {
			t.Fatal(err)
		}
		if got := conclude(t, c); got.Status != http.StatusOK || got.Cost != 70 || got.Output == nil {
			t.Errorf("got %+v", got)
		}
	})
}

// TestRunningCallsFollow: a cancel that another process reports ends the call at once.
func TestRunningCallsFollow(t *testing.T) {
	t.Parallel()
	changes := taskindex.NewChanges(storagetest.Redis(t))
	ctx, cancel := context.WithCancel(t.Context())
	ready := make(chan struct{})
	var following sync.WaitGroup
	defer following.Wait()
	defer cancel()
	c := newCalls(t, nil)
	following.Go(func() { c.relayer.Running.Follow(ctx, changes, ready) })
	<-ready
	c.caller = hangs(func() {
		for _, change := range []taskindex.Change{
			{TaskID: "call_1"}, {TaskID: "call_2", Report: taskindex.Cancelled}, {TaskID: "call_1", Report: taskindex.Cancelled},
		} {
			if err := changes.Publish(t.Context(), change); err != nil {
				t.Error(err)
			}
		}
	})
	c.relayer.Caller = c.caller
	if got, err := c.try(t); err != nil || !got.Cancelled || got.Cost != 30 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestRelayLargeAnswers: an answer is in the worker's memory, or in parts in the archive where there is none left, and stored as one
// object.
func TestRelayLargeAnswers(t *testing.T) {
	t.Parallel()
	body := bytes.Repeat([]byte("0123456789abcdef"), 60_000)
	for name, test := range map[string]struct {
		memory *activities.Shares
		taken  int64
		parts  int
	}{
		"memory":    {memory: activities.AnswerMemory(), taken: 1<<20 - 128<<10},
		"no memory": {memory: activities.CallShares(0), parts: 7},
		"unlimited": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			caller := new(fakeCaller)
			c := newCalls(t, caller)
			c.relayer.Answers, c.relayer.MaxOutput = test.memory, 1<<20
			parts := func() (n int) {
				for _, key := range c.archive.Keys() {
					if strings.HasPrefix(key, activities.IncarnationPrefix(c.in.TaskID, c.in.Incarnation)+"answer/") {
						n++
					}
				}
				return n
			}
			taken := func() int64 {
				if test.memory == nil {
					return 0
				}
				return test.memory.Taken()
			}
			caller.serve = func(w http.ResponseWriter, r *http.Request, run *activities.CallRun) {
				if !caller.send(r, run) {
					return
				}
				for chunk := range slices.Chunk(body, 10_000) {
					if _, err := w.Write(chunk); err != nil {
						t.Error(err)
					}
				}
				if taken() != test.taken || parts() != test.parts {
					t.Errorf("%d bytes are taken with %d parts, want %d and %d", taken(), parts(), test.taken, test.parts)
				}
			}
			got, err := c.try(t)
			if err != nil || got.Failure != nil || got.Output == nil || got.Output.Size != int64(len(body)) {
				t.Fatalf("got %+v with %+v, %v", got, got.Failure, err)
			}
			object, err := c.archive.Open(t.Context(), got.Output.Object)
			if err != nil {
				t.Fatal(err)
			}
			if raw, err := io.ReadAll(object); err != nil || !bytes.Equal(raw, body) {
				t.Errorf("stored %d other bytes, %v", len(raw), err)
			}
			if taken() != 0 || parts() != 0 {
				t.Errorf("%d bytes are taken and %d parts are left", taken(), parts())
			}
		})
	}
}

// TestRelayPartsNotStored: while a part of an answer cannot be stored, the call waits, and a cancel ends it.
func TestRelayPartsNotStored(t *testing.T) {
	t.Parallel()
	caller := new(fakeCaller)
	c := newCalls(t, caller)
	c.relayer.Answers, c.relayer.MaxOutput = activities.CallShares(0), 1<<20
	c.archive.Fail = func(operation, key string) error {
		if operation == "put" && strings.Contains(key, "/answer/") {
			c.cancel()
			return storage.ErrUnavailable
		}
		return nil
	}
	caller.serve = func(w http.ResponseWriter, r *http.Request, run *activities.CallRun) {
		if !caller.send(r, run) {
			return
		}
		if _, err := w.Write(make([]byte, 200_000)); err == nil {
			t.Error("the answer goes on")
		}
		run.Fault, run.Cost = providers.AsFault(r.Context().Err()), 30
	}
	if got, err := c.try(t); err != nil || !got.Cancelled || got.Cost != 30 || got.Output != nil {
		t.Errorf("got %+v, %v", got, err)
	}
}

// eventObjects is the archive of events.
type eventObjects struct{ *storagetest.MemoryArchive }

func (o eventObjects) Put(ctx context.Context, key string, r io.Reader, size int64, contentType string) (int64, string, error) {
	object, err := o.MemoryArchive.Put(ctx, key, r, size, archive.PutOptions{ContentType: contentType})
	return object.Size, object.SHA256, err
}

func (o eventObjects) Open(ctx context.Context, key string) (io.ReadSeekCloser, error) {
	return o.MemoryArchive.Open(ctx, key)
}

func (o eventObjects) List(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for object, err := range o.MemoryArchive.List(ctx, prefix) {
			if !yield(object.Key, err) {
				return
			}
		}
	}
}

// TestRelayArray: the answer of a stream that its client reads as an array is the array, and its events are events.
func TestRelayArray(t *testing.T) {
	t.Parallel()
	const kind, events = "text/event-stream; charset=utf-8", "data: {\"n\":1}\n\ndata: {\"n\":2}\n\n"
	for array, want := range map[bool]string{false: events, true: "[{\"n\":1},\r\n{\"n\":2}]"} {
		caller := new(fakeCaller)
		caller.serve = func(w http.ResponseWriter, r *http.Request, run *activities.CallRun) {
			if caller.send(r, run) {
				w.Header().Set("Content-Type", kind)
				_, _ = io.WriteString(w, events)
			}
		}
		c := newCalls(t, caller)
		c.relayer.Events = eventlog.New(storagetest.Redis(t), eventObjects{c.archive}, 2*time.Hour, slog.New(slog.DiscardHandler))
		c.in.Call.Stream, c.in.Call.Array = true, array
		check := func(got activities.Answered, err error, kind string) {
			t.Helper()
			if err != nil || got.Events != 2 || got.Failure != nil || got.Output == nil || got.Output.ContentType != kind ||
				got.Output.Size != int64(len(want)) {
				t.Fatalf("got %+v, %v", got, err)
			}
			object, err := c.archive.Open(t.Context(), got.Output.Object)
			if err != nil {
				t.Fatal(err)
			}
			if raw, _ := io.ReadAll(object); string(raw) != want {
				t.Errorf("stored %q, want %q", raw, want)
			}
			if size := c.eventsSize(t); size != int64(len(events)) {
				t.Errorf("the events have %d bytes", size)
			}
		}
		got, err := c.try(t)
		stored := map[bool]string{false: kind, true: "application/json"}[array]
		check(got, err, stored)
		c.dies(t, 1) // after the answer was stored
		got, err = c.try(t)
		check(got, err, stored)
	}
}

// eventsSize returns the size of the final object of the call's events.
func (c *calls) eventsSize(t *testing.T) int64 {
	t.Helper()
	log, err := c.relayer.Events.Ended(t.Context(), activities.EventsFolder(activities.IncarnationPrefix("call_1", "one")))
	if err != nil {
		t.Fatal(err)
	}
	object, err := c.archive.Stat(t.Context(), log.Key)
	if err != nil {
		t.Fatal(err)
	}
	return object.Size
}

// TestRelayDiesWhileStoring: an answer that is stored has its usage and cost, and those of lost ones, wherever its worker dies. One of
// which only the record is stored is lost.
func TestRelayDiesWhileStoring(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		stored     bool
		sent, lost int
		cost       int64
	}{"the answer is stored": {true, 2, 1, 1070}, "only the record is stored": {false, 2, 2, 2000}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCalls(t, new(fakeCaller).answers(http.StatusOK, `{"ok":true}`))
			var sent int
			answer := c.caller.serve
			c.caller.serve = func(w http.ResponseWriter, r *http.Request, run *activities.CallRun) {
				if sent++; sent > 1 {
					answer(w, r, run)
				} else if c.caller.send(r, run) {
					run.Fault = &providers.Fault{Kind: providers.Upstream, Message: "broken"}
				}
			}
			var puts []string
			c.archive.Fail = func(operation, key string) error {
				if operation == "put" && !strings.HasSuffix(key, ".begun") {
					puts = append(puts, key)
				}
				return nil
			}
			first, err := c.try(t)
			record := (activities.SubmitInput{TaskID: "call_1", Incarnation: "one", Attempt: 1}).TicketObject() // of the second claim
			if first.Output == nil ||
				!slices.Equal(puts, []string{record, first.Output.Object}) {
				t.Errorf("stored %q: a worker that dies before the last one has not stored the answer", puts)
			}
			if err != nil || first.Cost != 1070 || first.Lost != 1 || first.Output == nil {
				t.Fatalf("got %+v, %v", first, err)
			}
			c.dies(t, 1)
			c.dies(t, 2)
			if !test.stored {
				if err := c.archive.Delete(t.Context(), first.Output.Object); err != nil {
					t.Fatal(err)
				}
			}
			got, err := c.try(t)
			if err != nil || got.Cost != test.cost || got.Lost != test.lost || got.Unknown == test.stored || int(c.caller.sent.Load()) != test.sent {
				t.Errorf("got %+v, %v after %d requests", got, err, c.caller.sent.Load())
			}
			if test.stored && (got.Usage != first.Usage || !reflect.DeepEqual(got.Output, first.Output)) {
				t.Errorf("got %+v with %+v, want %+v with %+v", got, got.Output, first, first.Output)
			}
		})
	}
}

// TestRelayCountsLostStreams: a stream of which readers have seen events is not sent again, and each of its lost answers costs what was
// reserved.
func TestRelayCountsLostStreams(t *testing.T) {
	t.Parallel()
	for lost := 1; lost <= 2; lost++ {
		c := newCalls(t, new(fakeCaller).answers(http.StatusOK, "{}"))
		c.relayer.Events = eventlog.New(storagetest.Redis(t), eventObjects{c.archive}, 2*time.Hour, slog.New(slog.DiscardHandler))
		c.in.Call.Stream = true
		folder := activities.EventsFolder(activities.IncarnationPrefix("call_1", "one"))
		w, err := c.relayer.Events.Write(t.Context(), "call_1", folder)
		if err == nil {
			err = w.Append(t.Context(), []byte("data: 1\n\n"))
		}
		if err != nil {
			t.Fatal(err)
		}
		testwait.Eventually(t, "the event is stored", 10*time.Second, func() bool {
			n, err := c.relayer.Events.Stored(t.Context(), "call_1", folder)
			return err == nil && n == 1
		})
		w.Abandon()
		for n := range lost {
			c.dies(t, n+1)
		}
		got, err := c.try(t)
		if err != nil || !got.Unknown || got.Lost != lost || got.Attempts != lost || got.Cost != int64(lost)*1000 || c.caller.sent.Load() != 0 {
			t.Errorf("got %+v, %v after %d requests, want %d lost answers", got, err, c.caller.sent.Load(), lost)
		}
	}
}

// TestRelayGivenUp: Temporal gives up a try whose heartbeats it does not receive. The try continues, and the next one in the same worker
// has its answer.
func TestRelayGivenUp(t *testing.T) {
	t.Parallel()
	caller := new(fakeCaller)
	begun, finish := caller.answersLate()
	c := newCalls(t, caller)
	waits := make(chan struct{}, 2)
	c.relayer.Record = func(step activities.Step) {
		if step.Name == activities.StepQueued {
			waits <- struct{}{}
		}
	}
	var running sync.WaitGroup
	try := func() {
		env := c.worker(t, c.relayer)
		giveUp := env.endable(t)
		running.Go(func() {
			got, err := do[activities.Answered](t, env, env.acts.Relayer.Relay, c.in)
			if err != nil || got.Cancelled || got.Output == nil || got.Lost != 0 {
				t.Errorf("got %+v, %v", got, err)
			}
		})
		<-waits
		<-begun
		giveUp(&serviceerror.NotFound{Message: "activity not found"})
	}
	try()
	c.buries(t, 1) // the next try is another owner
	try()
	finish()
	running.Wait()
	if sent := caller.sent.Load(); sent != 1 {
		t.Errorf("the call was sent %d times", sent)
	}
}

// TestRelayElsewhere: Temporal gives up a try whose heartbeats it does not receive, and starts the next one at another worker. While the
// first worker reads the upstream, the answer is not lost: the call is not sent again, and the next try has the answer. If the first worker
// does not respond, the rule decides, and its late answer changes nothing.
func TestRelayElsewhere(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		responds, repeats bool
		sent              int32
		lost              int
		want              string
	}{
		"it responds, fail":           {responds: true, sent: 1, want: "answer 1"},
		"it responds, repeat":         {responds: true, repeats: true, sent: 1, want: "answer 1"},
		"it does not respond, fail":   {sent: 1, lost: 1},
		"it does not respond, repeat": {repeats: true, sent: 2, lost: 1, want: "answer 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			caller := new(fakeCaller)
			begun, finish := caller.answersLate()
			c := newCalls(t, caller)
			c.relayer.Repeats = func(bool, string) bool { return test.repeats }
			workers := newWorkers(t, c)
			if test.responds {
				workers.follow(t, c.relayer.Running)
			}
			var first sync.WaitGroup
			first.Go(func() { _, _ = workers.try(t, c.relayer) })
			<-begun
			c.buries(t, 1) // the next try is another owner
			ended := make(chan struct{})
			first.Go(func() {
				select {
				case <-workers.sending:
					finish()
				case <-ended:
				}
			})
			got, err := workers.try(t, workers.other(t))
			close(ended)
			finish()
			first.Wait()
			if err != nil || got.Lost != test.lost || caller.sent.Load() != test.sent || (got.Output == nil) != (test.want == "") {
				t.Fatalf("got %+v with %+v, %v; sent %d times", got, got.Failure, err, caller.sent.Load())
			}
			if test.want == "" {
				if got.Failure == nil || got.Failure.Code != "upstream_unknown" {
					t.Errorf("got %+v", got.Failure)
				}
				return
			}
			object, err := c.archive.Open(t.Context(), got.Output.Object)
			if err != nil {
				t.Fatal(err)
			}
			if raw, _ := io.ReadAll(object); string(raw) != test.want {
				t.Errorf("stored %q, want %q", raw, test.want)
			}
		})
	}
}

// TestRelayReplaced: a worker that does not respond loses its stream to the next try, and what it stores later changes nothing.
func TestRelayReplaced(t *testing.T) {
	t.Parallel()
	begun, finish := make(chan struct{}), make(chan struct{})
	caller := new(fakeCaller)
	c := newCalls(t, caller)
	c.relayer.Events = eventlog.New(storagetest.Redis(t), eventObjects{c.archive}, 2*time.Hour, slog.New(slog.DiscardHandler))
	c.in.Call.Stream = true
	caller.serve = func(w http.ResponseWriter, r *http.Request, run *activities.CallRun) {
		if !caller.send(r, run) {
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: 1\n\n") // of memory
		testwait.Eventually(t, "the event is stored", storagetest.Patience, func() bool {
			n, err := c.relayer.Events.Stored(t.Context(), c.in.TaskID, activities.EventsFolder(activities.IncarnationPrefix("call_1", "one")))
			return err == nil && n == 1
		})
		close(begun)
		<-finish
		_, _ = io.WriteString(w, "data: 2\n\n")
	}
	workers := newWorkers(t, c)
	late := make(chan error, 1)
	go func() {
		_, err := workers.try(t, c.relayer)
		late <- err
	}()
	<-begun
	c.buries(t, 1)
	got, err := workers.try(t, workers.other(t))
	close(finish)
	if err != nil || !got.Unknown || got.Output == nil || got.Events != 1 || caller.sent.Load() != 1 {
		t.Errorf("got %+v, %v; sent %d times", got, err, caller.sent.Load())
	}
	if err := <-late; err == nil {
		t.Error("the first worker reports an answer")
	} else if _, retried, _ := fault(t, err); !retried {
		t.Errorf("the first worker ends the call: %v", err)
	}
	var record activities.Answered
	if err := c.archive.GetJSON(t.Context(), activities.SubmitInput{TaskID: "call_1", Incarnation: "one"}.TicketObject(), &record); err != nil ||
		!record.Unknown {
		t.Errorf("the record of the answer is %+v, %v", record, err)
	}
}

// workers are workers that have tries of one call. sending receives the reports that one of them sends the call.
type workers struct {
	calls   *calls
	changes *taskindex.Changes
	sending chan struct{}
}

func newWorkers(t *testing.T, c *calls) *workers {
	t.Helper()
	w := &workers{calls: c, changes: taskindex.NewChanges(storagetest.Redis(t)), sending: make(chan struct{}, 100)}
	c.relayer.Listing = &activities.Listing{Changes: w.changes, Log: slog.New(slog.DiscardHandler)}
	w.following(t, func(ctx context.Context, ready chan<- struct{}) {
		w.changes.Follow(ctx, ready, func(change taskindex.Change) {
			if change.Report == taskindex.Sending {
				w.sending <- struct{}{}
			}
		})
	})
	return w
}

// follow lets a worker receive what others report.
func (w *workers) follow(t *testing.T, running *activities.RunningCalls) {
	t.Helper()
	w.following(t, func(ctx context.Context, ready chan<- struct{}) { running.Follow(ctx, w.changes, ready) })
}

func (w *workers) following(t *testing.T, follow func(ctx context.Context, ready chan<- struct{})) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ready := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() { follow(ctx, ready) })
	<-ready
	t.Cleanup(func() {
		cancel()
		ended.Wait()
	})
}

// other returns another worker.
func (w *workers) other(t *testing.T) activities.Relayer {
	t.Helper()
	relayer := w.calls.relayer
	relayer.Running, relayer.Slots = new(activities.RunningCalls), activities.CallShares(2)
	w.follow(t, relayer.Running)
	return relayer
}

// try is a try of the call at a worker.
func (w *workers) try(t *testing.T, relayer activities.Relayer) (activities.Answered, error) {
	t.Helper()
	env := w.calls.worker(t, relayer)
	return do[activities.Answered](t, env, env.acts.Relayer.Relay, w.calls.in)
}

// TestRelayLargeEvents: a call has a place in the worker only while it reads a large event that has come whole, not while its upstream
// works. What comes until then is in memory or, without memory, in the archive.
func TestRelayLargeEvents(t *testing.T) {
	t.Parallel()
	for name, memory := range map[string]*activities.Shares{"memory": nil, "archive": fair.New[string](fair.Bounds{})} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			large := activities.LargeCalls()
			caller := new(fakeCaller)
			caller.serve = func(w http.ResponseWriter, r *http.Request, run *activities.CallRun) {
				if !caller.send(r, run) {
					return
				}
				from, upstream := io.Pipe()
				answer := run.Gather(r.Context(), from, 0)
				data := strings.Repeat("x", 3*activities.LargeEvent)
				waits := func(text string) { // until the call reads on
					_, _ = io.WriteString(upstream, text)
					_, _ = io.WriteString(upstream, ":")
					if n := large.Taken(); n != 0 {
						t.Errorf("%d places are taken while the upstream works", n)
					}
				}
				var sending sync.WaitGroup
				sending.Go(func() {
					waits("data: small\n\ndata: " + data)
					waits("\ndata: " + data)
					_, _ = io.WriteString(upstream, "\n\n")
					waits("data: small\n\n")
					_ = upstream.Close()
				})
				events := sse.NewReader(answer)
				var got []int
				for event, err := events.Next(); err == nil; event, err = events.Next() {
					if got = append(got, len(event.Data)); (large.Taken() > 0) != (len(event.Data) > activities.LargeEvent) {
						t.Errorf("%d places are taken for an event of %d bytes", large.Taken(), len(event.Data))
					}
				}
				sending.Wait()
				if want := []int{5, 2*len(data) + 3, 5}; !slices.Equal(got, want) {
					t.Errorf("got events of %d bytes, want %d", got, want)
				}
				_ = answer.Close()
				_, _ = io.WriteString(w, "{}") // of memory
			}
			c := newCalls(t, caller)
			c.relayer.Large, c.relayer.Answers = large, memory
			if got, err := c.try(t); err != nil || got.Output == nil || large.Taken() != 0 {
				t.Errorf("got %+v, %v; %d places are taken", got, err, large.Taken())
			}
		})
	}
}

// TestRelayLargeUnstored: while the archive is away, a call waits with the parts of a large event. If it is away for too long, the call
// fails with archive_failed, and the fault that its reader has is the archive's.
func TestRelayLargeUnstored(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		operation string
		fails     error
		lasts     time.Duration
		after     time.Duration
	}{
		"parts are written late": {"put", storage.ErrUnavailable, time.Minute, time.Minute},
		"parts are read late":    {"open", storage.ErrUnavailable, time.Minute, time.Minute},
		"parts are not written":  {"put", storage.ErrUnavailable, time.Hour, 10 * time.Minute},
		"parts are not read":     {"open", storage.ErrUnavailable, time.Hour, 10 * time.Minute},
		"parts are refused":      {"put", archive.ErrTooLarge, time.Hour, 0},
		"parts are gone":         {"open", storage.ErrNotFound, time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				caller, began := new(fakeCaller), time.Now()
				c := newCalls(t, caller)
				c.relayer.Answers = fair.New[string](fair.Bounds{})
				c.archive.Fail = func(operation, key string) error {
					if operation == test.operation && strings.Contains(key, "/large/") && time.Since(began) < test.lasts {
						return test.fails
					}
					return nil
				}
				event := "data: " + strings.Repeat("x", 3*activities.LargeEvent) + "\n\n"
				caller.serve = func(w http.ResponseWriter, r *http.Request, run *activities.CallRun) {
					if !caller.send(r, run) {
						return
					}
					answer := run.Gather(r.Context(), io.NopCloser(strings.NewReader(event)), 0)
					defer func() { _ = answer.Close() }()
					got, err := io.ReadAll(answer)
					run.Fault = providers.AsFault(err)
					fails := test.lasts > time.Minute
					if fails != errors.Is(err, test.fails) || fails && run.Fault.Kind != providers.Internal || !fails && string(got) != event ||
						time.Since(began).Round(time.Minute) != test.after {
						t.Errorf("after %s: read %d bytes, %v", time.Since(began), len(got), err)
					}
					if err == nil {
						_, _ = io.WriteString(w, "{}") // of memory
					}
				}
				got, err := c.try(t)
				if test.after == 10*time.Minute { // then the environment gives up the activity
					return
				}
				if want := test.after == 0; err != nil || want != (got.Failure != nil) || want && got.Failure.Code != "archive_failed" ||
					caller.sent.Load() != 1 {
					t.Errorf("got %+v with %+v, %v", got, got.Failure, err)
				}
			})
		})
	}
}

// TestRelayEventsUnstored: a large event of a stream waits for the archive until the call ends: by a cancel, by its deadline, or because
// the archive is away for too long. The stream is stored with the event once the archive is back, and the call has its place until then.
func TestRelayEventsUnstored(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ends     time.Duration // of the wait
		deadline time.Duration
		code     string // "" for a cancel
	}{
		"cancel":   {time.Minute, time.Hour, ""},
		"deadline": {2 * time.Minute, 2 * time.Minute, "deadline_exceeded"},
		"away":     {10 * time.Minute, time.Hour, "archive_failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				caller, began := new(fakeCaller), time.Now()
				c := newCalls(t, caller)
				large := activities.LargeCalls()
				c.relayer.Events = eventlog.New(storagetest.NewServer(t).Client(t), eventObjects{c.archive}, 2*time.Hour,
					slog.New(slog.DiscardHandler))
				c.relayer.Large, c.relayer.MaxOutput, c.in.Call.Stream = large, 1<<20, true
				c.in.Deadline = began.Add(test.deadline)
				back := test.ends + 5*time.Minute
				c.archive.Fail = func(operation, key string) error {
					if operation == "put" && strings.Contains(key, "/events") && time.Since(began) < back {
						return storage.ErrUnavailable
					}
					return nil
				}
				event := "data: " + strings.Repeat("x", 3*activities.LargeEvent) + "\n\n"
				caller.serve = func(w http.ResponseWriter, r *http.Request, run *activities.CallRun) {
					if !caller.send(r, run) {
						return
					}
					if test.code == "" {
						defer time.AfterFunc(test.ends, c.cancel).Stop()
					}
					w.Header().Set("Content-Type", "text/event-stream")
					_, err := io.WriteString(w, event)
					if waited := time.Since(began).Round(time.Second); err == nil || waited != test.ends {
						t.Errorf("the write ends after %s, %v", waited, err)
					}
					if n := large.Taken(); n != 1 {
						t.Errorf("%d places are taken while the event is in memory", n)
					}
					run.Fault = &providers.Fault{Kind: providers.Canceled}
				}
				_, _ = c.try(t) // the environment gives up an activity after ten minutes
				<-time.After(back + time.Minute - time.Since(began))
				synctest.Wait()
				var got activities.Answered
				err := c.archive.GetJSON(t.Context(), activities.SubmitInput{TaskID: "call_1", Incarnation: "one"}.TicketObject(), &got)
				if err != nil || got.Cancelled != (test.code == "") || test.code != "" && got.Failure.Code != test.code || large.Taken() != 0 {
					t.Errorf("got %+v with %+v, %v; %d places are taken", got, got.Failure, err, large.Taken())
				}
				if size := c.eventsSize(t); size != int64(len(event)) {
					t.Errorf("stored %d bytes", size)
				}
			})
		})
	}
}

// TestRelayLargeDocument: a call that reads a large document whole has a place from the document's end until the call leaves it. It waits
// for one while others of its token have the token's share.
func TestRelayLargeDocument(t *testing.T) {
	t.Parallel()
	large := activities.LargeCalls()
	caller := new(fakeCaller)
	caller.serve = func(w http.ResponseWriter, r *http.Request, run *activities.CallRun) {
		if !caller.send(r, run) {
			return
		}
		others := int64(0)
		for large.Try(run.Token, 1) == nil {
			others++
		}
		text := strings.Repeat("x", 5*activities.LargeEvent)
		none, cancel := context.WithCancel(r.Context())
		cancel()
		answer := run.Gather(none, io.NopCloser(strings.NewReader(text)), 1<<20)
		if got, err := io.ReadAll(answer); !errors.Is(err, context.Canceled) || len(got) > activities.LargeEvent {
			t.Errorf("without a place: got %d bytes, %v", len(got), err)
		}
		_ = answer.Close()
		large.Release(run.Token, others)
		answer = run.Gather(r.Context(), io.NopCloser(strings.NewReader(text)), 1<<20)
		got, err := io.ReadAll(answer)
		if err != nil || string(got) != text || large.Taken() != 1 || others != 2 {
			t.Errorf("got %d bytes, %v; %d places are taken, others had %d", len(got), err, large.Taken(), others)
		}
		_ = answer.Close()
		_, _ = io.WriteString(w, "{}") // of memory
	}
	c := newCalls(t, caller)
	c.relayer.Large = large
	if got, err := c.try(t); err != nil || got.Output == nil || large.Taken() != 0 {
		t.Errorf("got %+v, %v; %d places are taken", got, err, large.Taken())
	}
}

// TestRelayChain: a call has the items from which it continues.
func TestRelayChain(t *testing.T) {
	t.Parallel()
	caller := new(fakeCaller)
	c := newCalls(t, caller)
	c.in.Call.Chain = &activities.StagedChain{Previous: "resp_1", Items: "tasks/call_1/one/inputs/items", Size: 9}
	if _, err := c.archive.Put(t.Context(), c.in.Call.Chain.Items, strings.NewReader("the items"), 9, archive.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	caller.serve = func(w http.ResponseWriter, r *http.Request, run *activities.CallRun) {
		if items, err := run.Items(r.Context()); err != nil || string(items) != "the items" || run.Chain.Previous != "resp_1" {
			t.Errorf("got %q of %+v, %v", items, run.Chain, err)
		}
		if caller.send(r, run) {
			_, _ = io.WriteString(w, "{}") // of memory
		}
	}
	if got, err := c.try(t); err != nil || got.Failure != nil {
		t.Errorf("got %+v, %v", got, err)
	}
}
