package storage

import (
	"context"
	"time"
)

// Loop calls a function in a goroutine of its own, at every tick and whenever it is woken, until it is stopped. It is safe for
// concurrent use.
type Loop struct {
	wake  chan struct{}
	stop  context.CancelFunc
	ended chan struct{}
}

// NewLoop makes one that is to be started.
func NewLoop() *Loop { return &Loop{wake: make(chan struct{}, 1), ended: make(chan struct{})} }

// Start begins, once; Stop must follow. ticked reports to do that its interval has passed without a Wake. Its context ends with Stop.
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

// Wake has the function called soon. It never waits.
func (l *Loop) Wake() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Stop returns when the function is called no more.
func (l *Loop) Stop() {
	l.stop()
	<-l.ended
}

// Sleep waits. If ctx ends before, it returns the cause at once.
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
