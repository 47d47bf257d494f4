package api_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"modelrelay/api"
	"modelrelay/providers"
	"modelrelay/providers/pricing"
	"modelrelay/storage/testwait"
	"modelrelay/storage/tokens"
)

// slowBody is a request whose body is claimed to be long and has come only in part. done gets its answer.
type slowBody struct {
	more *io.PipeWriter
	done chan *httptest.ResponseRecorder
}

// sendSlowly begins a chat that claims size bytes, -1: does not say, and sends some of them.
func (g *gateway) sendSlowly(t *testing.T, key string, size int64, some string) slowBody {
	t.Helper()
	read, write := io.Pipe()
	req := request("POST", "/v1/chat/completions", "", "Authorization", "Bearer "+key)
	req.Body, req.ContentLength = read, size
	s := slowBody{write, make(chan *httptest.ResponseRecorder, 1)}
	go func() {
		rec := httptest.NewRecorder()
		g.Handler().ServeHTTP(rec, req.WithContext(t.Context()))
		_ = read.Close() // as the server does
		s.done <- rec
	}()
	t.Cleanup(func() { _ = write.CloseWithError(io.ErrUnexpectedEOF) })
	if _, err := io.WriteString(write, some); err != nil && len(some) > 0 {
		t.Logf("the body was not taken: %v", err)
	}
	return s
}

// breakOff ends the body early and waits for the answer.
func (s slowBody) breakOff() *httptest.ResponseRecorder {
	_ = s.more.CloseWithError(io.ErrUnexpectedEOF)
	return <-s.done
}

// TestBodyGrowsWithWhatArrives: what a body claims to be costs nothing; what arrived costs at most eight times itself.
func TestBodyGrowsWithWhatArrives(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	const claimed = 64 << 20
	for _, test := range []struct{ claimed, sent, most int64 }{
		{claimed, 1, 64 << 10}, {claimed, 64 << 10, 8 * 64 << 10}, {claimed, 1 << 20, 8 << 20}, {-1, 1, 8 << 10}, {-1, 1 << 20, 2<<20 + 64<<10},
	} {
		s := g.sendSlowly(t, goodKey, test.claimed, strings.Repeat("x", int(test.sent)))
		testwait.Eventually(t, "a body is being read", patience, func() bool { return g.BodiesTaken() > 0 })
		if got := g.BodiesTaken(); got > test.most {
			t.Errorf("%d bytes of %d hold %d, want at most %d", test.sent, test.claimed, got, test.most)
		}
		if rec := s.breakOff(); rec.Code != http.StatusBadRequest || g.BodiesTaken() != 0 {
			t.Errorf("broken off: got %d, and %d bytes are held", rec.Code, g.BodiesTaken())
		}
	}
}

// TestSizedBodyMemory: a body of a known length is read for little more than one copy of itself. Not parallel: it reads
// what the whole process allocates.
func TestSizedBodyMemory(t *testing.T) { //nolint:paralleltest // see above
	g := newGateway(t, nil, nil)
	req, body := chunkedChat(20 << 20)
	req.ContentLength = int64(len(body))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	rec := g.do(t, req)
	runtime.ReadMemStats(&after)
	if rec.Code != http.StatusOK {
		t.Fatalf("got %d %s", rec.Code, rec.Body)
	}
	if got, most := after.TotalAlloc-before.TotalAlloc, uint64(len(body))*5/4; got > most {
		t.Errorf("allocated %d bytes for a body of %d, want at most %d", got, len(body), most)
	}
}

// TestBodyMemory: the request bodies in memory are bounded in total and for each token, in every format. Released memory can be used
// again.
func TestBodyMemory(t *testing.T) {
	t.Parallel()
	const room = 1 << 20
	g := newGateway(t, nil, func(g *gateway, o *api.Options) {
		o.BodyMemory = room
		g.tokens["sk-third"] = &tokens.Token{ID: "third", Name: "third", Group: "default"}
	})
	half := strings.Repeat("x", 300<<10) // its buffer is the half of the room
	first := g.sendSlowly(t, goodKey, room/2, half)
	testwait.Eventually(t, "half of the room is taken", patience, func() bool { return g.BodiesTaken() == room/2 })
	rec := g.do(t, request("POST", "/v1/chat/completions", smallChat))
	if rec.Code != http.StatusTooManyRequests || rec.Header().Get("Retry-After") == "" ||
		!strings.Contains(rec.Body.String(), "bodies of this API key") {
		t.Errorf("a token with its share: got %d %s, want 429", rec.Code, rec.Body)
	}
	second := g.sendSlowly(t, otherKey, room/2, half)
	testwait.Eventually(t, "all of the room is taken", patience, func() bool { return g.BodiesTaken() == room })
	for path, status := range map[string]int{
		"/v1/chat/completions": 503, "/v1/messages": 529, "/v1beta/models/gpt-4o:generateContent": 503, "/v1/videos": 503,
		"/vendorC/?Action=CVSync2AsyncSubmitTask&Version=2022-08-31": 503,
	} {
		rec := g.do(t, request("POST", path, `{"model":"gpt-4o"}`, "Authorization", "Bearer sk-third", "anthropic-version", "2023-06-01"))
		if rec.Code != status || rec.Header().Get("Retry-After") == "" {
			t.Errorf("%s without room: got %d %v %s, want %d", path, rec.Code, rec.Header(), rec.Body, status)
		}
	}
	first.breakOff()
	if rec := g.do(t, request("POST", "/v1/chat/completions", smallChat, "Authorization", "Bearer sk-third")); rec.Code != http.StatusOK {
		t.Errorf("with room again: got %d %s", rec.Code, rec.Body)
	}
	second.breakOff()
	if got := g.BodiesTaken(); got != 0 {
		t.Errorf("%d bytes are held in the end", got)
	}
}

// TestBodyIsLetGoWithTheAnswer: a body is neither counted nor held while its answer comes.
func TestBodyIsLetGoWithTheAnswer(t *testing.T) {
	t.Parallel()
	answering, freed, finish := make(chan struct{}), make(chan struct{}), make(chan struct{})
	g := newGateway(t, func(_ context.Context, _ providers.Target, call *providers.Call) (*http.Response, error) {
		runtime.AddCleanup(&call.Body[0], func(done chan struct{}) { close(done) }, freed)
		body, out := io.Pipe()
		go func() {
			_, _ = io.WriteString(out, "data: {}\n\n")
			close(answering)
			<-finish
			_, _ = io.WriteString(out, "data: [DONE]\n\n")
			_ = out.Close()
		}()
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body}, nil
	}, nil)
	done := make(chan *httptest.ResponseRecorder, 1)
	go func() {
		body := `{"model":"gpt-4o","stream":true,"messages":[{"role":"user","content":"` + strings.Repeat("word ", 1<<20) + `"}]}`
		rec := httptest.NewRecorder()
		g.Handler().ServeHTTP(rec, request("POST", "/v1/chat/completions", body).WithContext(t.Context()))
		done <- rec
	}()
	<-answering
	testwait.Eventually(t, "all room is given back", patience, func() bool { return g.BodiesTaken() == 0 })
	testwait.Eventually(t, "the body is freed", patience, func() bool {
		runtime.GC()
		return closed(freed)
	})
	close(finish)
	if rec := <-done; rec.Code != http.StatusOK {
		t.Errorf("got %d %s", rec.Code, rec.Body)
	}
}

// TestLimitsHoldBeforeTheBody: a call beyond its token's limits is refused before its body is there, with a budget too,
// and one whose body never comes has counted.
func TestLimitsHoldBeforeTheBody(t *testing.T) {
	t.Parallel()
	for name, token := range map[string]tokens.Token{
		"calls at a time":           {Limits: tokens.Limits{Concurrency: 2}},
		"calls at a time, budget":   {Limits: tokens.Limits{Concurrency: 2}, Budget: 1},
		"requests a minute":         {Limits: tokens.Limits{RequestsPerMinute: 2}},
		"requests a minute, budget": {Limits: tokens.Limits{RequestsPerMinute: 2}, Budget: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			token.ID, token.Name, token.Group = "good", "good", "default"
			limits := redisLimits(t)
			g := newGateway(t, nil, func(g *gateway, o *api.Options) {
				g.tokens[goodKey], o.Limits = &token, limits
				o.Prices = pricing.NewList(map[string]pricing.Price{"gpt-4o": {Request: rate(t, "0.000001")}})
			})
			bodies := []slowBody{g.sendSlowly(t, goodKey, 64<<20, "{"), g.sendSlowly(t, goodKey, 20<<10, "{")}
			testwait.Eventually(t, "both bodies are begun", patience, func() bool { return g.BodiesTaken() > 20<<10 })
			third := g.sendSlowly(t, goodKey, 64<<20, "")
			select {
			case rec := <-third.done:
				if rec.Code != http.StatusTooManyRequests {
					t.Errorf("the third: got %d %s, want 429", rec.Code, rec.Body)
				}
			case <-time.After(patience):
				t.Fatal("the third waits for its body")
			}
			for _, body := range bodies {
				body.breakOff()
			}
			if token.RequestsPerMinute > 0 {
				if rec := g.do(t, request("POST", "/v1/chat/completions", smallChat)); rec.Code != http.StatusTooManyRequests {
					t.Errorf("after two whose bodies never came: got %d %s, want 429", rec.Code, rec.Body)
				}
				return
			}
			testwait.Eventually(t, "a third is served", patience, func() bool {
				return g.do(t, request("POST", "/v1/chat/completions", smallChat)).Code == http.StatusOK
			})
		})
	}
}
