package activities

import (
	"sync"
	"time"
)

const (
	// leastBytes in leastWithin is the pace below which a copy gives its place to one that waits: 5 MiB a minute, at which
	// the largest video that is usual, of 200 MiB, takes forty minutes.
	leastBytes  = 5 << 20
	leastWithin = time.Minute
	// paceWindow is how long a source is watched before it is judged: long enough for a pause that says nothing.
	paceWindow = 10 * time.Second
)

// pace is how fast a source sends. Only the time in which it was waited for counts: a store that is slow is none of its
// faults. Safe for concurrent use.
type pace struct {
	mu     sync.Mutex
	bytes  int64         // that came in this window
	waited time.Duration // for them
	since  time.Time     // when the wait under way began; zero: none is
	slow   bool          // the last window was
}

// wait notes that the source is waited for.
func (p *pace) wait() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = time.Now()
}

// came notes that so many bytes are here, 0 for a wait that ended otherwise.
func (p *pace) came(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes += int64(n)
	if !p.since.IsZero() {
		p.waited += time.Since(p.since)
		p.since = time.Time{}
	}
}

// isSlow judges the source: by the last whole window, true until another says better.
func (p *pace) isSlow() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	waited, now := p.waited, time.Now()
	if !p.since.IsZero() {
		waited += now.Sub(p.since)
	}
	if waited >= paceWindow {
		p.slow = float64(p.bytes) < float64(leastBytes)*waited.Seconds()/leastWithin.Seconds()
		p.bytes, p.waited = 0, 0
		if !p.since.IsZero() {
			p.since = now
		}
	}
	return p.slow
}
