package api

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// wrongKeysMost is how many wrong admin keys one source may send within wrongKeysWindow: enough for a person who
	// mistypes, nothing for a machine that guesses.
	wrongKeysMost   = 10
	wrongKeysWindow = time.Minute
	// wrongKeysSources bounds the memory of it.
	wrongKeysSources = 10_000
	// sourceBits6 is how much of an IPv6 address names a source: one subscriber has at least that much to itself.
	sourceBits6 = 64
)

// wrongKeys counts the wrong admin keys of each source. The zero value is ready; it is safe for concurrent use.
type wrongKeys struct {
	mu      sync.Mutex
	sources map[netip.Prefix]wrongKeyCount
}

type wrongKeyCount struct {
	n   int
	end time.Time // of the window
}

// held is how long the source is held back still, 0 for one that is not.
func (w *wrongKeys) held(source netip.Addr, now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	count := w.sources[networkOf(source)]
	if count.n < wrongKeysMost {
		return 0
	}
	return max(0, count.end.Sub(now))
}

// note counts a wrong key.
func (w *wrongKeys) note(source netip.Addr, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := networkOf(source)
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
}

// forget drops windows that are over, and all where none is: a flood from so many sources is not held back by source.
func (w *wrongKeys) forget(now time.Time) {
	for source, count := range w.sources {
		if !now.Before(count.end) {
			delete(w.sources, source)
		}
	}
	if len(w.sources) >= wrongKeysSources {
		clear(w.sources)
	}
}

// networkOf is the part of an address that counts as one source; the zero Prefix for what has no address.
func networkOf(source netip.Addr) netip.Prefix {
	bits := source.BitLen()
	if source.Is6() {
		bits = sourceBits6
	}
	prefix, _ := source.Prefix(bits) // its error is that of the zero Addr
	return prefix
}
