package limits_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
	"modelrelay/storage/limits"
	"modelrelay/storage/storagetest"
)

// lossy is a proxy in front of a Redis. If lose is set, it drops the next answer, closes its connection and clears lose.
type lossy struct {
	listener net.Listener
	target   string
	lose     atomic.Bool
	lost     atomic.Int32
	running  sync.WaitGroup
}

func newLossy(t *testing.T, target string) *lossy {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &lossy{listener: listener, target: target}
	l.running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := new(net.Dialer).DialContext(t.Context(), "tcp", target)
			if err != nil {
				_ = client.Close()
				continue
			}
			l.running.Go(func() { l.pass(server, client, false) })
			l.running.Go(func() { l.pass(client, server, true) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		l.running.Wait()
	})
	return l
}

func (l *lossy) pass(to, from net.Conn, answers bool) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if answers && n > 0 && l.lose.CompareAndSwap(true, false) {
			l.lost.Add(1)
			return
		}
		if _, failed := to.Write(buf[:n]); failed != nil || err != nil {
			return
		}
	}
}

// lossyRedis is a client of a Redis behind a lossy proxy.
func lossyRedis(t *testing.T) (redis.UniversalClient, *lossy) {
	t.Helper()
	server, _ := storagetest.Miniredis(t)
	proxy := newLossy(t, server.Addr())
	client, err := storage.OpenRedis("redis://"+proxy.listener.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client, proxy
}

// TestAdmitIsRepeatable: if the answer to an admission is lost, the Redis client repeats the script. The call gets the slot that
// the first run took.
func TestAdmitIsRepeatable(t *testing.T) {
	t.Parallel()
	client, proxy := lossyRedis(t)
	limiter := newLimits(t, client, nil)
	one := storage.Allowance{Token: "one", Concurrency: 1}
	admit(t, limiter, one, limits.Cost{Requests: 1}).Release(0) // Redis knows the script from here on
	proxy.lose.Store(true)
	grant := admit(t, limiter, one, limits.Cost{Requests: 1})
	if !grant.Allowed || proxy.lost.Load() != 1 {
		t.Fatalf("allowed: %t with %d answers lost, want true with 1", grant.Allowed, proxy.lost.Load())
	}
	if admit(t, limiter, one, limits.Cost{Requests: 1}).Allowed {
		t.Error("a second call was admitted while the first one runs")
	}
	grant.Release(0)
	if !admit(t, limiter, one, limits.Cost{Requests: 1}).Allowed {
		t.Error("the slot is still taken after the release")
	}
}

// TestAdmitCountsOnce: an admission that is repeated because its answer was lost counts once. A batch that reaches Redis after
// its process has given it up changes nothing.
func TestAdmitCountsOnce(t *testing.T) {
	t.Parallel()
	client, proxy := lossyRedis(t)
	var sent sentScripts
	client.AddHook(&sent)
	limiter := newLimits(t, client, nil)
	token := storage.Allowance{Token: "one", Budget: storage.Billionths(1), RequestsPerMinute: 4, TokensPerMinute: 100}
	cost := limits.Cost{Requests: 1, Tokens: 10, Money: unit / 4}
	admit(t, limiter, token, cost) // Redis knows the script from here on
	var last limits.Grant
	for range 2 {
		proxy.lose.Store(true)
		if last = admit(t, limiter, token, cost); !last.Allowed {
			t.Fatalf("a call within its limits, whose answer was lost: %+v", last)
		}
	}
	if got := proxy.lost.Load(); got != 2 {
		t.Fatalf("%d answers were lost, want 2", got)
	}
	late := sent.last()
	grant := admit(t, limiter, token, limits.Cost{Tokens: 1})
	if !grant.Allowed || grant.Requests.Remaining != 1 || grant.Tokens.Remaining != 69 {
		t.Errorf("after three calls: %+v, want 1 request and 69 tokens left", grant)
	}
	grant.Release(-1)
	last.Release(-1)
	quiet(t, limiter)
	if err := client.Do(t.Context(), late...).Err(); err != nil {
		t.Fatal(err)
	}
	if got := storagetest.Balance(t, client, "one"); got.Reserved != unit/2 {
		t.Errorf("reserved %d, want %d", got.Reserved, unit/2)
	}
}

// sentScripts remembers the last script that was run.
type sentScripts struct {
	mu   sync.Mutex
	args []any
}

func (s *sentScripts) last() []any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.args
}

func textOf(arg any) string {
	if text, ok := arg.([]byte); ok {
		return string(text)
	}
	return fmt.Sprint(arg)
}

func (*sentScripts) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *sentScripts) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			s.mu.Lock()
			s.args = nil
			for _, arg := range cmd.Args() { // the batch reuses its bytes
				s.args = append(s.args, textOf(arg))
			}
			s.mu.Unlock()
		}
		return next(ctx, cmd)
	}
}

func (*sentScripts) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
