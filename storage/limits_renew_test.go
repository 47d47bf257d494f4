package storage_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
	"modelrelay/storage/storagetest"
)

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
	limits := newLimits(t, client, &storage.LimitsOptions{Lease: lease})
	one := &storage.Token{ID: "one", TokenLimits: storage.TokenLimits{Concurrency: 1}}
	call := admit(t, limits, one, storage.Cost{Requests: 1})
	gate.shut()
	var others sync.WaitGroup
	defer others.Wait()
	others.Go(func() {
		admit(t, limits, &storage.Token{ID: "other", TokenLimits: storage.TokenLimits{Concurrency: 1}}, storage.Cost{Requests: 1}).Release(0)
	})
	<-gate.came // Redis is slow
	pass(lease / 2)
	call.Release(0)
	gate.open()
	if next := admit(t, limits, one, storage.Cost{Requests: 1}); !next.Allowed {
		t.Errorf("the place is taken after the release: %+v", next)
	}
}
