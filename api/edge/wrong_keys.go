package edge

import (
	"net/netip"
	"sync"
	"time"
)

// What one source may send of wrong keys within wrongKeysWindow and be told so; beyond that it is told to wait. A right
// key passes always: who shares a source with a stranger is not locked out, and a key too long to be guessed needs no
// other lock.
const (
	// wrongClientKeys is enough for the programs of one network whose key has just been revoked.
	wrongClientKeys = 60
	wrongKeysWindow = time.Minute
	// wrongKeysSources bounds the memory of it.
	wrongKeysSources = 10_000
	// sourceBits6 is how much of an IPv6 address names a source: one subscriber has at least that much to itself.
	sourceBits6 = 64
)

// WrongKeys counts the wrong keys of each source. The zero value is ready; it is safe for concurrent use.
type WrongKeys struct {
	mu      sync.Mutex
	sources map[netip.Prefix]wrongKeyCount
}

type wrongKeyCount struct {
	n   int
	end time.Time // of the window
}

// Note counts a wrong key. It returns how long the source is to wait, 0 for one that has sent no more than most.
func (w *WrongKeys) Note(source netip.Addr, most int, now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := NetworkOf(source)
	count, known := w.sources[at]
	if !known && len(w.sources) >= wrongKeysSources {
		w.forget(now)
	}
	if w.sources == nil {
		w.sources = make(map[netip.Prefix]wrongKeyCount)
	}
	if !now.Before(count.end) {
		count = wrongKeyCount{end: now.Add(wrongKeysWindow)}
	}
	count.n++
	w.sources[at] = count
	if count.n <= most {
		return 0
	}
	return count.end.Sub(now)
}

// forget drops windows that are over, and all where none is: a flood from so many sources is not slowed by source.
func (w *WrongKeys) forget(now time.Time) {
	for source, count := range w.sources {
		if !now.Before(count.end) {
			delete(w.sources, source)
		}
	}
	if len(w.sources) >= wrongKeysSources {
		clear(w.sources)
	}
}

// NetworkOf is the part of an address that counts as one source; the zero Prefix for what has no address.
func NetworkOf(source netip.Addr) netip.Prefix {
	bits := source.BitLen()
	if source.Is6() {
		bits = sourceBits6
	}
	prefix, _ := source.Prefix(bits) // its error is that of the zero Addr
	return prefix
}
