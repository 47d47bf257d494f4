package storage

import (
	"context"
	"slices"
	"sync"
)

// Batch lets concurrent calls share one round trip. If no call works, the next one works at once in its own goroutine, so a single caller
// does not wait. Calls that arrive meanwhile wait, and the first of them then works for all. Batch starts no goroutine and needs no Close.
type Batch[T any] struct {
	// Work handles the items together. It gets no cancellation and must end by the client's timeouts. It runs in one goroutine at a time.
	Work func(ctx context.Context, items []T)
	Most int // items in one round trip

	mu      sync.Mutex
	busy    bool
	waiting []entry[T]
	items   []T // scratch of the working call
}

type entry[T any] struct {
	item T
	wake chan bool // true: the waiter works next, false: its item is done
}

// Do returns when the item is done. The wake channel must have room for one value and may be reused afterwards.
func (b *Batch[T]) Do(ctx context.Context, item T, wake chan bool) {
	b.mu.Lock()
	b.waiting = append(b.waiting, entry[T]{item, wake})
	if b.busy {
		b.mu.Unlock()
		if !<-wake {
			return
		}
		b.mu.Lock()
	}
	b.busy = true
	// This call's entry is the first: no other call was waiting, or pass chose it.
	n := min(len(b.waiting), b.Most)
	var few [64]chan bool
	others := few[:0]
	b.items = b.items[:0]
	for i, t := range b.waiting[:n] {
		b.items = append(b.items, t.item)
		if i > 0 {
			others = append(others, t.wake)
		}
	}
	b.waiting = slices.Delete(b.waiting, 0, n)
	b.mu.Unlock()

	defer b.pass(others) // also if Work panics: otherwise the waiting calls would never return
	b.Work(context.WithoutCancel(ctx), b.items)
}

// pass hands the work to the first waiting call and wakes the calls whose items are done.
func (b *Batch[T]) pass(others []chan bool) {
	clear(b.items)
	b.mu.Lock()
	var next chan bool
	if len(b.waiting) > 0 {
		next = b.waiting[0].wake
	} else {
		b.busy = false
	}
	b.mu.Unlock()
	if next != nil {
		next <- true
	}
	for _, wake := range others {
		wake <- false
	}
}
