package activities

import (
	"sync"
	"time"
)

const (
	// minBytes in minBytesWithin is the pace below which a copy releases its slot to a waiting one: 5 MiB a minute, at which the largest
	// usual video, of 200 MiB, takes forty minutes.
	minBytes       = 5 << 20
	minBytesWithin = time.Minute
	// paceWindow is the length of a measurement. It is long enough that a short pause does not matter.
	paceWindow = 10 * time.Second
)

// pace measures how fast a source sends, without the time that a slow store takes. It is safe for concurrent use.
type pace struct {
	mu     sync.Mutex
	bytes  int64         // received in this window
	waited time.Duration // in this window
	since  time.Time     // start of the current wait; zero: none
	slow   bool          // result of the last window
}

// wait records that a wait for the source begins.
func (p *pace) wait() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = time.Now()
}

// received records n received bytes, 0 for a wait without any, and ends the wait.
func (p *pace) received(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes += int64(n)
	if !p.since.IsZero() {
		p.waited += time.Since(p.since)
		p.since = time.Time{}
	}
}

// isSlow reports whether the source was slow in the last complete window.
func (p *pace) isSlow() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	waited, now := p.waited, time.Now()
	if !p.since.IsZero() {
		waited += now.Sub(p.since)
	}
	if waited >= paceWindow {
		p.slow = float64(p.bytes) < float64(minBytes)*waited.Seconds()/minBytesWithin.Seconds()
		p.bytes, p.waited = 0, 0
		if !p.since.IsZero() {
			p.since = now
		}
	}
	return p.slow
}
