// Package seats bounds the calls that a process has under way at a channel, and says who is next at one that is full. It knows no
// channel but by name, and no call.
package seats

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"
)

const (
	// mostWaiting is how many calls may wait for one channel: each holds a connection and a body, and whoever comes after so
	// many has no hope within the wait.
	mostWaiting = 1024
	// mostWaitingOfOne is how many of them may be one token's.
	mostWaitingOfOne = 128
)

// ErrFull says that no seat came free in time, or that too many wait already.
var ErrFull = errors.New("no seat came free in time")

// Channel is a channel of which no more than Most calls may be under way.
type Channel struct {
	Name string
	Most int // above 0
}

// Seats are those of all channels. The zero value is ready; it is safe for concurrent use.
type Seats struct {
	mu       sync.Mutex
	channels map[string]*channel // those at which somebody is
	turn     uint64              // counts the seats that were given to waiting calls
}

type channel struct {
	Channel

	taken   int
	held    map[string]int    // by token, above 0
	turns   map[string]uint64 // when each token that is here was last given a seat that it waited for
	waiting []*waiter         // in the order of their coming
}

// waiter is one call that waits at one channel or several.
type waiter struct {
	token string
	at    []*channel
	given chan string // takes the name of the channel at once
}

// Take takes a seat until leave is called; false where all are taken, or others wait for one.
func (s *Seats) Take(at Channel, token string) (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channel(at)
	s.give(c) // the bound may have grown
	if c.taken >= c.Most {
		return nil, false
	}
	return s.sit(c, token), true
}

// Wait waits for a seat at one of the channels, at least one, and takes the first that comes free until leave is called. Among
// those who wait the token with the fewest seats at the channel is next, among equals the one that has waited the longest for its turn, and
// of one token the call that came first. The error is ErrFull, or the cause of ctx's end.
func (s *Seats) Wait(ctx context.Context, at []Channel, token string, limit time.Duration) (name string, leave func(), err error) {
	w := &waiter{token: token, given: make(chan string, 1)}
	if !s.join(w, at) {
		return "", nil, ErrFull
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case name = <-w.given:
		return name, s.leaver(name, token), nil
	case <-timer.C:
		err = ErrFull
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case name = <-w.given: // meanwhile
		if ctx.Err() == nil {
			return name, s.leaver(name, token), nil
		}
		s.rise(name, token)
	default:
		s.remove(w)
	}
	return "", nil, err
}

// Waiting is how many calls wait for a seat at the channel.
func (s *Seats) Waiting(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.channels[name]; c != nil {
		return len(c.waiting)
	}
	return 0
}

// join puts a call into the lines of the channels; false where they are too long.
func (s *Seats) join(w *waiter, at []Channel) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range at {
		c := s.channel(one)
		own := 0
		for _, other := range c.waiting {
			if other.token == w.token {
				own++
			}
		}
		if len(c.waiting) < mostWaiting && own < mostWaitingOfOne {
			w.at = append(w.at, c)
			c.waiting = append(c.waiting, w)
		}
	}
	for _, c := range w.at {
		s.give(c) // one may have come free before the call waited
	}
	return len(w.at) > 0
}

// channel is that of the name, with the bound as it is now.
func (s *Seats) channel(at Channel) *channel {
	c := s.channels[at.Name]
	if c == nil {
		c = &channel{held: make(map[string]int), turns: make(map[string]uint64)}
		if s.channels == nil {
			s.channels = make(map[string]*channel)
		}
		s.channels[at.Name] = c
	}
	c.Channel = at
	return c
}

// sit takes a seat.
func (s *Seats) sit(c *channel, token string) (leave func()) {
	c.taken++
	c.held[token]++
	return s.leaver(c.Name, token)
}

func (s *Seats) leaver(name, token string) func() {
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.rise(name, token)
	})
}

// rise gives a seat back, to who is next.
func (s *Seats) rise(name, token string) {
	c := s.channels[name]
	c.taken--
	if c.held[token]--; c.held[token] == 0 {
		delete(c.held, token)
	}
	s.give(c)
	s.forget(c, token)
}

// give gives seats that are free to those who wait.
func (s *Seats) give(c *channel) {
	for c.taken < c.Most && len(c.waiting) > 0 {
		next := c.next()
		s.turn++
		c.turns[next.token] = s.turn
		c.taken++ // before the call leaves the line: the channel is forgotten where nobody is
		c.held[next.token]++
		s.remove(next)
		next.given <- c.Name
	}
}

// next is whose turn it is, of at least one who waits.
func (c *channel) next() *waiter {
	var best *waiter
	held, turn := math.MaxInt, uint64(math.MaxUint64)
	for _, w := range c.waiting {
		if h, t := c.held[w.token], c.turns[w.token]; h < held || h == held && t < turn {
			best, held, turn = w, h, t
		}
	}
	return best
}

// remove takes a call out of all lines.
func (s *Seats) remove(w *waiter) {
	for _, c := range w.at {
		c.waiting = slices.DeleteFunc(c.waiting, func(other *waiter) bool { return other == w })
		s.forget(c, w.token)
	}
}

// forget drops what is known of a token that is no longer here, and of a channel at which nobody is.
func (s *Seats) forget(c *channel, token string) {
	here := func(w *waiter) bool { return w.token == token }
	if c.held[token] == 0 && !slices.ContainsFunc(c.waiting, here) {
		delete(c.turns, token)
	}
	if c.taken == 0 && len(c.waiting) == 0 && s.channels[c.Name] == c {
		delete(s.channels, c.Name)
	}
}
