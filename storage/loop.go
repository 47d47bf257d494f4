package storage

import (
	"context"
	"time"
)

// Loop calls a function in its own goroutine, at every tick and after every Wake, until Stop. It is safe for concurrent use.
type Loop struct {
	wake  chan struct{}
	stop  context.CancelFunc
	ended chan struct{}
}

// NewLoop makes a Loop; Start must follow.
func NewLoop() *Loop { return &Loop{wake: make(chan struct{}, 1), ended: make(chan struct{})} }

// Start starts the loop, once; Stop must follow. ticked reports that a tick caused the call, not Wake. Stop ends the context of do.
func (l *Loop) Start(every time.Duration, do func(ctx context.Context, ticked bool)) {
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // the goroutine's own, which Stop ends
	l.stop = cancel
	go l.run(ctx, every, do)
}

func (l *Loop) run(ctx context.Context, every time.Duration, do func(context.Context, bool)) {
	defer close(l.ended)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
			do(ctx, false)
		case <-tick.C:
			do(ctx, true)
		}
	}
}

// Wake causes a call of the function soon. It never blocks.
func (l *Loop) Wake() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Stop ends the loop and waits for a call in progress.
func (l *Loop) Stop() {
	l.stop()
	<-l.ended
}

// Sleep waits for d. If ctx ends first, it returns the cause at once.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
