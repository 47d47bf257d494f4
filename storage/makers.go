package storage

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// makerKept is how long a maker is remembered: a conversation that was left for longer is gone on with elsewhere.
	makerKept = 24 * time.Hour
	// makersLocal bounds what one process remembers by itself, about 200 bytes each.
	makersLocal = 20_000
	// makersWaiting bounds what waits for Redis while it is away, makersTogether what goes in one round trip.
	makersWaiting  = 20_000
	makersTogether = 500
	// makersEvery is how often new ones go to Redis. The client has its answer by then and a person reads it.
	makersEvery = 100 * time.Millisecond
	// makerPatience bounds the wait for an answer's maker. Without it the call goes where any call goes.
	makerPatience = 250 * time.Millisecond
	// sendTimeout bounds one round of writing, also the last one of Close.
	sendTimeout = time.Second
	// maxAnswerID bounds the name of an answer. Vendors' have about 60 bytes.
	maxAnswerID = 200
)

// Makers remembers for a day who made an answer that a later call may go on from: in this process at once, in the others
// a moment later. While Redis is away each process knows its own. Safe for concurrent use. Close it.
type Makers struct {
	client *redis.Client
	out    Outage

	mu sync.Mutex
	// young and old are what this process remembers; when young is full it becomes old.
	young, old map[string]string
	waiting    []made

	wake, stop chan struct{}
	ended      sync.WaitGroup
}

type made struct{ answer, maker string }

// MakersOptions may be nil.
type MakersOptions struct {
	Log *slog.Logger // told when Redis goes and comes; nil: nobody is
}

// NewMakers uses the client, which stays the caller's.
func NewMakers(client *redis.Client, opts *MakersOptions) *Makers {
	if opts == nil {
		opts = &MakersOptions{}
	}
	m := &Makers{
		client: client, young: make(map[string]string),
		out:  Outage{Log: cmp.Or(opts.Log, slog.New(slog.DiscardHandler)), What: "who made which answer"},
		wake: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	m.ended.Go(m.work)
	return m
}

// Remember takes down who made an answer. It never waits.
func (m *Makers) Remember(answer, maker string) {
	if answer == "" || len(answer) > maxAnswerID {
		return
	}
	m.mu.Lock()
	m.keep(answer, maker)
	if len(m.waiting) < makersWaiting {
		m.waiting = append(m.waiting, made{answer, maker})
	}
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// keep remembers here. The caller holds mu.
func (m *Makers) keep(answer, maker string) {
	if len(m.young) >= makersLocal/2 {
		m.young, m.old = make(map[string]string), m.young
	}
	m.young[answer] = maker
}

// Find tells who made an answer; "" when nobody knows. Only what this process does not know costs a round trip, and a
// Redis that is slow or away costs a moment.
func (m *Makers) Find(ctx context.Context, answer string) string {
	if answer == "" || len(answer) > maxAnswerID {
		return ""
	}
	m.mu.Lock()
	maker, known := m.young[answer]
	if !known {
		maker, known = m.old[answer]
	}
	m.mu.Unlock()
	if known || !m.out.Try(time.Now()) {
		return maker
	}
	ctx, cancel := context.WithTimeout(ctx, makerPatience)
	defer cancel()
	maker, err := m.client.Get(ctx, makerKey(answer)).Result()
	err = RedisError("find the maker of an answer", err)
	if errors.Is(err, ErrNotFound) {
		_ = m.out.Note(ctx, time.Now(), nil)
		return ""
	}
	if m.out.Note(ctx, time.Now(), err) != nil {
		return ""
	}
	m.mu.Lock()
	m.keep(answer, maker)
	m.mu.Unlock()
	return maker
}

// Close writes what still waits, unless Redis is away, and ends.
func (m *Makers) Close() {
	close(m.stop)
	m.ended.Wait()
}

func (m *Makers) work() {
	tick := time.NewTicker(makersEvery)
	defer tick.Stop()
	for {
		select {
		case <-m.stop:
			m.send()
			return
		case <-m.wake:
		}
		select {
		case <-m.stop:
			m.send()
			return
		case <-tick.C:
			m.send()
		}
	}
}

// send writes what waits. What Redis does not take is dropped: the process that made it knows.
func (m *Makers) send() {
	ctx, cancel := context.WithTimeout(context.Background(), sendTimeout) //nolint:forbidigo // of the goroutine that Close ends
	defer cancel()
	for {
		m.mu.Lock()
		n := min(len(m.waiting), makersTogether)
		some := m.waiting[:n:n]
		m.waiting = m.waiting[n:]
		m.mu.Unlock()
		if n == 0 || !m.out.Try(time.Now()) {
			return
		}
		_, err := m.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for _, one := range some {
				pipe.Set(ctx, makerKey(one.answer), one.maker, makerKept)
			}
			return nil
		})
		if m.out.Note(ctx, time.Now(), RedisError("remember makers", err)) != nil {
			return
		}
	}
}
