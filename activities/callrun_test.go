package activities_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/providers/openai"
	"modelrelay/providers/router"
	"modelrelay/providers/sse"
	"modelrelay/storage/archive"
	"modelrelay/storage/eventlog"
	"modelrelay/storage/storagetest"
)

// runner is an upstream with OpenAI's responses in the background: https://platform.openai.com/docs/guides/background. Its one response has
// events that the test releases.
type runner struct {
	calls *calls

	mu       sync.Mutex
	changed  *sync.Cond
	asked    []string // methods and paths
	events   int      // so many were made; the last of them, at most, ends the response
	cut      int      // the connection of a stream breaks after so many events, once; 0: it does not
	unnamed  bool     // the create breaks off before its answer
	unknown  bool     // it is not known any more
	reported func()   // after each read of the response in progress
	before   string   // the members of the document before its status
}

const runnerEvents = 9

// event is the n-th event.
func (u *runner) event(n int) string {
	kind := "response.output_text.delta"
	var status string
	switch n {
	case 0:
		kind, status = "response.created", "queued"
	case runnerEvents - 1:
		kind, status = "response.completed", "completed"
	default:
		return string(sse.Format(kind, fmt.Appendf(nil, `{"type":%q,"sequence_number":%d,"delta":"word %d"}`, kind, n, n)))
	}
	return string(sse.Format(kind, fmt.Appendf(nil,
		`{"type":%q,"sequence_number":%d,"response":{"id":"resp_up","status":%q,"background":true}}`, kind, n, status)))
}

// make makes more events.
func (u *runner) make(n int) {
	u.mu.Lock()
	u.events += n
	u.mu.Unlock()
	u.changed.Broadcast()
}

func (u *runner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.mu.Lock()
	u.asked = append(u.asked, r.Method+" "+r.URL.RequestURI())
	unnamed, unknown, events := u.unnamed, u.unknown, u.events
	u.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	stream := r.URL.Query().Get("stream") == "true" || strings.Contains(string(body), `"stream":true`)
	var kept activities.CallTicket
	if r.Method == http.MethodGet && (u.calls.archive.GetJSON(r.Context(), "tickets/0001-01-01/resp_1/one", &kept) != nil ||
		kept.ID != "resp_up") {
		w.WriteHeader(http.StatusTeapot) // it is read before the ticket is archived
		return
	}
	switch {
	case unnamed:
		panic(http.ErrAbortHandler)
	case unknown && r.Method == http.MethodGet:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"error":{"message":"Response with id 'resp_up' not found.","type":"invalid_request_error","param":null,"code":null}}`)
	case stream:
		u.stream(w, r)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Openai-Poll-After-Ms", "1")
		status := "in_progress"
		if events >= runnerEvents {
			status = "completed"
		}
		_, _ = io.WriteString(w, `{"id":"resp_up",`+u.before+`"status":"`+status+`","background":true}`)
		if u.reported != nil && r.Method == http.MethodGet {
			u.reported()
		}
	}
}

func (u *runner) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	next := 0
	if after := r.URL.Query().Get("starting_after"); after != "" {
		n, _ := strconv.Atoi(after)
		next = n + 1
	}
	context.AfterFunc(r.Context(), u.changed.Broadcast)
	for ; next < runnerEvents; next++ {
		u.mu.Lock()
		for next >= u.events && r.Context().Err() == nil {
			u.changed.Wait()
		}
		cut := u.cut > 0 && next == u.cut
		if cut {
			u.cut = 0
		}
		u.mu.Unlock()
		if cut || r.Context().Err() != nil {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, u.event(next))
		_ = http.NewResponseController(w).Flush()
	}
}

// requests returns the requests so far.
func (u *runner) requests() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]string(nil), u.asked...)
}

// count returns how many requests began with a text.
func (u *runner) count(begin string) (n int) {
	for _, request := range u.requests() {
		if strings.HasPrefix(request, begin) {
			n++
		}
	}
	return n
}

// newRun returns the tries of a Response that its vendor runs.
func newRun(t *testing.T, stream bool) (*calls, *runner) {
	t.Helper()
	c := newCalls(t, new(fakeCaller))
	u := &runner{calls: c, changed: sync.NewCond(new(sync.Mutex))}
	u.changed = sync.NewCond(&u.mu)
	server := httptest.NewServer(u)
	t.Cleanup(server.Close)
	by := openai.NewRelayer(server.Client())
	target := theTarget()
	target.Channel.BaseURL = server.URL
	channels := fakeChannels{resolve: func(string, string, string) (providers.Target, error) { return target, nil }}
	c.relayer.Upstreams = &activities.Upstreams{Channels: channels, Catalog: providers.Catalog{"fake": {Name: "fake", Relay: by}}}
	c.relayer.Polls = &activities.Poller{Upstreams: c.relayer.Upstreams, PollMin: time.Millisecond, PollMax: 2 * time.Millisecond}
	c.relayer.Repeats = func(bool, string) bool { return false }
	c.relayer.Events = eventlog.New(storagetest.Redis(t), memoryObjects{c.archive}, 2*time.Hour, slog.New(slog.DiscardHandler))
	c.in.TaskID, c.in.Call.Stream, c.relayer.MaxOutput = "resp_1", stream, 1<<20
	c.caller.serve = func(w http.ResponseWriter, r *http.Request, run *activities.CallRun) {
		var created *http.Response
		if run.Ticketing.At == (providers.KeyRef{}) {
			if !c.caller.send(r, run) {
				return
			}
			call := &providers.Call{Endpoint: providers.Endpoint{Format: providers.OpenAI, Operation: providers.Responses}, Stream: stream}
			call.Body = fmt.Appendf(nil, `{"background":true,"stream":%t}`, stream)
			var err error
			create, stop := context.WithCancel(context.WithoutCancel(r.Context()))
			defer stop()
			context.AfterFunc(r.Context(), stop)
			if created, err = by.Relay(create, target, call); err != nil {
				run.Fault = providers.AsFault(err)
				return
			}
		}
		answer, err := run.Ticketing.Follow(r.Context(), target, by, created)
		if err != nil {
			run.Fault = providers.AsFault(err)
			return
		}
		defer func() { _ = answer.Body.Close() }() // it was only read
		run.Sent()
		w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
		if !stream {
			_, err = io.Copy(w, answer.Body)
		} else {
			err = sse.Each(answer.Body, func(event sse.Event) { _, _ = w.Write(sse.Format(string(event.Name), event.Data)) })
		}
		run.Fault, run.Cost = providers.AsFault(err), 70
	}
	return c, u
}

// memoryObjects is an archive in memory for the events of calls.
type memoryObjects struct{ *storagetest.MemoryArchive }

func (o memoryObjects) Put(ctx context.Context, key string, r io.Reader, size int64, contentType string) (int64, string, error) {
	object, err := o.MemoryArchive.Put(ctx, key, r, size, archive.PutOptions{ContentType: contentType})
	return object.Size, object.SHA256, err
}

func (o memoryObjects) Open(ctx context.Context, key string) (io.ReadSeekCloser, error) {
	return o.MemoryArchive.Open(ctx, key)
}

func (o memoryObjects) List(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for object, err := range o.MemoryArchive.List(ctx, prefix) {
			if !yield(object.Key, err) {
				return
			}
		}
	}
}

// wantWhole checks that a call ended with the whole answer of the vendor.
func wantWhole(t *testing.T, c *calls, u *runner, got activities.Answered, err error) {
	t.Helper()
	want := `{"id":"resp_up",` + u.before + `"status":"completed","background":true}`
	if c.in.Call.Stream {
		want = ""
		for n := range runnerEvents {
			want += u.event(n)
		}
	}
	if err != nil || got.Status != http.StatusOK || got.Failure != nil || got.Cancelled || got.Output == nil || got.Cost != 70 ||
		got.Lost != 0 || got.Attempts != 1 {
		t.Fatalf("got %+v with %+v, %v", got, got.Failure, err)
	}
	object, err := c.archive.Open(t.Context(), got.Output.Object)
	if err != nil {
		t.Fatal(err)
	}
	if raw, _ := io.ReadAll(object); string(raw) != want {
		t.Errorf("got %s\nwant %s", raw, want)
	}
	if got.Copy == nil || got.Copy.ID != "resp_up" || got.Copy.Object == "" || got.Ticket != nil {
		t.Errorf("the answer has the copy %+v and the ticket %+v", got.Copy, got.Ticket)
	}
	if n := u.count("POST /responses"); n != 1 {
		t.Errorf("asked %q, want one create", u.requests())
	}
}

// TestTicket: the vendor runs the call, and the worker reads it there until its end.
func TestTicket(t *testing.T) {
	t.Parallel()
	t.Run("polled", func(t *testing.T) {
		t.Parallel()
		c, u := newRun(t, false)
		u.reported = func() { u.make(4) }
		got, err := c.try(t)
		wantWhole(t, c, u, got, err)
		if n := u.count("GET /responses/resp_up"); n != 4 {
			t.Errorf("asked %q", u.requests())
		}
	})
	t.Run("polled, with its status behind its output", func(t *testing.T) {
		t.Parallel()
		c, u := newRun(t, false)
		u.before = `"output":[{"status":"completed"},"` + strings.Repeat("x", 100<<10) + `"],`
		u.reported = func() { u.make(4) }
		got, err := c.try(t)
		wantWhole(t, c, u, got, err)
		if n := u.count("GET /responses/resp_up"); n != 5 { // once more for the answer
			t.Errorf("asked %q", u.requests())
		}
	})
	t.Run("streamed", func(t *testing.T) {
		t.Parallel()
		c, u := newRun(t, true)
		u.make(runnerEvents)
		got, err := c.try(t)
		wantWhole(t, c, u, got, err)
		if len(u.requests()) != 1 {
			t.Errorf("asked %q", u.requests())
		}
	})
	t.Run("a stream that breaks off", func(t *testing.T) {
		t.Parallel()
		c, u := newRun(t, true)
		u.cut = 5
		u.make(runnerEvents)
		got, err := c.try(t)
		wantWhole(t, c, u, got, err)
		if n := u.count("GET /responses/resp_up?starting_after=4&stream=true"); n != 1 {
			t.Errorf("asked %q", u.requests())
		}
	})
}

// TestTicketOfDeadWorker: another worker reads the call that the vendor runs, whatever the last heartbeat contains. The stream has each
// event once.
func TestTicketOfDeadWorker(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		for _, beaten := range []bool{false, true} {
			t.Run(fmt.Sprintf("stream %t, heartbeat %t", stream, beaten), func(t *testing.T) {
				t.Parallel()
				c, u := newRun(t, stream)
				var once sync.Once
				stop := func() { once.Do(func() { close(c.stop) }) }
				u.reported = stop
				serve := c.caller.serve
				c.caller.serve = func(w http.ResponseWriter, r *http.Request, run *activities.CallRun) {
					serve(stopsAfter{w, 4, stop}.writer(), r, run)
				}
				u.make(4)
				if _, err := c.try(t); err == nil {
					t.Fatal("it ended")
				} else if _, retried, _ := fault(t, err); !retried {
					t.Fatal("no other worker goes on")
				}
				all := c.beats()
				if last := all[len(all)-1]; last.Ticket == nil || last.Ticket.ID != "resp_up" {
					t.Errorf("the heartbeat is %+v", last)
				} else if beaten {
					c.progress = last
				}
				c.buries(t, 1)
				c.stop, c.caller.serve, u.reported = make(chan struct{}), serve, nil
				u.make(runnerEvents - 4)
				got, err := c.try(t)
				if !beaten {
					got.Attempts = 1 // only the heartbeat has the number
				}
				wantWhole(t, c, u, got, err)
				if u.count("POST /responses/resp_up/cancel") > 0 {
					t.Errorf("asked %q", u.requests())
				}
				if again, err := c.try(t); err != nil || again.Output == nil || again.Output.Object != got.Output.Object {
					t.Errorf("a later try has %+v, %v", again, err)
				}
			})
		}
	}
}

// stopsAfter calls stop after so many writes.
type stopsAfter struct {
	http.ResponseWriter

	left int
	stop func()
}

func (s stopsAfter) writer() http.ResponseWriter { return &s }

func (s *stopsAfter) Write(p []byte) (int, error) {
	if s.left--; s.left == 0 {
		defer s.stop()
	}
	return s.ResponseWriter.Write(p)
}

// TestTicketEnds: a call that ends before its vendor has the answer is cancelled there.
func TestTicketEnds(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprintf("cancelled, stream %t", stream), func(t *testing.T) {
			t.Parallel()
			c, u := newRun(t, stream)
			end := func() { c.cancel() }
			u.reported = end
			serve := c.caller.serve
			c.caller.serve = func(w http.ResponseWriter, r *http.Request, run *activities.CallRun) {
				serve(stopsAfter{w, 3, end}.writer(), r, run)
			}
			u.make(3)
			got, err := c.try(t)
			if err != nil || !got.Cancelled || got.Failure != nil || got.Copy == nil || u.count("POST /responses/resp_up/cancel") != 1 {
				t.Errorf("got %+v with %+v, %v; asked %q", got, got.Failure, err, u.requests())
			}
		})
	}
	t.Run("deadline", func(t *testing.T) {
		t.Parallel()
		c, u := newRun(t, false)
		c.in.Deadline = time.Now().Add(100 * time.Millisecond)
		got, err := c.try(t)
		if err != nil || got.Failure == nil || got.Failure.Code != "deadline_exceeded" || u.count("POST /responses/resp_up/cancel") != 1 {
			t.Errorf("got %+v with %+v, %v; asked %q", got, got.Failure, err, u.requests())
		}
	})
	t.Run("deadline without a worker", func(t *testing.T) {
		t.Parallel()
		c, u := newRun(t, false)
		c.dies(t, 1)
		if err := c.archive.PutJSON(t.Context(), "tickets/0001-01-01/resp_1/one",
			activities.CallTicket{ID: "resp_up", Channel: "main", Runs: true}); err != nil {
			t.Fatal(err)
		}
		r := c.worker(t, c.relayer)
		got, err := do[activities.Answered](t, r, r.acts.Relayer.Conclude, c.in)
		if err != nil || got.Failure == nil || got.Failure.Code != "deadline_exceeded" || got.Unknown || got.Cost != 1000 ||
			u.count("POST /responses/resp_up/cancel") != 1 {
			t.Errorf("got %+v with %+v, %v; asked %q", got, got.Failure, err, u.requests())
		}
	})
	t.Run("forgotten", func(t *testing.T) {
		t.Parallel()
		c, u := newRun(t, false)
		u.unknown = true
		got, err := c.try(t)
		if err != nil || got.Failure == nil || got.Unknown || u.count("GET ") != 5 || u.count("POST ") != 1 {
			t.Errorf("got %+v with %+v, %v; asked %q", got, got.Failure, err, u.requests())
		}
	})
	t.Run("no ticket", func(t *testing.T) {
		t.Parallel()
		c, u := newRun(t, false)
		u.unnamed = true
		got, err := c.try(t)
		if err != nil || got.Failure == nil || got.Failure.Code != "upstream_unknown" || u.count("POST ") != 1 {
			t.Errorf("got %+v with %+v, %v; asked %q", got, got.Failure, err, u.requests())
		}
	})
}

// TestTicketGone: a call whose channel is not configured any more waits for its return, and fails after ten minutes.
func TestTicketGone(t *testing.T) {
	t.Parallel()
	for name, ago := range map[string]time.Duration{"just now": 0, "for long": 11 * time.Minute, "while it is read": 11 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := newRun(t, false)
			serve := c.caller.serve
			c.caller.serve = func(_ http.ResponseWriter, _ *http.Request, run *activities.CallRun) {
				if run.Ticketing.At != (providers.KeyRef{Channel: "gone", Fingerprint: "f"}) {
					t.Errorf("it is at %+v", run.Ticketing.At)
				}
				run.Fault = &providers.Fault{Kind: providers.Upstream, Err: router.ErrChannelGone}
			}
			c.progress = activities.CallProgress{Attempts: 1, Ticket: &activities.CallTicket{ID: "resp_up", Channel: "gone", Key: "f", Runs: true}}
			if name == "while it is read" {
				c.caller.serve = serve
				c.relayer.Channels = fakeChannels{resolve: func(string, string, string) (providers.Target, error) {
					return providers.Target{}, router.ErrChannelGone
				}}
			}
			if ago > 0 {
				c.progress.GoneSince = time.Now().Add(-ago)
			}
			got, err := c.try(t)
			if ago == 0 {
				if err == nil {
					t.Fatalf("got %+v", got)
				}
				if _, retried, delay := fault(t, err); !retried || delay <= 0 {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || got.Failure == nil || got.Failure.Code != "channel_gone" || got.Cost != 1000 {
				t.Errorf("got %+v with %+v, %v", got, got.Failure, err)
			}
		})
	}
}
