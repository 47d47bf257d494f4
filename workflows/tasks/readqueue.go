package tasks

import (
	"context"
	"slices"
	"sync"
	"time"

	"modelrelay/providers"
)

const (
	// looksAtOnce bounds the reads of tasks that one process has under way at Temporal, creates and what they look up
	// apart: enough for thousands of reads a second, and few enough that a create beside them does not wait for long.
	looksAtOnce = 32
	// looksOfOne is how many of them one token may have, so that others find some free however slow Temporal is.
	looksOfOne = looksAtOnce / 2
	// lineMost bounds a token's reads that wait for their turn; those beyond are told to come back.
	lineMost = 256
	// turnTimeout bounds such a wait.
	turnTimeout = readTimeout
)

// readQueue shares the reads that may be under way at Temporal among tokens: where more want to, they take turns, a read of
// each token after the other.
type readQueue struct {
	mu    sync.Mutex
	free  int
	held  map[string]int
	lines map[string][]chan struct{} // who waits, by token; closed when their turn has come
	round []string                   // the tokens of lines, in the order of their turns
}

func newReadQueue() *readQueue {
	return &readQueue{free: looksAtOnce, held: make(map[string]int), lines: make(map[string][]chan struct{})}
}

// take waits for the token's turn. leave ends it. The error is Overloaded where that takes too long, or ctx's.
func (t *readQueue) take(ctx context.Context, tokenID string) (leave func(), err error) {
	leave = func() { t.leave(tokenID) }
	t.mu.Lock()
	line := t.lines[tokenID]
	switch {
	case t.free > 0 && t.held[tokenID] < looksOfOne && len(line) == 0:
		t.free--
		t.held[tokenID]++
		t.mu.Unlock()
		return leave, nil
	case len(line) >= lineMost:
		t.mu.Unlock()
		return nil, crowded()
	}
	ready := make(chan struct{})
	if len(line) == 0 {
		t.round = append(t.round, tokenID)
	}
	t.lines[tokenID] = append(line, ready)
	t.mu.Unlock()

	late := time.NewTimer(turnTimeout)
	defer late.Stop()
	select {
	case <-ready:
		return leave, nil
	case <-late.C:
		err = crowded()
	case <-ctx.Done():
		err = providers.AsFault(ctx.Err())
	}
	t.mu.Lock()
	at := slices.Index(t.lines[tokenID], ready)
	if at >= 0 {
		t.setLine(tokenID, slices.Delete(t.lines[tokenID], at, at+1))
	}
	t.mu.Unlock()
	if at < 0 { // its turn has come all the same
		leave()
	}
	return nil, err
}

func (t *readQueue) leave(tokenID string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free++
	if t.held[tokenID]--; t.held[tokenID] == 0 {
		delete(t.held, tokenID)
	}
	for range len(t.round) {
		if t.free == 0 {
			return
		}
		next := t.round[0]
		if t.held[next] >= looksOfOne {
			t.round = append(t.round[1:], next)
			continue
		}
		line := t.lines[next]
		close(line[0])
		t.free--
		t.held[next]++
		t.round = append(t.round[1:], next)
		t.setLine(next, line[1:])
	}
}

// setLine keeps the round as it says: the tokens with a line. The caller holds the lock.
func (t *readQueue) setLine(tokenID string, line []chan struct{}) {
	if len(line) > 0 {
		t.lines[tokenID] = line
		return
	}
	delete(t.lines, tokenID)
	t.round = slices.DeleteFunc(t.round, func(id string) bool { return id == tokenID })
}

func crowded() *providers.Fault {
	return &providers.Fault{
		Kind: providers.Overloaded, Message: "Too many reads of video tasks wait at the moment.", RetryAfter: time.Second, Accepted: providers.NotAccepted,
	}
}
