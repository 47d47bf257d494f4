package tasks

import (
	"context"
	"sync"
	"time"

	"modelrelay/providers"
)

// readFor is how long a process reuses the result of a task read. Clients poll a task about a hundred times.
const readFor = time.Second

// reads shares looks at the same task among the readers of one process.
type reads = shared[string, Task]

// newReads renews what was read of tasks by again, where they are renewable.
func newReads(again func(ctx context.Context, old Task) (Task, bool)) *reads {
	r := newShared[string, Task](readFor)
	r.keep, r.again, r.worth = keepFor, again, Task.renewable
	return r
}

// shared lets the readers of one process share what costs the engine a request.
//
// It is no library: of otter v2.4 a hit takes as long (0.12 µs) and an entry 175 bytes instead of 460, of which there are 20,000 at most.
// But its first reader does not return when its context ends, the age of a value counts from the end of its read, a value that is no
// longer served cannot be renewed from, and each cache has a goroutine that its owner must end.
type shared[K comparable, V any] struct {
	mu    sync.Mutex
	life  time.Duration
	looks map[K]*look[V]
	// early is the age from which a look is answered from and taken anew behind its reader, so that who asks again and again waits
	// for none; 0: never.
	early time.Duration
	// keep is how long what was read, and is worth it, is kept for again, which makes a new value of it without a read where it
	// can. nil: nothing is kept.
	keep  time.Duration
	worth func(V) bool
	again func(ctx context.Context, old V) (V, bool)
}

// keptMost bounds the looks that are kept beyond their life.
const keptMost = 20_000

// look is one read, in progress or finished.
type look[V any] struct {
	done  chan struct{}
	at    time.Time // when it began: what has happened since it does not tell
	value V
	err   error
	// doubted: it must not be renewed. next: the one that was begun behind it, nil for none. The lock is shared's.
	doubted bool
	next    *look[V]
}

func newShared[K comparable, V any](life time.Duration) *shared[K, V] {
	return &shared[K, V]{life: life, looks: make(map[K]*look[V])}
}

// do returns a value whose read began less than life ago. Otherwise it reads the value once and shares the result with all concurrent
// callers. Only those callers receive an error of that read. The read goes on when its first caller leaves. Callers must not change what
// it returns.
func (r *shared[K, V]) do(ctx context.Context, key K, read func(context.Context) (V, error)) (V, error) {
	r.mu.Lock()
	l, ok := r.looks[key]
	if ok {
		ok = time.Since(l.at) < r.life
		select {
		case <-l.done:
			ok = ok && l.err == nil
			switch {
			case ok && r.early > 0 && l.next == nil && time.Since(l.at) >= r.early:
				l.next = &look[V]{done: make(chan struct{}), at: time.Now()}
				go r.follow(context.WithoutCancel(ctx), key, l, read)
			case !ok && l.next != nil && time.Since(l.next.at) < r.life: // it is under way, or has failed
				l, ok = l.next, !ended(l.next) || l.next.err == nil
			}
		default:
		}
	}
	if !ok {
		old := l
		l = &look[V]{done: make(chan struct{}), at: time.Now()}
		r.looks[key] = l
		go r.take(context.WithoutCancel(ctx), key, l, r.renewing(old, read))
	}
	r.mu.Unlock()
	select {
	case <-l.done:
		return l.value, l.err
	case <-ctx.Done():
		var none V
		return none, providers.AsFault(ctx.Err())
	}
}

// renewing is read, or again where that can do without it. old is the look before, nil for none. The caller holds the lock.
func (r *shared[K, V]) renewing(old *look[V], read func(context.Context) (V, error)) func(context.Context) (V, error) {
	if r.again == nil || old == nil || old.doubted {
		return read
	}
	select {
	case <-old.done:
	default: // it is under way, and takes too long
		return read
	}
	if old.err != nil {
		return read
	}
	return func(ctx context.Context) (V, error) {
		if value, ok := r.again(ctx, old.value); ok {
			return value, nil
		}
		return read(ctx)
	}
}

// ended reports whether a look is finished.
func ended[V any](l *look[V]) bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// follow takes the look behind an old one, which it stands in for from its end on. One that fails changes nothing.
func (r *shared[K, V]) follow(ctx context.Context, key K, old *look[V], read func(context.Context) (V, error)) {
	l := old.next
	r.take(ctx, key, l, read)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.looks[key] != old: // it was forgotten, or another one was taken
	case l.err == nil:
		r.looks[key] = l
	case time.Since(old.at) >= r.life:
		delete(r.looks, key)
	}
}

// take does the look; read bounds itself in time.
func (r *shared[K, V]) take(ctx context.Context, key K, l *look[V], read func(context.Context) (V, error)) {
	l.value, l.err = read(ctx)
	close(l.done)
	r.mu.Lock()
	kept := r.life
	if r.again != nil && l.err == nil && r.worth(l.value) && len(r.looks) <= keptMost {
		kept = max(r.life, r.keep)
	}
	r.mu.Unlock()
	time.AfterFunc(kept, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.looks[key] == l && (l.next == nil || ended(l.next)) { // else what follows it takes its place
			delete(r.looks, key)
		}
	})
}

// forget drops what was read of a key, so that the next read looks again.
func (r *shared[K, V]) forget(key K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.looks, key)
}

// doubt has the next look at a key be a read, once the last one's life is over.
func (r *shared[K, V]) doubt(key K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l, ok := r.looks[key]; ok {
		l.doubted = true
	}
}
