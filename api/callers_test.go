package api_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"modelrelay/activities"
	"modelrelay/api"
	"modelrelay/providers"
	"modelrelay/storage"
	"modelrelay/storage/archive"
	"modelrelay/storage/testwait"
	"modelrelay/storage/tokens"
	"modelrelay/workflows"
)

// keyring holds one token, which a test changes.
type keyring struct {
	mu    sync.Mutex
	token *tokens.Token
	err   error
}

func (k *keyring) Authenticate(context.Context, string) (*tokens.Token, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.token, k.err
}

func (k *keyring) change(change func(*tokens.Token)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	next := *k.token
	change(&next)
	k.token = &next
}

// pulled is an object of the archive that has further bytes for each value of more.
type pulled struct{ more <-chan struct{} }

func (e pulled) Open(ctx context.Context, _ string) (*archive.Reader, error) {
	return archive.NewReader(archive.Object{Size: 1 << 40}, func(int64, int64) (io.ReadCloser, error) {
		return io.NopCloser(pulledBytes{e.more, ctx.Done()}), nil
	}), nil
}

type pulledBytes struct {
	more <-chan struct{}
	// ended is closed when no goroutine reads it any more.
	ended <-chan struct{}
}

func (e pulledBytes) Read(p []byte) (int, error) {
	select {
	case <-e.more:
		return copy(p, bytes.Repeat([]byte("m"), len(p))), nil // enough to pass the server's own buffer
	case <-e.ended:
		return 0, context.Canceled
	}
}

// hangingUpstream answers with the beginning of an event stream, or with nothing, and then sends no more.
func hangingUpstream(ctx context.Context, _ providers.Target, call *providers.Call) (*http.Response, error) {
	if !call.Stream {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	out, in := io.Pipe()
	context.AfterFunc(ctx, func() { _ = in.CloseWithError(ctx.Err()) })
	go func() { _, _ = io.WriteString(in, "data: {\"choices\":[]}\n\n") }()
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: out}, nil
}

// TestTokenLosesWhatIsUnderWay: what a token began it may not end once it may no longer be used, or not for that.
func TestTokenLosesWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	const unauthenticated, forbidden = "invalid_api_key", "permission_denied"
	for _, test := range []struct {
		name string
		code string
		ring func(*keyring)
	}{
		{"revoked", unauthenticated, func(k *keyring) {
			k.change(func(token *tokens.Token) { token.Disabled, token.Revoked = true, true })
		}},
		{"disabled", unauthenticated, func(k *keyring) { k.change(func(token *tokens.Token) { token.Disabled = true }) }},
		{"rotated", unauthenticated, func(k *keyring) { k.mu.Lock(); defer k.mu.Unlock(); k.token, k.err = nil, storage.ErrNotFound }},
		{"expired", unauthenticated, func(k *keyring) {
			k.change(func(token *tokens.Token) { token.Expires = time.Now() })
		}},
		{"group", forbidden, func(k *keyring) { k.change(func(token *tokens.Token) { token.Group = "other" }) }},
		{"network", forbidden, func(k *keyring) { k.change(func(token *tokens.Token) { token.Networks = []string{"192.0.2.0/24"} }) }},
		{"operations", forbidden, func(k *keyring) { k.change(func(token *tokens.Token) { token.Operations = []string{"realtime"} }) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ring := &keyring{token: &tokens.Token{ID: "good", Name: "good", Group: "default"}}
			more := make(chan struct{}, 1)
			g := newGateway(t, hangingUpstream, func(_ *gateway, o *api.Options) {
				o.Tokens, o.Archive = ring, pulled{more: more}
			})
			g.tasks.put(running(10))
			done := running(100)
			done.ID, done.State, done.ExpiresAt = "video_2", workflows.Completed, time.Now().Add(time.Hour)
			done.Outputs = []activities.Output{{Object: "a", Size: 1 << 40}}
			g.tasks.put(done)
			server := httptest.NewServer(g.Handler())
			t.Cleanup(server.Close)

			const body = `{"model":"gpt-4o","messages":[]%s}`
			asked := []struct{ name, method, path, body, begins string }{
				{"stream", "POST", "/v1/chat/completions", fmt.Sprintf(body, `,"stream":true`), "data:"},
				{"chat", "POST", "/v1/chat/completions", fmt.Sprintf(body, ""), ""},
				{"events", "GET", "/v1/videos/video_1/events", "", "id:"},
				{"wait", "GET", "/v1/videos/video_1?wait=60", "", ""},
				{"download", "GET", "/v1/videos/video_2/content", "", "mm"},
			}
			var begun, over sync.WaitGroup
			begun.Add(len(asked))
			for _, ask := range asked {
				over.Go(func() {
					req := request(ask.method, server.URL+ask.path, ask.body)
					req.RequestURI = ""
					seen := sync.OnceFunc(begun.Done)
					defer seen()
					if ask.begins == "" {
						seen()
					}
					if ask.name == "download" {
						more <- struct{}{}
					}
					resp, err := http.DefaultClient.Do(req.WithContext(t.Context()))
					if err != nil {
						t.Errorf("%s: %v", ask.name, err)
						return
					}
					defer resp.Body.Close()
					var got bytes.Buffer
					buf := make([]byte, 512)
					for err == nil {
						var n int
						if n, err = resp.Body.Read(buf); n > 0 {
							got.Write(buf[:n])
							if ask.begins != "" && strings.HasPrefix(got.String(), ask.begins) {
								seen()
							}
						}
					}
					switch text := got.String(); {
					case ask.name == "download":
						if errors.Is(err, io.EOF) {
							t.Errorf("%s: ended well", ask.name)
						}
					case !errors.Is(err, io.EOF) || !strings.Contains(text, `"code":"`+test.code+`"`):
						t.Errorf("%s: %d %q, %v; want an end that says %s", ask.name, resp.StatusCode, text, err, test.code)
					case ask.begins == "" && resp.StatusCode != 401 && resp.StatusCode != 403:
						t.Errorf("%s: answered %d", ask.name, resp.StatusCode)
					}
				})
			}
			begun.Wait()
			testwait.Eventually(t, "all are under way", patience,
				func() bool { return g.Open().Requests == int64(len(asked)) && g.tasks.watchers() == 2 })
			test.ring(ring)
			over.Wait()
		})
	}
}

// TestTokenChangeEndsNothing: neither a change that takes nothing from it ends a token's stream, nor a store that is
// unavailable.
func TestTokenChangeEndsNothing(t *testing.T) {
	t.Parallel()
	ring := &keyring{token: &tokens.Token{ID: "good", Name: "good", Group: "default"}}
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, nil, func(_ *gateway, o *api.Options) { o.Tokens = ring })
		g.tasks.put(running(10))
		ended := make(chan *httptest.ResponseRecorder, 1)
		go func() { ended <- g.do(t, request("GET", "/v1/videos/video_1?wait=60", "")) }()
		synctest.Wait()
		ring.change(func(token *tokens.Token) { token.RequestsPerMinute = 1 })
		pass(5 * time.Second)
		ring.mu.Lock()
		ring.err = storage.ErrUnavailable
		ring.mu.Unlock()
		pass(5 * time.Second)
		synctest.Wait()
		select {
		case rec := <-ended:
			t.Fatalf("ended: %d %s", rec.Code, rec.Body)
		default:
		}
		g.tasks.put(running(20))
		if rec := <-ended; rec.Code != 200 {
			t.Errorf("got %d %s", rec.Code, rec.Body)
		}
		pass(5 * time.Minute) // what is kept of a token that is gone is let go, and the timer with it
	})
}

// TestWatchersHaveALimit: a token's streams and waits beyond it are refused, and their places come back.
func TestWatchersHaveALimit(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, func(g *gateway, _ *api.Options) {
		g.tokens[goodKey] = &tokens.Token{ID: "good", Name: "good", Group: "default", Limits: tokens.Limits{MaxWatchers: 2}}
	})
	g.tasks.put(running(10))
	server := httptest.NewServer(g.Handler())
	t.Cleanup(server.Close)
	_, events := follow(t.Context(), t, server.URL+"/v1/videos/video_1/events")
	if _, ok := next(t, events); !ok {
		t.Fatal("the first stream ended")
	}
	waited := make(chan int, 1)
	go func() {
		req := request("GET", server.URL+"/v1/videos/video_1?wait=60", "")
		req.RequestURI = ""
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			waited <- 0
			return
		}
		_ = resp.Body.Close()
		waited <- resp.StatusCode
	}()
	testwait.Eventually(t, "both are watched", patience, func() bool { return g.tasks.watchers() == 2 })
	for _, path := range []string{"/v1/videos/video_1/events", "/v1/videos/video_1?wait=1", generations + "/video_1?wait=1"} {
		rec := g.do(t, request("GET", path, ""))
		if code, _ := fault(t, rec); rec.Code != 429 || code != "rate_limit_exceeded" || rec.Header().Get("Retry-After") == "" {
			t.Errorf("%s beyond the limit: %d %s %v", path, rec.Code, rec.Body, rec.Header())
		}
	}
	result := request("POST", "/vendorC/?Action=CVSync2AsyncGetResult&Version=2022-08-31&wait=1", `{"req_key":"k","task_id":"video_1"}`)
	if rec := g.do(t, result); rec.Code != 429 || !strings.Contains(rec.Body.String(), "50429") {
		t.Errorf("vendor C's wait beyond the limit: %d %s", rec.Code, rec.Body)
	}
	if rec := g.do(t, request("GET", "/v1/videos/video_1", "")); rec.Code != 200 {
		t.Errorf("a plain read during them: %d %s", rec.Code, rec.Body)
	}
	g.tasks.put(failed(10))
	if code := <-waited; code != 200 {
		t.Errorf("the wait: %d", code)
	}
	for range events { // to its end
	}
	g.tasks.put(running(10))
	testwait.Eventually(t, "a place is free again", patience,
		func() bool { return g.do(t, request("GET", "/v1/videos/video_1?wait=1", "")).Code == 200 })
}

// TestReadsHaveALimit: all reads of tasks share it, and those of another token have their own.
func TestReadsHaveALimit(t *testing.T) {
	t.Parallel()
	const read = 6
	g := newGateway(t, nil, func(g *gateway, _ *api.Options) {
		g.tokens[goodKey] = &tokens.Token{ID: "good", Name: "good", Group: "default", Limits: tokens.Limits{ReadsPerMinute: read}}
	})
	g.tasks.put(running(10))
	reads := func() []*http.Request {
		return []*http.Request{
			request("GET", "/v1/videos/video_1", ""),
			request("GET", generations+"/video_1", ""),
			request("POST", "/vendorC/?Action=CVSync2AsyncGetResult&Version=2022-08-31", `{"req_key":"k","task_id":"video_1"}`),
			request("GET", "/v1/videos/video_1/content", ""),
			request("HEAD", "/v1/videos/video_1/content", ""),
			request("GET", "/v1/videos/video_0/events", ""),
			request("GET", "/v1/videos?limit=100", ""),
			request("POST", "/v1/videos/video_1/cancel", ""),
			request("POST", generations+"/video_1/cancel", ""),
			request("DELETE", "/v1/videos/video_0", ""),
			request("DELETE", generations+"/video_0", ""),
			request("GET", generations+"/video_0/events", ""),
		}
	}
	synctest.Test(t, func(t *testing.T) {
		for i, req := range reads()[:read] {
			if rec := g.do(t, req); rec.Code == 429 {
				t.Errorf("read %d: %s %s: %s", i, req.Method, req.URL, rec.Body)
			}
		}
		for _, req := range reads() {
			if rec := g.do(t, req); rec.Code != 429 || rec.Header().Get("Retry-After") != "10" {
				t.Errorf("%s %s beyond the limit: %d %s, retry after %s", req.Method, req.URL, rec.Code, rec.Body, rec.Header().Get("Retry-After"))
			}
		}
		if rec := g.do(t, request("GET", "/v1/videos/video_1", "", "Authorization", "Bearer "+otherKey)); rec.Code != 404 {
			t.Errorf("another token: %d %s", rec.Code, rec.Body)
		}
		if rec := g.do(t, request("POST", "/v1/videos", `{"model":"sora-2","prompt":"p"}`)); rec.Code != 200 {
			t.Errorf("a create is no read: %d %s", rec.Code, rec.Body)
		}
		pass(10 * time.Second)
		if rec := g.do(t, request("GET", "/v1/videos?limit=100", "")); rec.Code != 200 {
			t.Errorf("after the wait: %d %s", rec.Code, rec.Body)
		}
		pass(time.Minute)
		if rec := g.do(t, request("GET", "/v1/videos/video_1", "")); rec.Code != 429 {
			t.Errorf("a page of 100 counts as so many: %d", rec.Code)
		}
		pass(time.Hour)
	})
}

// BenchmarkCall is a relayed chat between socket and vendor.
func BenchmarkCall(b *testing.B) {
	const answer = `{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}`
	g := newGateway(b, func(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
		return upstreamAnswer("application/json", answer), nil
	}, func(_ *gateway, o *api.Options) { o.Log = nil })
	ctx, cancel := context.WithCancelCause(b.Context()) // as net/http has one
	defer cancel(errors.New("over"))
	b.ReportAllocs()
	for b.Loop() {
		rec := httptest.NewRecorder()
		g.Handler().ServeHTTP(rec, request("POST", "/v1/chat/completions", `{"model":"gpt-4o","messages":[]}`).WithContext(ctx))
		if rec.Code != 200 {
			b.Fatal(rec.Body)
		}
	}
}
