// Package fair shares scarce units of a process among keys, such as tokens, channels or networks: units of a Semaphore are taken and
// released, units of a Rate come back with time, and a Cache divides memory. The meaning of units and keys is the caller's.
package fair

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

var (
	// ErrShare reports that the key holds its share.
	ErrShare = errors.New("the key already holds its share")
	// ErrFull reports that all units are held, and the request must not wait, has waited for its limit, or found the line full.
	ErrFull = errors.New("all units are held")
)

// Bounds configure a Semaphore.
type Bounds struct {
	// Total is the number of units, Share how many of them one key may hold; 0: all.
	Total, Share int64
	// Line is how many requests of one key may wait, Lines how many of all keys; 0: only Line counts.
	Line, Lines int
	// Soon gives requests that are due within it precedence in their lane; 0: none.
	Soon time.Duration
}

// Semaphore shares units among keys. A free unit goes to the lowest lane in which a request waits. In it, the waiting key that holds the
// fewest units for its weight comes first, then the key with the oldest last turn. Within a key, the request that is due first comes
// first, then the oldest. So the requests of one key, however many, delay another key of their lane by one unit at most. The state of a
// key ends with its last unit and last request. It is safe for concurrent use. A nil Semaphore has any number of units.
type Semaphore[K comparable] struct {
	mu      sync.Mutex
	bounds  Bounds
	taken   int64
	held    map[K]int64    // above 0
	lines   map[K]*line[K] // none is empty
	round   []*line[K]     // the same lines, searched for the next turn
	waiting int
	turns   uint64 // turns given so far
}

// line holds the waiting requests of one key.
type line[K comparable] struct {
	key     K
	held    int64  // by the key
	turn    uint64 // the number of the key's last turn
	at      int    // its index in the round
	waiters []waiter
}

// waiter is a request in the line of one semaphore. index is that semaphore's index among all in which the request waits.
type waiter struct {
	*request

	index int
}

type request struct {
	due    time.Time
	lane   int
	weight int64
	// decided: the request has a unit, was put out, or has left. The goroutine that sets it sends the result, unless the request leaves.
	decided atomic.Bool
	result  chan int // the index of the semaphore, or putOut
}

// putOut is the result of a request that lost its place in a full line.
const putOut = -1

// New makes a Semaphore.
func New[K comparable](bounds Bounds) *Semaphore[K] {
	return &Semaphore[K]{bounds: bounds, held: make(map[K]int64), lines: make(map[K]*line[K])}
}

// Try takes n units of the key without a wait. The error is ErrShare or ErrFull. Release must follow.
func (s *Semaphore[K]) Try(key K, n int64) error {
	if s == nil {
		return nil
	}
	return s.TryShare(key, n, s.bounds.Share)
}

// TryShare is Try with another share; 0: all units.
func (s *Semaphore[K]) TryShare(key K, n, share int64) error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case share > 0 && s.held[key]+n > share:
		return ErrShare
	case s.taken+n > s.bounds.Total:
		return ErrFull
	}
	s.hold(key, n)
	return nil
}

// Release releases n units of the key.
func (s *Semaphore[K]) Release(key K, n int64) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold(key, -n)
	s.grant()
}

// Resize changes the number of units. Keys keep their units.
func (s *Semaphore[K]) Resize(total int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bounds.Total = total
	s.grant()
}

// Taken returns the number of held units.
func (s *Semaphore[K]) Taken() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken
}

// Waiting returns the number of waiting requests.
func (s *Semaphore[K]) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting
}

// Wanted reports whether a waiting request would get a unit that the key releases.
func (s *Semaphore[K]) Wanted(key K) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold(key, -1)
	next := s.next()
	s.hold(key, 1)
	return next != nil
}

// Ask is a request for one unit.
type Ask[K comparable] struct {
	Key K
	// Limit is the longest wait; 0: only the context bounds it.
	Limit time.Duration
	// Due is the time at which the unit is needed at the latest; the zero time is later than any other.
	Due time.Time
	// Lane is served only while no request waits in a lower one. All requests of a key should have one lane.
	Lane int
	// Weight is the key's share among the waiting keys of its lane; 0 counts as 1. The weight of the key's first request counts.
	Weight int64
}

// Wait waits for one unit of any of the semaphores and returns the index of its semaphore. Release must follow. The error is ErrFull, or
// the cause of ctx's end; then no unit is held.
func Wait[K comparable](ctx context.Context, ask Ask[K], at ...*Semaphore[K]) (index int, err error) {
	for i, s := range at {
		if s.Try(ask.Key, 1) == nil {
			return i, nil
		}
	}
	r, joined := &request{due: ask.Due, lane: ask.Lane, weight: max(1, ask.Weight), result: make(chan int, 1)}, false
	for i, s := range at {
		joined = s.join(ask.Key, waiter{r, i}) || joined
	}
	if !joined {
		return 0, ErrFull
	}
	var late <-chan time.Time
	if ask.Limit != 0 {
		timer := time.NewTimer(ask.Limit)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case index = <-r.result:
	case <-late:
		err = ErrFull
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil && !r.decided.CompareAndSwap(false, true) { // the result came at the same moment
		index = <-r.result
		switch {
		case ctx.Err() == nil:
			err = nil
		case index != putOut:
			at[index].Release(ask.Key, 1)
		}
	}
	for _, s := range at {
		s.leave(ask.Key, r)
	}
	if err == nil && index == putOut {
		err = ErrFull
	}
	return max(0, index), err
}

// Position returns the place of a request in the order of grants, from 1, if keys release no units and no further request comes. The
// request may wait already, or not yet: the place is the same, unless another request of its key is due at the same time.
func (s *Semaphore[K]) Position(ask Ask[K]) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine := request{due: ask.Due, lane: ask.Lane, weight: max(1, ask.Weight)}
	turn, ahead := s.turns+1, 0
	if own := s.lines[ask.Key]; own != nil {
		turn = own.turn
		for ahead < len(own.waiters) && own.waiters[ahead].before(&mine) {
			ahead++
		}
	}
	held := s.held[ask.Key] + int64(ahead) // when its turn comes
	for _, l := range s.round {
		switch first := l.waiters[0]; {
		case l.key == ask.Key || first.lane > mine.lane:
		case first.lane < mine.lane:
			ahead += len(l.waiters)
		default:
			turns := held*first.weight/mine.weight - l.held // the other key gets so many while it holds fewer for its weight
			if held*first.weight%mine.weight > 0 || l.turn < turn {
				turns++
			}
			ahead += int(min(max(0, turns), int64(len(l.waiters))))
		}
	}
	return ahead + 1
}

// hold adds n units to the key. The caller holds the lock, here and below.
func (s *Semaphore[K]) hold(key K, n int64) {
	s.taken += n
	if n += s.held[key]; n == 0 {
		delete(s.held, key)
	} else {
		s.held[key] = n
	}
	if s.waiting > 0 {
		if l := s.lines[key]; l != nil {
			l.held = n
		}
	}
}

// join puts a request into the key's line and reports whether there was room. In a full line, a request that is due before the last one
// replaces it.
func (s *Semaphore[K]) join(key K, w waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lines[key]
	if l == nil {
		s.turns++
		l = &line[K]{key: key, held: s.held[key], turn: s.turns}
	}
	last := len(l.waiters)
	at := last
	for at > 0 && w.before(l.waiters[at-1].request) {
		at--
	}
	if last >= s.bounds.Line || s.bounds.Lines > 0 && s.waiting >= s.bounds.Lines {
		if at == last {
			return false
		}
		out := l.waiters[last-1]
		s.remove(l, last-1)
		if out.decided.CompareAndSwap(false, true) {
			out.result <- putOut
		}
	}
	l.waiters = slices.Insert(l.waiters, at, w)
	if s.lines[key] != l {
		s.lines[key], s.round, l.at = l, append(s.round, l), len(s.round)
	}
	s.waiting++
	s.grant()
	return true
}

// leave takes a request out of the key's line, if it is still there.
func (s *Semaphore[K]) leave(key K, r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.lines[key]; l != nil {
		if at := slices.IndexFunc(l.waiters, func(w waiter) bool { return w.request == r }); at >= 0 {
			s.remove(l, at)
		}
	}
}

func (s *Semaphore[K]) remove(l *line[K], at int) {
	l.waiters = slices.Delete(l.waiters, at, at+1)
	s.waiting--
	if len(l.waiters) > 0 {
		return
	}
	delete(s.lines, l.key)
	last := len(s.round) - 1
	s.round[l.at] = s.round[last]
	s.round[l.at].at = l.at
	s.round = slices.Delete(s.round, last, last+1)
}

// grant gives free units to waiting requests.
func (s *Semaphore[K]) grant() {
	for s.taken < s.bounds.Total && s.waiting > 0 {
		l := s.next()
		if l == nil {
			return
		}
		first := l.waiters[0]
		s.remove(l, 0)
		if !first.decided.CompareAndSwap(false, true) {
			continue // the request has a unit of another semaphore, or leaves
		}
		s.turns++
		l.turn = s.turns
		s.hold(l.key, 1)
		first.result <- first.index
	}
}

// next returns the line whose first request is served next; nil: none may be.
func (s *Semaphore[K]) next() (next *line[K]) {
	var now time.Time
	if s.bounds.Soon > 0 {
		now = time.Now()
	}
	for _, l := range s.round {
		if (s.bounds.Share <= 0 || l.held < s.bounds.Share) && (next == nil || s.earlier(l, next, now)) {
			next = l
		}
	}
	return next
}

// earlier reports whether the first request of one line comes before the first of another.
func (s *Semaphore[K]) earlier(l, other *line[K], now time.Time) bool {
	first, second := l.waiters[0], other.waiters[0]
	if first.lane != second.lane {
		return first.lane < second.lane
	}
	if s.bounds.Soon > 0 {
		soon := first.within(s.bounds.Soon, now)
		switch {
		case soon != second.within(s.bounds.Soon, now):
			return soon
		case soon && l.held == other.held && !first.due.Equal(second.due):
			return first.due.Before(second.due)
		}
	}
	mine, others := l.held*second.weight, other.held*first.weight
	return mine < others || mine == others && l.turn < other.turn
}

// within reports whether the request is due within a time.
func (r *request) within(soon time.Duration, now time.Time) bool {
	return !r.due.IsZero() && r.due.Sub(now) <= soon
}

// before reports whether the request is due before another of its key.
func (r *request) before(other *request) bool {
	return !r.due.IsZero() && (other.due.IsZero() || r.due.Before(other.due))
}
