package limits_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
	"modelrelay/storage/limits"
	"modelrelay/storage/storagetest"
)

// pass lets time go by: within a bubble at once, and exactly so much.
func pass(d time.Duration) { <-time.NewTimer(d).C }

// gate holds back what goes to Redis while it is shut.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // closed when it opens; nil: it is open
	came   chan struct{} // gets a value for each that is held back
}

func newGate() *gate { return &gate{came: make(chan struct{}, 16)} }

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.opened = make(chan struct{})
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.opened)
	g.opened = nil
}

func (g *gate) pass() {
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	if opened != nil {
		g.came <- struct{}{}
		<-opened
	}
}

func (g *gate) DialHook(next redis.DialHook) redis.DialHook { return next }

func (g *gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		g.pass()
		return next(ctx, cmd)
	}
}

func (g *gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// TestReleaseEndsWhatWasJustConfirmed: a call that ends while its sign of life is on the way, to a Redis that is slow, has
// given its place back.
func TestReleaseEndsWhatWasJustConfirmed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, releaseEndsWhatWasJustConfirmed)
}

func releaseEndsWhatWasJustConfirmed(t *testing.T) {
	const lease = 900 * time.Millisecond // a call in flight is confirmed every third of it
	client, gate := storagetest.NewServer(t).Client(t), newGate()
	client.AddHook(gate)
	limiter := newLimits(t, client, &limits.Options{Lease: lease})
	one := storage.Allowance{Token: "one", Concurrency: 1}
	call := admit(t, limiter, one, limits.Cost{Requests: 1})
	gate.shut()
	var others sync.WaitGroup
	defer others.Wait()
	others.Go(func() {
		admit(t, limiter, storage.Allowance{Token: "other", Concurrency: 1}, limits.Cost{Requests: 1}).Release(0)
	})
	<-gate.came // Redis is slow
	pass(lease / 2)
	call.Release(0)
	gate.open()
	if next := admit(t, limiter, one, limits.Cost{Requests: 1}); !next.Allowed {
		t.Errorf("the place is taken after the release: %+v", next)
	}
}

// TestLeases: a long call keeps its slot for several leases while its process runs. After a crash the slot becomes free at the
// end of the lease.
func TestLeases(t *testing.T) {
	t.Parallel()
	synctest.Test(t, leases)
}

func leases(t *testing.T) {
	client := storagetest.NewServer(t).Client(t)
	token := storage.Allowance{Token: "a", Concurrency: 1}
	opts := &limits.Options{Lease: time.Minute}
	crashed, alive := limits.New(client, opts), newLimits(t, client, opts)
	if !admit(t, crashed, token, one).Allowed {
		t.Fatal("first call refused")
	}
	for step, began := opts.Lease/10, time.Now(); time.Since(began) < 3*opts.Lease; {
		if admit(t, alive, token, one).Allowed {
			t.Fatalf("the slot of a running call is free after %v", time.Since(began))
		}
		pass(step)
	}
	if err := crashed.Close(t.Context()); err != nil { // never released
		t.Fatal(err)
	}
	if admit(t, alive, token, one).Allowed {
		t.Error("the slot is free before the lease has ended")
	}
	pass(opts.Lease)
	if !admit(t, alive, token, one).Allowed {
		t.Error("the slot is not free after the lease has ended")
	}
}

// TestReleasesHoldElsewhereAtOnce: the slot of a call that ended is free for another process within 20 ms.
func TestReleasesHoldElsewhereAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := storagetest.NewServer(t).Client(t)
		here, there := newLimits(t, client, nil), newLimits(t, client, nil)
		token := storage.Allowance{Token: "a", Concurrency: 1}
		admit(t, here, token, one).Release(-1)
		pass(20 * time.Millisecond)
		if !admit(t, there, token, one).Allowed {
			t.Error("the slot is still taken")
		}
	})
}
