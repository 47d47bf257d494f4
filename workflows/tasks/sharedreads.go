package tasks

import (
	"context"
	"sync"
	"time"

	"modelrelay/providers"
)

// readFor is how long a read of a task serves others: clients poll a hundred times per task.
const readFor = time.Second

// reads shares looks at the same task among the readers of one process.
type reads struct {
	mu    *sync.Mutex
	looks map[string]*look
}

// look is one read, under way or done.
type look struct {
	done chan struct{}
	at   time.Time // when it began: what has happened since it does not tell
	task Task
	err  error
}

func newReads() reads { return reads{mu: &sync.Mutex{}, looks: make(map[string]*look)} }

// do answers from a look that began at most readFor ago, waiting for its end, or takes one. A failed look serves only those who
// waited for it. The look goes on when its first reader leaves.
func (r reads) do(ctx context.Context, id string, read func(context.Context) (Task, error)) (Task, error) {
	r.mu.Lock()
	l, ok := r.looks[id]
	if ok {
		ok = time.Since(l.at) < readFor
		select {
		case <-l.done:
			ok = ok && l.err == nil
		default:
		}
	}
	if !ok {
		l = &look{done: make(chan struct{}), at: time.Now()}
		r.looks[id] = l
		go r.take(context.WithoutCancel(ctx), id, l, read)
	}
	r.mu.Unlock()
	select {
	case <-l.done:
		return l.task, l.err
	case <-ctx.Done():
		return Task{}, providers.AsFault(ctx.Err())
	}
}

// take does the look; read bounds itself in time.
func (r reads) take(ctx context.Context, id string, l *look, read func(context.Context) (Task, error)) {
	l.task, l.err = read(ctx)
	close(l.done)
	time.AfterFunc(readFor, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.looks[id] == l {
			delete(r.looks, id)
		}
	})
}

// forget drops what was read of a task, so that the next read looks again.
func (r reads) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.looks, id)
}
