package storage

import (
	"context"
	"sync"
)

// batch lets calls that wait at the same moment share one round trip. A call that finds nobody at work does the
// work at once, in its own goroutine, so a lone caller pays nothing; calls that come meanwhile wait, and the first
// of them then works for all. There is no goroutine to own and nothing to close.
type batch[T any] struct {
	// work handles the items together. It must end: by the client's timeouts, since no caller's cancellation
	// reaches it. It runs in one goroutine at a time.
	work func(ctx context.Context, items []T)
	most int // items in one round trip

	mu      sync.Mutex
	busy    bool
	waiting []turn[T]
	items   []T // scratch of the one who works
}

type turn[T any] struct {
	item T
	wake chan bool // true: the waiter works next, false: its item is done
}

// do returns when the item is done. The wake channel must have room for one value and may be reused afterwards.
func (b *batch[T]) do(ctx context.Context, item T, wake chan bool) {
	b.mu.Lock()
	b.waiting = append(b.waiting, turn[T]{item, wake})
	if b.busy {
		b.mu.Unlock()
		if !<-wake {
			return
		}
		b.mu.Lock()
	}
	b.busy = true
	// Our own turn stands first: we found nobody waiting, or were woken for being the first.
	n := min(len(b.waiting), b.most)
	var few [64]chan bool
	others := few[:0]
	b.items = b.items[:0]
	for i, t := range b.waiting[:n] {
		b.items = append(b.items, t.item)
		if i > 0 {
			others = append(others, t.wake)
		}
	}
	rest := copy(b.waiting, b.waiting[n:])
	clear(b.waiting[rest:])
	b.waiting = b.waiting[:rest]
	b.mu.Unlock()

	defer b.pass(others) // also when work panics: nobody may wait for ever
	b.work(context.WithoutCancel(ctx), b.items)
}

// pass hands the work to the first who waits and lets those go whose items are done.
func (b *batch[T]) pass(others []chan bool) {
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
