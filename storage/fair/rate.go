package fair

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Quota is a token bucket: a key may take Units at once, and gets as many back evenly within Per.
type Quota struct {
	Units int // above 0
	Per   time.Duration
}

// each returns the time in which n units come back.
func (q Quota) each(n int) time.Duration { return q.Per / time.Duration(q.Units) * time.Duration(n) }

// Rate limits keys by token buckets. It stores at most 262,144 keys; when there are more, it drops the half whose buckets are full again
// soonest. So new keys, however many, do not help a key that has spent its units. The zero value is ready. It is safe for concurrent use.
type Rate[K comparable] struct {
	mu sync.Mutex
	// full is the time at which a key's bucket is full again. At sweepAt keys, full ones are dropped.
	full    map[K]time.Time
	sweepAt int
}

// Full buckets are dropped from sweepLeast keys on, and half of the others at rateKeys.
const sweepLeast, rateKeys = 256, 1 << 18

// Take takes n units of the key if at least one is left, and returns 0; else it returns the time until the next unit. The last unit covers
// any n: the next Take waits for the difference.
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

// Spend takes n units of the key, even if none is left.
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

// sweep drops full buckets. The caller holds the lock.
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

// halve drops the half of the keys whose buckets are full again soonest. The caller holds the lock.
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
