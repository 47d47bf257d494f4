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
	// dyingSoon is the life of a result that is copied before all others: of several vendors it is an hour, of one six minutes.
	dyingSoon = time.Hour
)

// errCrowded: so many copies of the channel wait for a place in this worker that it takes no more of them.
var errCrowded = errors.New("too many copies of the channel wait")

// CopyLimit is how many copies a worker makes at a time. One channel has all of them but a quarter. What dies soon goes before
// what does not; else whoever has the fewest goes first, so that a channel whose results trickle stops no other's. A copy that was found to be slow goes on in a quarter
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
	in    chan struct{} // closed when it has its place, or was put out of the line
	out   bool          // put out
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
	p.inLine++
	w := &waiting{dies: dies, since: p.inLine, in: make(chan struct{})}
	if !p.enter(to, w) {
		p.mu.Unlock()
		return errCrowded
	}
	p.admit()
	p.mu.Unlock()
	select {
	case <-w.in:
		if w.out {
			return errCrowded
		}
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-w.in: // at the same moment
		if w.out {
			return errCrowded
		}
		p.taken[to]--
		p.admit()
	default:
		p.drop(to, slices.Index(p.lines[to], w))
	}
	return context.Cause(ctx)
}

// enter puts a copy into its line, which is in the order of ends. Where the line is full the last of it comes back later: the
// copy itself, unless what it copies dies before what another does.
func (p *CopyLimit) enter(to copyLane, w *waiting) bool {
	line := p.lines[to]
	at := len(line)
	for at > 0 && w.before(line[at-1]) {
		at--
	}
	if len(line) >= placeLine {
		if at == len(line) {
			return false
		}
		last := len(line) - 1
		line[last].out = true
		close(line[last].in)
		line = slices.Delete(line, last, last+1)
	}
	p.lines[to] = slices.Insert(line, at, w)
	return true
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

// next is the line whose first may have a place: of those whose first dies soon, where there are any, that of the channel with
// the fewest places, then the one that dies first or else has waited longest.
func (p *CopyLimit) next() (to copyLane, found bool) {
	now := time.Now()
	for of, line := range p.lines {
		if p.fits(of) && (!found || p.earlier(of, line[0], to, p.lines[to][0], now)) {
			to, found = of, true
		}
	}
	return to, found
}

// earlier tells whether the first of one line goes before the first of another.
func (p *CopyLimit) earlier(of copyLane, w *waiting, than copyLane, other *waiting, now time.Time) bool {
	if soon := w.soon(now); soon != other.soon(now) {
		return soon
	}
	if has, best := p.held(of.channel), p.held(than.channel); has != best {
		return has < best
	}
	if w.soon(now) && !w.dies.Equal(other.dies) {
		return w.dies.Before(other.dies)
	}
	return w.since < other.since
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

// soon: it dies soon.
func (w *waiting) soon(now time.Time) bool { return !w.dies.IsZero() && w.dies.Sub(now) <= dyingSoon }

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
