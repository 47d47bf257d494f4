package relay_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/relay"
)

func TestDo(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, answers(document))
	call := chatCall()
	call.RequestID = "my-id"
	answer, err := b.Do(t.Context(), "default", call)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(answer.Body)
	if err != nil || string(got) != document {
		t.Errorf("got body %q, %v", got, err)
	}
	if err := answer.Body.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if answer.Status != 200 || answer.Stream || answer.Channel != "a" || answer.Attempts != 1 {
		t.Errorf("got %+v", answer)
	}
	if len(answer.Header) != 2 || answer.Header.Get("Content-Type") != "application/json" || answer.Header.Get("Content-Length") == "" {
		t.Errorf("got headers %v, want those of the body alone", answer.Header)
	}
	if usage, ok := answer.Usage(); !ok || usage != (providers.Usage{Input: 1200, Cached: 1000, Output: 34}) {
		t.Errorf("got usage %+v, %v", usage, ok)
	}
	lines := b.log.lines(t)
	if len(lines) != 1 || lines[0]["channel"] != "a" || lines[0]["attempt"] != 1.0 || lines[0]["status"] != 200.0 || lines[0]["ms"] == nil ||
		lines[0]["request_id"] != "my-id" || lines[0]["fault"] != nil || lines[0]["level"] != "DEBUG" {
		t.Errorf("got log %v", lines)
	}
}

func TestDoFallsOver(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		first http.HandlerFunc // nil: the address refuses connections
		kind  string
		// once: the channel cools down after one such fault, not only after several.
		once bool
	}{
		{name: "unreachable", kind: "upstream"},
		{"429", status(429, "Retry-After", "5"), "rate_limited", true},
		{"429 without a word", status(429), "rate_limited", true},
		{"500", status(500), "upstream", false},
		{"503", status(503), "overloaded", false},
		{"503 for a time", status(503, "Retry-After", "5"), "overloaded", false},
		{"529", status(529), "overloaded", false},
		{"408", status(408), "timeout", false},
		{"refused key", status(401), "upstream", true},
		{"out of money", status(402), "upstream", true},
		{"not for this key", status(403), "upstream", false},
		{"a web page", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>sign in</html>") }, "upstream", false},
		{"nothing", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "application/json") }, "upstream", false},
		{"a header and then nothing", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "100")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, "upstream", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil, tc.first, answers(document))
			answer, err := b.Do(t.Context(), "default", chatCall())
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			if answer.Channel != "b" || answer.Attempts != 2 {
				t.Errorf("got channel %s after %d attempts, want b after 2", answer.Channel, answer.Attempts)
			}
			if got, err := io.ReadAll(answer.Body); err != nil || string(got) != document {
				t.Errorf("got body %q, %v", got, err)
			}
			if b.coolsDown("a") != tc.once || b.coolsDown("b") {
				t.Errorf("after one fault a cools down: %v, b: %v", b.coolsDown("a"), b.coolsDown("b"))
			}
			lines := b.log.lines(t)
			if len(lines) != 2 || lines[0]["fault"] != tc.kind || lines[1]["fault"] != nil {
				t.Errorf("got log %v", lines)
			}
			if log := b.log.String(); strings.Contains(log, "hush") || strings.Contains(log, "private prompt") {
				t.Errorf("the log has secrets: %s", log)
			}
			for range failures {
				again, err := b.Do(t.Context(), "default", chatCall())
				if err != nil {
					t.Fatal(err)
				}
				answer = again
				_ = again.Body.Close()
			}
			if !b.coolsDown("a") || b.coolsDown("b") || answer.Attempts != 1 {
				t.Errorf("after %d faults a cools down: %v, b: %v, the last call took %d attempts", failures, b.coolsDown("a"), b.coolsDown("b"),
					answer.Attempts)
			}
		})
	}
}

func TestDoStopsAtTheCallersFault(t *testing.T) {
	t.Parallel()
	for code, kind := range map[int]providers.Kind{
		400: providers.Invalid, 404: providers.NotFound, 413: providers.TooLarge,
		422: providers.Invalid,
	} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil, status(code), answers(document))
			fault := b.fault(t.Context(), t, chatCall())
			if fault.Kind != kind || b.coolsDown("a") {
				t.Errorf("got %v, a cools down: %v", fault, b.coolsDown("a"))
			}
			if body := string(fault.Upstream.Body); strings.Contains(body, "hush") || !strings.Contains(body, "upstream words about ***") {
				t.Errorf("got reply %q, want it without the key", body)
			}
			if lines := b.log.lines(t); len(lines) != 1 || lines[0]["upstream"] != nil {
				t.Errorf("got log %v, want no words about a request", lines)
			}
		})
	}
}

func TestDoOtherKey(t *testing.T) {
	t.Parallel()
	var used []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		used = append(used, key)
		if key != "good" {
			status(401)(w, r)
			return
		}
		answers(document)(w, r)
	}))
	t.Cleanup(server.Close)
	b := benchOf(t, nil, []providers.Channel{{
		Name: "a", Vendor: "openai", BaseURL: server.URL, Keys: []providers.Secret{"bad0", "bad1", "good"},
		Models: map[string]string{"m": ""}, Groups: []string{"default"},
	}})
	for range 3 {
		answer, err := b.Do(t.Context(), "default", chatCall())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
	}
	if want := []string{"bad0", "bad1", "good", "good", "good"}; !slices.Equal(used, want) {
		t.Errorf("got keys %q, want %q", used, want)
	}
}

func TestDoGivesUp(t *testing.T) {
	t.Parallel()
	t.Run("after as many attempts as allowed", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, &relay.Options{MaxAttempts: 2}, status(500), status(429, "Retry-After", "3"), answers(document))
		fault := b.fault(t.Context(), t, chatCall())
		if fault.Kind != providers.RateLimited || fault.RetryAfter != 3*time.Second {
			t.Errorf("got %v, want the last attempt's", fault)
		}
		if got := len(b.log.lines(t)); got != 2 {
			t.Errorf("got %d attempts, want 2", got)
		}
	})
	t.Run("when all were tried", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, nil, status(503, "Retry-After", "60"))
		for range failures {
			if fault := b.fault(t.Context(), t, chatCall()); fault.Kind != providers.Overloaded || fault.Upstream == nil {
				t.Errorf("got %v, want the last attempt's", fault)
			}
		}
		if fault := b.fault(t.Context(), t, chatCall()); fault.Kind != providers.Overloaded || fault.RetryAfter <= 0 || fault.Upstream != nil {
			t.Errorf("got %v, want overloaded with RetryAfter while the channel cools down", fault)
		}
	})
	t.Run("at an unknown model", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, nil, answers(document))
		fault := b.fault(t.Context(), t, chatCall(func(c *providers.Call) { c.Model = "nope" }))
		if fault.Kind != providers.ModelNotFound {
			t.Errorf("got %v", fault)
		}
	})
}

// TestDoKeptConnection: if a reused connection breaks, Do repeats the request at the same channel and counts no failure.
func TestDoKeptConnection(t *testing.T) {
	t.Parallel()
	var served atomic.Int32
	b := newBench(t, nil, func(w http.ResponseWriter, r *http.Request) {
		if served.Add(1) == 2 {
			_, _ = io.Copy(io.Discard, r.Body)
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_ = conn.Close() // is what the test is about
			return
		}
		answers(document)(w, r)
	})
	for attempts := 1; attempts <= 2; attempts++ {
		answer, err := b.Do(t.Context(), "default", chatCall())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		if answer.Attempts != attempts {
			t.Errorf("got %d attempts, want %d", answer.Attempts, attempts)
		}
	}
	if b.coolsDown("a") {
		t.Error("the channel cools down")
	}
}

func TestDoMapsTheModel(t *testing.T) {
	t.Parallel()
	var got []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, _ = io.ReadAll(r.Body)
		answers(document)(w, r)
	}))
	t.Cleanup(server.Close)
	b := benchOf(t, nil, []providers.Channel{{
		Name: "a", Vendor: "openai", BaseURL: server.URL, Keys: []providers.Secret{"k"},
		Models: map[string]string{"m": "theirs"}, Groups: []string{"default"},
	}})
	for _, filler := range []int{0, 100 << 10} {
		body := `{ "seed":1.0,"model": "m","user":"` + strings.Repeat("x", filler) + `"}`
		at := strings.Index(body, `"m"`)
		answer, err := b.Do(t.Context(), "default", chatCall(func(c *providers.Call) {
			c.Body, c.ModelAt = []byte(body), providers.Span{From: at, To: at + 3}
			c.Edits = []providers.Edit{{At: providers.Span{From: 1, To: 1}, Text: []byte(`"stream_options":{},`)}}
		}))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		want := `{"stream_options":{},` + strings.Replace(body[1:], `"m"`, `"theirs"`, 1)
		if string(got) != want {
			t.Errorf("got body %.60q…, want %.60q…", got, want)
		}
	}
}

func TestStreamCut(t *testing.T) {
	t.Parallel()
	for _, call := range []*providers.Call{chatCall(streamed), chatCall(streamed, hidden)} {
		b := newBench(t, nil, func(w http.ResponseWriter, r *http.Request) {
			streams(chunk1, chunk2)(w, r)
			panic(http.ErrAbortHandler)
		}, streams(lastWord))
		answer, err := b.Do(t.Context(), "default", call)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if string(got) != chunk1+chunk2 {
			t.Errorf("got %q, want what came before the cut", got)
		}
		if fault := providers.AsFault(err); err == nil || fault.Kind != providers.Upstream {
			t.Errorf("got error %v, want an upstream fault", err)
		}
		if _, again := answer.Body.Read(make([]byte, 1)); !errors.Is(again, err) && again == nil {
			t.Errorf("got error %v after the end", again)
		}
		if _, ok := answer.Usage(); ok {
			t.Error("a stream without counts counts")
		}
	}
}

func TestClientGone(t *testing.T) {
	t.Parallel()
	t.Run("before the first byte", func(t *testing.T) {
		t.Parallel()
		gone := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		b := newBench(t, nil, func(_ http.ResponseWriter, r *http.Request) {
			defer close(gone)
			_, _ = io.Copy(io.Discard, r.Body)
			cancel()
			<-r.Context().Done()
		}, answers(document))
		if fault := b.fault(ctx, t, chatCall()); fault.Kind != providers.Canceled {
			t.Errorf("got %v, want canceled", fault)
		}
		<-gone
		if b.coolsDown("a") || len(b.log.lines(t)) != 1 {
			t.Errorf("a cools down: %v; log %v", b.coolsDown("a"), b.log.lines(t))
		}
	})
	t.Run("in the stream", func(t *testing.T) {
		t.Parallel()
		gone := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		b := newBench(t, nil, func(w http.ResponseWriter, r *http.Request) {
			defer close(gone)
			streams(chunk1)(w, r)
			<-r.Context().Done()
		})
		answer, err := b.Do(ctx, "default", chatCall(streamed))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if _, err := io.ReadFull(answer.Body, make([]byte, len(chunk1))); err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, err := answer.Body.Read(make([]byte, 10)); providers.AsFault(err) == nil || providers.AsFault(err).Kind != providers.Canceled {
			t.Errorf("got error %v, want canceled", err)
		}
		<-gone
		if b.coolsDown("a") {
			t.Error("the channel is blamed")
		}
	})
	t.Run("by closing the body", func(t *testing.T) {
		t.Parallel()
		gone := make(chan struct{})
		b := newBench(t, nil, func(w http.ResponseWriter, r *http.Request) {
			defer close(gone)
			streams(chunk1)(w, r)
			<-r.Context().Done()
		})
		answer, err := b.Do(t.Context(), "default", chatCall(streamed))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		<-gone
	})
}

// TestReuse: an answer read to its end leaves its connection for the next.
func TestReuse(t *testing.T) {
	t.Parallel()
	var opened atomic.Int32
	server := httptest.NewUnstartedServer(nil)
	server.Config.Handler = streams(chunk1, counts, lastWord)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	b := benchOf(t, nil, []providers.Channel{{
		Name: "a", Vendor: "openai", BaseURL: server.URL, Keys: []providers.Secret{"k"}, Models: map[string]string{"m": ""},
		Groups: []string{"default"},
	}})
	for range 50 {
		answer, err := b.Do(t.Context(), "default", chatCall(streamed))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
	}
	if got := opened.Load(); got != 1 {
		t.Errorf("opened %d connections for calls one after the other", got)
	}
}
