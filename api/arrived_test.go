package api_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"modelrelay/api"
	"modelrelay/providers"
	"modelrelay/providers/pricing"
	"modelrelay/storage"
	"modelrelay/storage/limits"
	"modelrelay/storage/testwait"
	"modelrelay/storage/tokens"
)

// askedLimits are limits that note what they are asked.
type askedLimits struct {
	*limits.Limiter

	mu    sync.Mutex
	asked []storage.Allowance
}

func (l *askedLimits) Admit(ctx context.Context, caller storage.Allowance, cost limits.Cost) (limits.Grant, error) {
	l.mu.Lock()
	l.asked = append(l.asked, caller)
	l.mu.Unlock()
	return l.Limiter.Admit(ctx, caller, cost)
}

// take returns what was asked since the last time.
func (l *askedLimits) take() []storage.Allowance {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() { l.asked = nil }()
	return l.asked
}

// await waits until the limits were asked n times.
func (l *askedLimits) await(t *testing.T, n int) {
	t.Helper()
	testwait.Eventually(t, "the limits are asked", patience, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.asked) == n
	})
}

// metered is a gateway at a listener whose good token has limits and a budget, of which each call takes a thousandth.
func metered(t *testing.T, token tokens.Token, upstream relayer) (listening, *askedLimits) {
	t.Helper()
	token.ID, token.Name, token.Group = "good", "good", "default"
	asked := &askedLimits{Limiter: redisLimits(t)}
	g := newGateway(t, upstream, func(g *gateway, o *api.Options) {
		g.tokens[goodKey], o.Limits = &token, asked
		o.Prices = pricing.NewList(map[string]pricing.Price{"gpt-4o": {Request: rate(t, "0.001")}})
	})
	return listenWith(t, g, 100), asked
}

// chatHead is the header of a chat with a body of so many bytes.
func chatHead(size int) string {
	return fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: gateway.test\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n", goodKey, size)
}

// client is one connection to a gateway.
type client struct {
	net.Conn

	answers *bufio.Reader
}

func (l listening) client(t *testing.T) client {
	t.Helper()
	conn := l.connect(t, "127.0.0.1")
	return client{conn, bufio.NewReader(conn)}
}

func (c client) send(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

// answer reads the next answer.
func (c client) answer(t *testing.T) (*http.Response, string) {
	t.Helper()
	resp, err := http.ReadResponse(c.answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

// TestShortCallAsksItsLimitsOnce: a call with a short body is counted and its money reserved in one step, once the body is there; one with
// a long body is counted before that is awaited. All on one connection, in turns.
func TestShortCallAsksItsLimitsOnce(t *testing.T) {
	t.Parallel()
	token := tokens.Token{Limits: tokens.Limits{RequestsPerMinute: 100, TokensPerMinute: 1 << 20, Concurrency: 5}, Budget: 1}
	bodies := make(chan string, 1)
	l, asked := metered(t, token, func(_ context.Context, to providers.Target, call *providers.Call) (*http.Response, error) {
		bodies <- sent(t, to, call)
		return upstreamAnswer("application/json", `{"usage":{"prompt_tokens":1,"completion_tokens":1}}`), nil
	})
	token.ID = "good"
	c := l.client(t)
	long := strings.Replace(smallChat, "{", "{"+strings.Repeat(" ", 20<<10), 1)
	for i, test := range []struct {
		body  string
		inOne bool
		want  []storage.Allowance
	}{
		{smallChat, true, []storage.Allowance{token.Admitted()}},
		{smallChat, false, []storage.Allowance{token.Admitted()}},
		{long, true, []storage.Allowance{token.Counted(), token.Charged()}},
		{long, false, []storage.Allowance{token.Counted(), token.Charged()}},
		{smallChat, true, []storage.Allowance{token.Admitted()}},
	} {
		if c.send(t, chatHead(len(test.body))); test.inOne {
			c.send(t, test.body)
		} else {
			c.send(t, test.body[:10])
			if len(test.want) > 1 {
				asked.await(t, 1)
			}
			c.send(t, test.body[10:])
		}
		resp, text := c.answer(t)
		if resp.StatusCode != http.StatusOK || resp.Header.Get("X-Ratelimit-Remaining-Requests") != strconv.Itoa(99-i) {
			t.Fatalf("call %d: got %s %v %s", i, resp.Status, resp.Header, text)
		}
		if got := <-bodies; got != test.body {
			t.Errorf("call %d: the upstream got %d bytes, want %d", i, len(got), len(test.body))
		}
		if got := asked.take(); !slices.Equal(got, test.want) {
			t.Errorf("call %d: the limits were asked for %+v, want %+v", i, got, test.want)
		}
	}
}

// TestShortBodyHasATime: a short body that does not come in its time ends the call, which has counted.
func TestShortBodyHasATime(t *testing.T) {
	t.Parallel()
	asked := &askedLimits{Limiter: redisLimits(t)}
	g := newGateway(t, nil, func(g *gateway, o *api.Options) {
		g.tokens[goodKey] = &tokens.Token{ID: "good", Group: "default", Limits: tokens.Limits{RequestsPerMinute: 1}, Budget: 1}
		o.Limits, o.BodyTimeout = asked, 50*time.Millisecond
	})
	l := listenWith(t, g, 100)
	for _, status := range []int{http.StatusBadRequest, http.StatusTooManyRequests} {
		c := l.client(t)
		c.send(t, chatHead(len(smallChat))+smallChat[:10])
		if resp, text := c.answer(t); resp.StatusCode != status {
			t.Errorf("got %s %s, want %d", resp.Status, text, status)
		}
	}
	if n := len(asked.take()); n != 2 {
		t.Errorf("the limits were asked %d times, want 2", n)
	}
}

// TestLimitsHoldBeforeABodyThatIsAwaited is TestLimitsHoldBeforeTheBody over connections: no long body is awaited of a call beyond its
// limits, and one whose body never comes has counted.
func TestLimitsHoldBeforeABodyThatIsAwaited(t *testing.T) {
	t.Parallel()
	long := strings.Replace(smallChat, "{", "{"+strings.Repeat(" ", 20<<10), 1)
	for name, limits := range map[string]tokens.Limits{
		"calls at a time":   {Concurrency: 2},
		"requests a minute": {RequestsPerMinute: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, asked := metered(t, tokens.Token{Limits: limits, Budget: 1}, nil)
			slow := []client{l.client(t), l.client(t)}
			for _, c := range slow {
				c.send(t, chatHead(len(long))+long[:1])
			}
			asked.await(t, 2)
			third := l.client(t)
			third.send(t, chatHead(len(long)))
			asked.await(t, 3)
			third.send(t, long) // net/http awaits it before it sends an answer
			if resp, text := third.answer(t); resp.StatusCode != http.StatusTooManyRequests {
				t.Errorf("the third: got %s %s, want 429", resp.Status, text)
			}
			for _, c := range slow {
				_ = c.Close()
			}
			if limits.RequestsPerMinute > 0 {
				c := l.client(t)
				c.send(t, chatHead(len(smallChat))+smallChat)
				if resp, text := c.answer(t); resp.StatusCode != http.StatusTooManyRequests {
					t.Errorf("after two whose bodies never came: got %s %s, want 429", resp.Status, text)
				}
				return
			}
			testwait.Eventually(t, "a third is served", patience, func() bool {
				c := l.client(t)
				c.send(t, chatHead(len(smallChat))+smallChat)
				resp, _ := c.answer(t)
				return resp.StatusCode == http.StatusOK
			})
		})
	}
}

// TestRefusedCallsCount: a call that comes in one piece counts as a request of its minute, even if it is refused for its body
// or for the budget.
func TestRefusedCallsCount(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		budget     float64
		body, word string
	}{
		"a broken body": {1, `{"model":`, "invalid_request"},
		"no model":      {1, `{"model":"unknown","messages":[{"role":"user","content":"hi"}]}`, "model"},
		"over budget":   {0.0001, smallChat, "budget"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _ := metered(t, tokens.Token{Limits: tokens.Limits{RequestsPerMinute: 2}, Budget: test.budget}, nil)
			c := l.client(t)
			for _, remaining := range []string{"1", "0"} {
				c.send(t, chatHead(len(test.body))+test.body)
				resp, text := c.answer(t)
				if resp.StatusCode < 400 || resp.Header.Get("X-Ratelimit-Remaining-Requests") != remaining || !strings.Contains(text, test.word) {
					t.Errorf("got %s %v %s, want a refusal for its %s and %s requests left", resp.Status, resp.Header, text, name, remaining)
				}
			}
			c.send(t, chatHead(len(test.body))+test.body)
			if resp, text := c.answer(t); resp.StatusCode != http.StatusTooManyRequests || !strings.Contains(text, "requests per minute") {
				t.Errorf("the third: got %s %s, want 429 for its requests", resp.Status, text)
			}
		})
	}
}

// TestCallIsLeft: the end of a client whose call came in one piece is noticed while its upstream works.
func TestCallIsLeft(t *testing.T) {
	t.Parallel()
	began, left := make(chan struct{}), make(chan struct{})
	l, _ := metered(t, tokens.Token{Budget: 1}, func(ctx context.Context, _ providers.Target, _ *providers.Call) (*http.Response, error) {
		close(began)
		<-ctx.Done()
		close(left)
		return nil, context.Cause(ctx)
	})
	c := l.client(t)
	c.send(t, chatHead(len(smallChat))+smallChat)
	<-began
	_ = c.Close()
	<-left
}
