// Package writebehind is a map in Redis whose writers do not wait. It does not know what is in it: its user reads and writes.
package writebehind

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"modelrelay/storage"
)

const (
	// findWithin bounds the wait for Redis: a call goes on without what it looks for.
	findWithin = 250 * time.Millisecond
	// sendWithin bounds one round of writing, also the last one of Close.
	sendWithin = time.Second
	// writeMost is how many entries are written together.
	writeMost = 500
)

// Options of a map from K to V.
type Options[K comparable, V any] struct {
	Part  string        // what is missing while Redis is away, for the log
	Log   *slog.Logger  // nil: silent
	Delay time.Duration // how long an entry waits for others before it is written
	// Waiting bounds the entries that wait for Redis, together, in units of Size; nil: each is one unit.
	Waiting int
	Size    func(v V) int
	// Recent is how many entries that were put or read stay in this process; 0: none but those that wait.
	Recent int
	// Write writes entries, and Read reads those of at most ReadMost keys that there are. Both return errors of storage.
	Write    func(ctx context.Context, entries map[K]V) error
	Read     func(ctx context.Context, keys []K) (map[K]V, error)
	ReadMost int
}

// Map is in this process at once, and in the others a moment later. Entries that Redis does not take are dropped. Safe for
// concurrent use. The caller closes it.
type Map[K comparable, V any] struct {
	opts Options[K, V]
	out  storage.Outage

	mu               sync.Mutex
	waiting, sending map[K]V
	size             int // of waiting
	// young and old are recent entries; when young is full it becomes old.
	young, old map[K]V

	wake, stop, ended chan struct{}
}

// New starts a map.
func New[K comparable, V any](opts Options[K, V]) *Map[K, V] {
	m := &Map[K, V]{
		opts: opts, out: storage.Outage{Log: cmp.Or(opts.Log, slog.New(slog.DiscardHandler)), What: opts.Part},
		waiting: make(map[K]V), young: make(map[K]V),
		wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	go m.run()
	return m
}

// Put stores an entry. It never waits for Redis; while too many entries wait, it is not written.
func (m *Map[K, V]) Put(k K, v V) {
	m.mu.Lock()
	m.keep(k, v)
	more := m.sizeOf(v)
	if before, is := m.waiting[k]; is {
		more -= m.sizeOf(before)
	}
	if m.size+more <= m.opts.Waiting {
		m.waiting[k] = v
		m.size += more
	}
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *Map[K, V]) sizeOf(v V) int {
	if m.opts.Size == nil {
		return 1
	}
	return m.opts.Size(v)
}

// keep makes an entry a recent one. The caller holds mu.
func (m *Map[K, V]) keep(k K, v V) {
	if m.opts.Recent == 0 {
		return
	}
	if len(m.young) >= m.opts.Recent/2 {
		m.young, m.old = make(map[K]V), m.young
	}
	m.young[k] = v
}

// Has reports whether this process knows the key.
func (m *Map[K, V]) Has(k K) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, is := m.local(k)
	return is
}

// local is an entry that this process knows. The caller holds mu.
func (m *Map[K, V]) local(k K) (v V, is bool) {
	for _, entries := range []map[K]V{m.waiting, m.sending, m.young, m.old} {
		if v, is = entries[k]; is {
			break
		}
	}
	return v, is
}

// Find returns the entries that there are. A Redis that is slow costs a moment, and one that is away nothing: then only those are
// found that this process knows.
func (m *Map[K, V]) Find(ctx context.Context, keys []K) map[K]V {
	found := make(map[K]V, len(keys))
	var missing []K
	m.mu.Lock()
	for _, k := range keys {
		if v, is := m.local(k); is {
			found[k] = v
		} else {
			missing = append(missing, k)
		}
	}
	m.mu.Unlock()
	if len(missing) == 0 || !m.out.Try(time.Now()) {
		return found
	}
	ctx, cancel := context.WithTimeout(ctx, findWithin)
	defer cancel()
	for part := range slices.Chunk(missing, m.opts.ReadMost) {
		read, err := m.opts.Read(ctx, part)
		if &part[0] == &missing[0] { // later it may be this caller that looks for too much, which means no outage
			_ = m.out.Note(ctx, time.Now(), err)
		}
		if err != nil {
			break
		}
		maps.Copy(found, read)
		m.mu.Lock()
		for k, v := range read {
			m.keep(k, v)
		}
		m.mu.Unlock()
	}
	return found
}

// Close writes what waits, unless Redis is away, and ends.
func (m *Map[K, V]) Close() {
	close(m.stop)
	<-m.ended
}

func (m *Map[K, V]) run() {
	defer close(m.ended)
	defer m.send()
	for {
		select {
		case <-m.stop:
			return
		case <-m.wake:
		}
		delay := time.NewTimer(m.opts.Delay)
		select {
		case <-m.stop:
			delay.Stop()
			return
		case <-delay.C:
			m.send()
		}
	}
}

// send writes what waits.
func (m *Map[K, V]) send() {
	ctx, cancel := context.WithTimeout(context.Background(), sendWithin) //nolint:forbidigo // of the goroutine that Close ends
	defer cancel()
	for m.take() && m.out.Try(time.Now()) {
		if m.out.Note(ctx, time.Now(), m.opts.Write(ctx, m.sending)) != nil {
			break
		}
	}
	m.mu.Lock()
	m.sending = nil
	m.mu.Unlock()
}

// take makes some of what waits sending; false: nothing waits.
func (m *Map[K, V]) take() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sending = make(map[K]V)
	for k, v := range m.waiting {
		if len(m.sending) == writeMost {
			break
		}
		m.sending[k] = v
		m.size -= m.sizeOf(v)
		delete(m.waiting, k)
	}
	return len(m.sending) > 0
}
