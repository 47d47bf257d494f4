// Package writebehind is a map in Redis with writes that do not block. Its user reads and writes the entries.
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
	// findWithin bounds the wait of Find for Redis; a call continues without the entries.
	findWithin = 250 * time.Millisecond
	// sendWithin bounds one round of writes, including the last one of Close.
	sendWithin = time.Second
	// writeMost bounds the entries of one write.
	writeMost = 500
	// idle is the interval at which the map looks for entries without a Put.
	idle = time.Hour
)

// Options configure a map from K to V.
type Options[K comparable, V any] struct {
	Part  string        // the feature that is missing while Redis is unavailable, for the log
	Log   *slog.Logger  // nil: silent
	Delay time.Duration // how long an entry waits for others before it is written
	// Waiting bounds the total Size of the entries that wait for Redis; if Size is nil, each counts as one.
	Waiting int
	Size    func(v V) int
	// Recent is the number of entries that stay in this process after Put or Find; 0: only those that wait.
	Recent int
	// Write writes entries, and Read returns the existing entries of at most ReadMost keys. Both return errors of storage.
	Write    func(ctx context.Context, entries map[K]V) error
	Read     func(ctx context.Context, keys []K) (map[K]V, error)
	ReadMost int
}

// Map stores entries here immediately, and for other processes a moment later, unless Redis refuses them. It is safe for concurrent use.
type Map[K comparable, V any] struct {
	opts Options[K, V]
	out  storage.Outage

	mu               sync.Mutex
	waiting, sending map[K]V
	size             int // of waiting
	// young and old hold the recent entries; when young is full it becomes old.
	young, old map[K]V

	loop *storage.Loop
}

// New starts a map.
func New[K comparable, V any](opts Options[K, V]) *Map[K, V] {
	m := &Map[K, V]{
		opts: opts, out: storage.Outage{Log: cmp.Or(opts.Log, slog.New(slog.DiscardHandler)), What: opts.Part},
		waiting: make(map[K]V), young: make(map[K]V), loop: storage.NewLoop(),
	}
	m.loop.Start(idle, m.work)
	return m
}

// Put stores an entry. It never waits for Redis. If too many entries wait, the entry stays only in this process.
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
	m.loop.Wake()
}

func (m *Map[K, V]) sizeOf(v V) int {
	if m.opts.Size == nil {
		return 1
	}
	return m.opts.Size(v)
}

// keep adds an entry to the recent ones. The caller holds mu.
func (m *Map[K, V]) keep(k K, v V) {
	if m.opts.Recent == 0 {
		return
	}
	if len(m.young) >= m.opts.Recent/2 {
		m.young, m.old = make(map[K]V), m.young
	}
	m.young[k] = v
}

// Has reports whether this process has the entry.
func (m *Map[K, V]) Has(k K) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, is := m.local(k)
	return is
}

// local returns an entry of this process. The caller holds mu.
func (m *Map[K, V]) local(k K) (v V, is bool) {
	for _, entries := range []map[K]V{m.waiting, m.sending, m.young, m.old} {
		if v, is = entries[k]; is {
			break
		}
	}
	return v, is
}

// Find returns the entries of the keys that exist. While Redis is slow or unavailable it returns only entries of this process.
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
		if &part[0] == &missing[0] { // a timeout of a later part may mean too many keys, not an outage
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

// Close writes the waiting entries, unless Redis is unavailable, and stops the map.
func (m *Map[K, V]) Close() {
	m.loop.Stop()
	m.send()
}

// work writes the waiting entries after the delay, or at once when the map stops.
func (m *Map[K, V]) work(ctx context.Context, _ bool) {
	delay := time.NewTimer(m.opts.Delay)
	defer delay.Stop()
	select {
	case <-ctx.Done():
	case <-delay.C:
	}
	m.send()
}

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

// take moves waiting entries to sending, and returns false if none wait.
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
