package storage

import (
	"sync"
	"time"
)

// Sender calls a function in a goroutine of its own, a moment after it was woken, so that what comes meanwhile goes with it.
// It is safe for concurrent use.
type Sender struct {
	wake, stop chan struct{}
	ended      sync.WaitGroup
}

// NewSender makes one that calls send at most once in every. Its maker closes it.
func NewSender(every time.Duration, send func()) *Sender {
	s := &Sender{wake: make(chan struct{}, 1), stop: make(chan struct{})}
	s.ended.Go(func() { s.run(every, send) })
	return s
}

// Wake has send called, with what there is by then. It never waits.
func (s *Sender) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Close calls send a last time, in the sender's own goroutine, and returns when that is over. It is called once.
func (s *Sender) Close() {
	close(s.stop)
	s.ended.Wait()
}

func (s *Sender) run(every time.Duration, send func()) {
	defer send()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-s.wake:
		}
		select {
		case <-s.stop:
			return
		case <-tick.C:
			send()
		}
	}
}
