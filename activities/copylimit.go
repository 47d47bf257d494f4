package activities

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

const (
	// placeLine is how many copies of one channel wait for a place in a worker. More come back later, so that a channel
	// with thousands of results keeps nobody else's from the worker; so many fill the time until they do.
	placeLine = 64
	// slowShare is the part of the places, one in so many, that copies of slow sources have, and that one channel alone
	// leaves to the others.
	slowShare = 4
)

// errCrowded: so many copies of the channel wait for a place in this worker that it takes no more of them.
var errCrowded = errors.New("too many copies of the channel wait")

// CopyLimit is how many copies a worker makes at a time. One channel has all of them but a quarter, and whoever has the fewest
// goes first, so that a channel whose results trickle stops no other's. A copy that was found to be slow goes on in a quarter
// of the places, one of each channel where there are several, and is left alone there: it takes as long as it takes.
//
// Nil is any number of places. Safe for concurrent use.
type CopyLimit struct {
	total, share, slow int

	mu     sync.Mutex
	taken  map[copyLane]int // by channels of the configuration
	lines  map[copyLane][]*waiting
	inLine int64 // counts the waiting, in the order of their coming
}

// lane is one of the two that a channel has.
type copyLane struct {
	channel string
	slow    bool
}

// waiting is a copy in line.
type waiting struct {
	dies  time.Time // when what it copies goes; zero: not known
	since int64
	in    chan struct{} // closed when it has its place
}

// NewCopyLimit makes that many places, at least 2.
func NewCopyLimit(total int) *CopyLimit {
	total = max(2, total)
	slow := max(1, total/slowShare)
	return &CopyLimit{total: total, share: total - slow, slow: slow, taken: make(map[copyLane]int), lines: make(map[copyLane][]*waiting)}
}

// take waits for a place in the copyLane, those first whose source dies first. The error is errCrowded or the context's cause.
// The caller gives the place back.
func (p *CopyLimit) take(ctx context.Context, to copyLane, dies time.Time) error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	if len(p.lines[to]) >= placeLine {
		p.mu.Unlock()
		return errCrowded
	}
	p.inLine++
	w := &waiting{dies: dies, since: p.inLine, in: make(chan struct{})}
	line := p.lines[to]
	at := len(line)
	for at > 0 && w.before(line[at-1]) {
		at--
	}
	p.lines[to] = slices.Insert(line, at, w)
	p.admit()
	p.mu.Unlock()
	select {
	case <-w.in:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-w.in: // at the same moment
		p.taken[to]--
		p.admit()
	default:
		p.drop(to, slices.Index(p.lines[to], w))
	}
	return context.Cause(ctx)
}

// give gives a place back.
func (p *CopyLimit) give(of copyLane) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken[of]--
	p.admit()
}

// wanted tells whether somebody waits who would get the place of a copy in the lane. A slow one's is left alone.
func (p *CopyLimit) wanted(of copyLane) bool {
	if p == nil || of.slow {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken[of]--
	_, found := p.next()
	p.taken[of]++
	return found
}

// admit gives free places to those in line.
func (p *CopyLimit) admit() {
	for {
		to, found := p.next()
		if !found {
			break
		}
		close(p.lines[to][0].in)
		p.drop(to, 0)
		p.taken[to]++
	}
	for of, n := range p.taken {
		if n == 0 {
			delete(p.taken, of)
		}
	}
}

// drop takes a copy out of its line.
func (p *CopyLimit) drop(from copyLane, at int) {
	if p.lines[from] = slices.Delete(p.lines[from], at, at+1); len(p.lines[from]) == 0 {
		delete(p.lines, from)
	}
}

// next is the line whose first may have a place: of the channel with the fewest, then the one that has waited longest.
func (p *CopyLimit) next() (to copyLane, found bool) {
	for of, line := range p.lines {
		if !p.fits(of) {
			continue
		}
		has, best := p.held(of.channel), p.held(to.channel)
		if !found || has < best || has == best && line[0].since < p.lines[to][0].since {
			to, found = of, true
		}
	}
	return to, found
}

// fits tells whether a place in the lane is free.
func (p *CopyLimit) fits(to copyLane) bool {
	busy, slow := 0, 0
	for of, n := range p.taken {
		busy += n
		if of.slow {
			slow += n
		}
	}
	if busy >= p.total || p.held(to.channel) >= p.share {
		return false
	}
	return !to.slow || slow < p.slow && p.taken[to] == 0
}

// held is how many places the channel has.
func (p *CopyLimit) held(channel string) int {
	return p.taken[copyLane{channel, false}] + p.taken[copyLane{channel, true}]
}

// before: what dies first goes first; else who came first.
func (w *waiting) before(other *waiting) bool {
	switch {
	case w.dies.IsZero():
		return false
	case other.dies.IsZero():
		return true
	}
	return w.dies.Before(other.dies)
}
