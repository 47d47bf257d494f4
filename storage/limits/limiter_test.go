package limits_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
	"modelrelay/storage/limits"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/testwait"
)

var (
	one     = limits.Cost{Requests: 1}
	january = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
)

func newLimits(tb testing.TB, client redis.UniversalClient, opts *limits.Options) *limits.Limiter {
	tb.Helper()
	limiter := limits.New(client, opts)
	ctx := context.WithoutCancel(tb.Context())
	tb.Cleanup(func() { _ = limiter.Close(ctx) })
	return limiter
}

func admit(tb testing.TB, limiter *limits.Limiter, token storage.Allowance, cost limits.Cost) limits.Grant {
	tb.Helper()
	grant, err := limiter.Admit(tb.Context(), token, cost)
	if err != nil {
		tb.Fatal(err)
	}
	if grant.Allowed == (grant.RetryAfter > 0) {
		tb.Fatalf("allowed %v with retry after %v", grant.Allowed, grant.RetryAfter)
	}
	return grant
}

func TestRequestsPerMinuteOverTwoProcesses(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	processes := []*limits.Limiter{newLimits(t, client, nil), newLimits(t, client, nil)}
	tokens := []storage.Allowance{{Token: "a", RequestsPerMinute: 137}, {Token: "b", RequestsPerMinute: 20, Concurrency: 1000}}
	var admitted [2]atomic.Int64
	var callers sync.WaitGroup
	for g := range 64 {
		callers.Go(func() {
			for i := range 10 {
				which := (g + i) % 2
				grant := admit(t, processes[g%2], tokens[which], one)
				if grant.Allowed {
					admitted[which].Add(1)
				} else if grant.Requests.Remaining != 0 || grant.RetryAfter > 61*time.Second {
					t.Errorf("refused with %+v", grant)
				}
				if grant.Requests.Limit != tokens[which].RequestsPerMinute || grant.Requests.Reset <= 0 || grant.Requests.Reset > 61*time.Second {
					t.Errorf("window %+v", grant.Requests)
				}
				if grant.Tokens != (limits.Window{}) {
					t.Errorf("tokens %+v without such a limit", grant.Tokens)
				}
				grant.Release(-1)
			}
		})
	}
	callers.Wait()
	for i, token := range tokens {
		if got := admitted[i].Load(); got != int64(token.RequestsPerMinute) {
			t.Errorf("token %s: %d admitted, want %d", token.Token, got, token.RequestsPerMinute)
		}
	}
}

// TestWindowNeverWiderThanItsLimit: any sixty seconds admit at most the limit. A caller that waits for RetryAfter is admitted.
func TestWindowNeverWiderThanItsLimit(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			server, _ := storagetest.Miniredis(t)
			client := storagetest.Client(t, "redis://"+server.Addr())
			now := time.Date(2026, 1, 31, 23, 59, 0, 0, time.UTC)
			server.SetTime(now)
			processes := []*limits.Limiter{newLimits(t, client, nil), newLimits(t, client, nil)}
			checkWindow(t, seed, processes, func(d time.Duration) time.Time {
				now = now.Add(d)
				server.SetTime(now)
				return now
			})
		})
	}
}

func TestWindowWithoutRedisNeverWiderThanItsLimit(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client := redis.NewClient(&redis.Options{
					Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1,
					Dialer: func(context.Context, string, string) (net.Conn, error) {
						return nil, errors.New("no route")
					},
				})
				defer func() {
					_ = client.Close()
					<-time.NewTimer(2 * time.Second).C // the library's own redial ends by then
				}()
				limiter := limits.New(client, nil)
				defer func() { _ = limiter.Close(t.Context()) }()
				checkWindow(t, seed, []*limits.Limiter{limiter}, func(d time.Duration) time.Time {
					if d > 0 {
						<-time.NewTimer(d).C
					}
					return time.Now()
				})
			})
		})
	}
}

// checkWindow lets one token call at random moments. Costs above one request are never answered from the memory of
// an earlier refusal, whose clock the test does not hold.
func checkWindow(t *testing.T, seed uint64, processes []*limits.Limiter, pass func(time.Duration) time.Time) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 1))
	token := storage.Allowance{Token: "a", RequestsPerMinute: 40 + rnd.IntN(60), TokensPerMinute: 2000 + rnd.IntN(2000)}
	type call struct {
		at       time.Time
		requests int
		tokens   int
	}
	var calls []call
	refusals := 0
	for range 700 {
		var step time.Duration
		switch rnd.IntN(12) {
		case 0:
			step = time.Duration(rnd.IntN(20_000)) * time.Millisecond
		case 1:
			step = time.Duration(59_000+rnd.IntN(4_000)) * time.Millisecond * time.Duration(rnd.IntN(2))
		default:
			step = time.Duration(rnd.IntN(1200)) * time.Millisecond * time.Duration(rnd.IntN(2))
		}
		now := pass(step)
		limiter := processes[rnd.IntN(len(processes))]
		cost := limits.Cost{Requests: 2 + rnd.IntN(4), Tokens: rnd.IntN(300)}
		grant := admit(t, limiter, token, cost)
		if !grant.Allowed {
			refusals++
			if rnd.IntN(4) > 0 {
				continue
			}
			now = pass(grant.RetryAfter)
			if grant = admit(t, limiter, token, cost); !grant.Allowed {
				// One of the two windows was named; the other may need its own wait.
				now = pass(grant.RetryAfter)
				grant = admit(t, limiter, token, cost)
			}
			if !grant.Allowed {
				t.Fatalf("refused after the required waits: %+v", grant)
			}
		}
		used := cost.Tokens
		if rnd.IntN(3) == 0 { // sent with the next batch
			used = rnd.IntN(cost.Tokens + 1)
			grant.Release(used)
		}
		calls = append(calls, call{now, cost.Requests, used})

		requests, tokens := 0, 0
		for _, c := range calls {
			if now.Sub(c.at) < time.Minute {
				requests += c.requests
				tokens += c.tokens
			}
		}
		if requests > token.RequestsPerMinute || tokens > token.TokensPerMinute {
			t.Fatalf("%d of %d requests and %d of %d tokens within a minute", requests, token.RequestsPerMinute, tokens, token.TokensPerMinute)
		}
		if got, want := grant.Requests.Remaining, token.RequestsPerMinute-requests; got > want {
			t.Fatalf("%d requests said to remain, want at most %d", got, want)
		}
	}
	if refusals < 50 || len(calls) < 100 {
		t.Fatalf("%d calls and %d refusals test nothing", len(calls), refusals)
	}
}

func TestTokensPerMinuteIsCorrected(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	limiter, other := newLimits(t, client, nil), newLimits(t, client, nil)
	token := storage.Allowance{Token: "a", TokensPerMinute: 1000}

	first := admit(t, limiter, token, limits.Cost{Requests: 1, Tokens: 600})
	if !first.Allowed || first.Tokens.Limit != 1000 || first.Tokens.Remaining != 400 {
		t.Fatalf("first: %+v", first)
	}
	if second := admit(t, limiter, token, limits.Cost{Requests: 1, Tokens: 600}); second.Allowed {
		t.Fatal("1,200 of 1,000 tokens admitted")
	}
	first.Release(100)
	first.Release(900) // once only
	second := admit(t, limiter, token, limits.Cost{Requests: 1, Tokens: 600})
	if !second.Allowed || second.Tokens.Remaining != 300 {
		t.Fatalf("after the correction: %+v", second)
	}
	second.Release(5000) // far more than estimated
	if third := admit(t, limiter, token, one); third.Allowed {
		t.Fatal("admitted with 5,100 of 1,000 tokens used")
	}
	testwait.Eventually(t, "seen by the other process", storagetest.Patience, func() bool { return !admit(t, other, token, one).Allowed })
	if huge := admit(t, limiter, storage.Allowance{Token: "b", TokensPerMinute: 10}, limits.Cost{Tokens: 11}); huge.Allowed {
		t.Error("a call above the whole limit was admitted")
	}
}

// TestTokensAreCountedAsTheyAreSpent: a long call counts its tokens in the minute in which it uses them, and once.
func TestTokensAreCountedAsTheyAreSpent(t *testing.T) {
	t.Parallel()
	away := storagetest.NewServer(t)
	away.Leave()
	for name, client := range map[string]redis.UniversalClient{"redis": storagetest.Redis(t), "without redis": away.Client(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limiter := newLimits(t, client, nil)
			token := storage.Allowance{Token: "a", TokensPerMinute: 1000}
			long := admit(t, limiter, token, limits.Cost{Requests: 1})
			long.Spend(300)
			long.Spend(-5)
			long.Spend(200)
			if next := admit(t, limiter, token, limits.Cost{Requests: 1, Tokens: 600}); next.Allowed || next.Tokens.Remaining != 500 {
				t.Errorf("with 500 of 1,000 tokens spent: %+v", next)
			}
			long.Release(550)
			long.Spend(100) // after Release: it counts nothing
			if next := admit(t, limiter, token, limits.Cost{Requests: 1, Tokens: 450}); !next.Allowed || next.Tokens.Remaining != 0 {
				t.Errorf("with 550 of 1,000 tokens used: %+v", next)
			}
			limits.Grant{}.Spend(1) // of a token without limits
		})
	}
}

// TestResume: a worker counts the tokens of a call that another process has admitted, in the minute in which it uses them.
func TestResume(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	limiter, worker := newLimits(t, client, nil), newLimits(t, client, nil)
	token := storage.Allowance{Token: "a", TokensPerMinute: 1000, Concurrency: 1}
	admit(t, limiter, token, limits.Cost{Requests: 1, Tokens: 100}).Release(-1) // the estimate stays
	call := worker.Resume(token, 100)
	call.Spend(800 - 100)
	call.Release(800)
	testwait.Eventually(t, "the use is counted", storagetest.Patience, func() bool {
		next := admit(t, limiter, token, limits.Cost{Requests: 1, Tokens: 1})
		next.Release(0)
		return next.Allowed && next.Tokens.Remaining == 199
	})
}

func TestConcurrency(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	here, there := newLimits(t, client, nil), newLimits(t, client, nil)
	token := storage.Allowance{Token: "a", Concurrency: 3}
	grants := []limits.Grant{admit(t, here, token, one), admit(t, here, token, one), admit(t, there, token, one)}
	for i, g := range grants {
		if !g.Allowed {
			t.Fatalf("call %d refused", i)
		}
	}
	if admit(t, here, token, one).Allowed || admit(t, there, token, one).Allowed {
		t.Fatal("fourth call admitted")
	}
	for range 50 { // the same process sees its own release at once
		grants[0].Release(-1)
		if grants[0] = admit(t, here, token, one); !grants[0].Allowed {
			t.Fatal("place of a released call is not free at once")
		}
	}
	grants[0].Release(-1)
	testwait.Eventually(t, "place free in the other process", storagetest.Patience, func() bool { return admit(t, there, token, one).Allowed })
}

func TestConcurrencyIsNeverExceeded(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	processes := []*limits.Limiter{newLimits(t, client, nil), newLimits(t, client, nil)}
	token := storage.Allowance{Token: "a", Concurrency: 5, TokensPerMinute: 1_000_000}
	var running, most, done atomic.Int64
	var callers sync.WaitGroup
	for g := range 32 {
		callers.Go(func() {
			for range 40 {
				grant := admit(t, processes[g%2], token, one)
				if !grant.Allowed {
					continue
				}
				if n := running.Add(1); n > most.Load() {
					most.Store(n)
				}
				done.Add(1)
				running.Add(-1)
				grant.Release(7)
			}
		})
	}
	callers.Wait()
	if most.Load() > 5 || done.Load() < 5 {
		t.Errorf("%d at once of 5, %d done", most.Load(), done.Load())
	}
}

func TestLimitsWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	server := storagetest.NewServer(t)
	var log storagetest.Log
	limiter := newLimits(t, server.Client(t), &limits.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	token := storage.Allowance{Token: "a", RequestsPerMinute: 10, Concurrency: 2}

	before := admit(t, limiter, token, one)
	server.Leave()
	during := admit(t, limiter, token, one)
	if !before.Allowed || !during.Allowed {
		t.Fatal("refused")
	}
	if admit(t, limiter, token, one).Allowed {
		t.Error("third call at once: calls admitted by redis do not count without it")
	}
	before.Release(-1)
	during.Release(-1)
	allowed := 1
	for range 30 {
		if grant := admit(t, limiter, token, one); grant.Allowed {
			allowed++
			grant.Release(-1)
		}
	}
	if allowed != 10 {
		t.Errorf("%d admitted without redis, want 10", allowed)
	}
	if n := strings.Count(log.String(), "redis does not answer"); n != 1 {
		t.Errorf("outage logged %d times:\n%s", n, log.String())
	}
	if !limiter.Away() || limiter.Failures() < 1 {
		t.Errorf("got away %v, %d failures", limiter.Away(), limiter.Failures())
	}

	server.Return()
	testwait.Eventually(t, "back at redis", storagetest.Patience, func() bool {
		admit(t, limiter, storage.Allowance{Token: "b", RequestsPerMinute: 100_000}, one)
		return server.Exists("mr:limit:b")
	})
	testwait.Eventually(t, "places given back", storagetest.Patience, func() bool { return !server.Exists("mr:leases:a") })
	if !strings.Contains(log.String(), "redis answers again") || limiter.Away() {
		t.Error("return is not logged")
	}
}

func TestNoLimitsNoRoundTrip(t *testing.T) {
	t.Parallel()
	client := storagetest.Client(t, "redis://127.0.0.1:1")
	limiter := newLimits(t, client, nil)
	grant := admit(t, limiter, storage.Allowance{Token: "a"}, one)
	grant.Release(100)
	limits.Grant{}.Release(3)
	if !grant.Allowed || grant.Requests != (limits.Window{}) {
		t.Errorf("%+v", grant)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := limiter.Admit(canceled, storage.Allowance{Token: "a"}, one); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled caller: %v", err)
	}
}

func TestNewLimitsHoldAtOnce(t *testing.T) {
	t.Parallel()
	limiter := newLimits(t, storagetest.Redis(t), nil)
	for range 3 {
		admit(t, limiter, storage.Allowance{Token: "a", RequestsPerMinute: 2}, one)
	}
	if admit(t, limiter, storage.Allowance{Token: "a", RequestsPerMinute: 2}, one).Allowed {
		t.Error("third of two admitted")
	}
	if !admit(t, limiter, storage.Allowance{Token: "a", RequestsPerMinute: 3}, one).Allowed {
		t.Error("a raised limit does not hold at once")
	}
}
