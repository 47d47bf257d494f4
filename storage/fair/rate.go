package fair

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Quota is how many units a key may take at once. As many come back evenly within the time.
type Quota struct {
	Units int // above 0
	Per   time.Duration
}

// each is how long n units take to come back.
func (q Quota) each(n int) time.Duration { return q.Per / time.Duration(q.Units) * time.Duration(n) }

// Rate bounds how often keys take something. It remembers 262,144 keys at most; where more take units at a time, the half that has all of
// its units again soonest begins anew. So new keys, however many, do not help a key that has spent its units. The zero value is ready. It
// is safe for concurrent use.
type Rate[K comparable] struct {
	mu sync.Mutex
	// full is when a key has all of its units again. Keys that have them are forgotten when there are sweepAt.
	full    map[K]time.Time
	sweepAt int
}

// Keys that have all of their units are forgotten from sweepLeast keys on, and half of the others at rateKeys.
const sweepLeast, rateKeys = 256, 1 << 18

// Take takes n units of the key where at least one is left, and returns 0; else it returns how long the key has to wait for one. The
// last unit covers any n: the next Take waits for the difference.
func (r *Rate[K]) Take(key K, n int, of Quota, now time.Time) (wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if full, known := r.full[key]; known {
		if wait := full.Sub(now) - of.Per + of.each(1); wait > 0 {
			return wait
		}
	}
	r.spend(key, n, of, now)
	return 0
}

// Spend takes n units of the key, left or not.
func (r *Rate[K]) Spend(key K, n int, of Quota, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spend(key, n, of, now)
}

// spend takes units. The caller holds the lock.
func (r *Rate[K]) spend(key K, n int, of Quota, now time.Time) {
	if n == 0 {
		return
	}
	full, known := r.full[key]
	if !known && len(r.full) >= r.sweepAt {
		r.sweep(now)
	}
	if full.Before(now) {
		full = now
	}
	r.full[key] = full.Add(of.each(n))
}

// sweep forgets keys that have all of their units. The caller holds the lock.
func (r *Rate[K]) sweep(now time.Time) {
	for key, full := range r.full {
		if !full.After(now) {
			delete(r.full, key)
		}
	}
	if r.full == nil {
		r.full = make(map[K]time.Time)
	}
	if len(r.full) >= rateKeys {
		r.halve()
	}
	r.sweepAt = min(rateKeys, max(sweepLeast, 2*len(r.full)))
}

// halve forgets the half of the keys that has all units again soonest. The caller holds the lock.
func (r *Rate[K]) halve() {
	times := slices.SortedFunc(maps.Values(r.full), time.Time.Compare)
	least := times[len(times)/2]
	for key, full := range r.full {
		if full.Before(least) || full.Equal(least) && len(r.full) > rateKeys/2 {
			delete(r.full, key)
		}
	}
}

// sourceBits6 is the length of the IPv6 prefix that counts as one source: a subscriber has at least such a network.
const sourceBits6 = 64

// NetworkOf returns the network that counts as one source; the zero Prefix for the zero Addr.
func NetworkOf(source netip.Addr) netip.Prefix {
	bits := source.BitLen()
	if source.Is6() {
		bits = sourceBits6
	}
	prefix, _ := source.Prefix(bits) // its error is that of the zero Addr
	return prefix
}
