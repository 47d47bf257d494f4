package fake

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// tallyKey is what calls are counted by.
type tallyKey struct{ vendor, operation, key, model string }

// tally counts calls. A call is open from its arrival to its end; it ends answered, faulted or canceled, where faulted
// means a rule cut it and canceled that the client went away first.
type tally struct {
	Calls    int64 `json:"calls"`
	Accepted int64 `json:"accepted"`
	Answered int64 `json:"answered"`
	Canceled int64 `json:"canceled"`
	Faulted  int64 `json:"faulted"`
	Open     int64 `json:"open"`
	// Sent is how many bytes of events their connections have taken; it grows while a call is open. Atomic.
	Sent int64 `json:"sent"`
	// Served counts calls of models whose answer was written to its end; the rest is what those answers held.
	Served            int64 `json:"served"`
	InputTokens       int64 `json:"input_tokens"`
	CachedTokens      int64 `json:"cached_tokens"` // part of InputTokens
	OutputTokens      int64 `json:"output_tokens"`
	Images            int64 `json:"images"`
	AudioMilliseconds int64 `json:"audio_milliseconds"`
}

// Made is what an answer holds that its vendor charges for. Cached is part of Input.
type Made struct {
	Input, Cached, Output, Images int
	Audio                         time.Duration
}

func (t *tally) add(other *tally) {
	t.Calls += other.Calls
	t.Accepted += other.Accepted
	t.Answered += other.Answered
	t.Canceled += other.Canceled
	t.Faulted += other.Faulted
	t.Open += other.Open
	t.Sent += atomic.LoadInt64(&other.Sent)
	t.Served += other.Served
	t.InputTokens += other.InputTokens
	t.CachedTokens += other.CachedTokens
	t.OutputTokens += other.OutputTokens
	t.Images += other.Images
	t.AudioMilliseconds += other.AudioMilliseconds
}

// phase reads the count a waiter asked for; ok is false for an unknown word.
func (t *tally) phase(name string) (count int64, ok bool) {
	switch name {
	case "", "arrived":
		return t.Calls, true
	case "accepted":
		return t.Accepted, true
	case "answered":
		return t.Answered, true
	case "canceled":
		return t.Canceled, true
	case "faulted":
		return t.Faulted, true
	case "ended":
		return t.Calls - t.Open, true
	case "open":
		return t.Open, true
	}
	return 0, false
}

// tallyFilter selects tallies; an empty field selects all.
type tallyFilter struct{ vendor, operation, key, model string }

func (f tallyFilter) matches(k tallyKey) bool {
	return (f.vendor == "" || f.vendor == k.vendor) && (f.operation == "" || f.operation == k.operation) &&
		(f.key == "" || f.key == k.key) && (f.model == "" || f.model == k.model)
}

// maxTallies bounds the ledger against clients that invent models; what comes later is counted without its model.
const maxTallies = 10000

// ledger counts every call and wakes those who wait for one.
type ledger struct {
	mu      sync.Mutex
	tallies map[tallyKey]*tally
	waiting int
	changed chan struct{}
}

func newLedger() *ledger {
	return &ledger{tallies: map[tallyKey]*tally{}, changed: make(chan struct{})}
}

func (l *ledger) arrive(k tallyKey) *tally {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tallies[k]
	if t == nil {
		if len(l.tallies) >= maxTallies {
			k.model, k.key = "", ""
		}
		if t = l.tallies[k]; t == nil {
			t = new(tally)
			l.tallies[k] = t
		}
	}
	t.Calls++
	t.Open++
	l.wake()
	return t
}

func (l *ledger) accept(t *tally) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t.Accepted++
	l.wake()
}

func (l *ledger) serve(t *tally, made Made) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t.Served++
	t.InputTokens += int64(made.Input)
	t.CachedTokens += int64(made.Cached)
	t.OutputTokens += int64(made.Output)
	t.Images += int64(made.Images)
	t.AudioMilliseconds += made.Audio.Milliseconds()
}

func (l *ledger) leave(t *tally, answered, canceled bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t.Open--
	switch {
	case canceled:
		t.Canceled++
	case answered:
		t.Answered++
	default:
		t.Faulted++
	}
	l.wake()
}

// wake must be called with the lock held.
func (l *ledger) wake() {
	if l.waiting > 0 {
		close(l.changed)
		l.changed = make(chan struct{})
		l.waiting = 0
	}
}

func (l *ledger) sum(f tallyFilter) tally {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sumLocked(f)
}

func (l *ledger) sumLocked(f tallyFilter) tally {
	var total tally
	for k, t := range l.tallies {
		if f.matches(k) {
			total.add(t)
		}
	}
	return total
}

// byVendor sums the selected tallies per vendor and operation.
func (l *ledger) byVendor(f tallyFilter) map[string]map[string]*tally {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[string]map[string]*tally{}
	for k, t := range l.tallies {
		if !f.matches(k) {
			continue
		}
		if all[k.vendor] == nil {
			all[k.vendor] = map[string]*tally{}
		}
		if all[k.vendor][k.operation] == nil {
			all[k.vendor][k.operation] = new(tally)
		}
		all[k.vendor][k.operation].add(t)
	}
	return all
}

// wait returns once the selected calls reached count in the phase, or with the count so far when ctx ends.
func (l *ledger) wait(ctx context.Context, f tallyFilter, phase string, count int64) (reached bool, have int64) {
	for {
		l.mu.Lock()
		total := l.sumLocked(f)
		have, _ = total.phase(phase)
		if have >= count {
			l.mu.Unlock()
			return true, have
		}
		l.waiting++
		changed := l.changed
		l.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return false, have
		}
	}
}

// reset drops the counts. Calls in progress then count in tallies that are not read any more.
func (l *ledger) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tallies = map[tallyKey]*tally{}
	l.wake()
}
