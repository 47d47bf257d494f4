package fair_test

import (
	"fmt"
	"testing"
	"time"

	"modelrelay/storage/fair"
)

// TestRate: a key takes its units at once, then one by one as they come back, and takes nothing from another key.
func TestRate(t *testing.T) {
	t.Parallel()
	now, of := time.Now(), fair.Quota{Units: 60, Per: time.Minute}
	var r fair.Rate[string]
	for i := range 60 {
		if wait := r.Take("a", 1, of, now); wait != 0 {
			t.Fatalf("after %d: wait %s", i, wait)
		}
	}
	if wait := r.Take("a", 1, of, now); wait != time.Second {
		t.Errorf("wait %s", wait)
	}
	if wait := r.Take("b", 100, of, now); wait != 0 {
		t.Errorf("the other key: wait %s", wait)
	}
	if wait := r.Take("b", 1, of, now); wait != 41*time.Second {
		t.Errorf("beyond the last unit: wait %s", wait)
	}
	now = now.Add(time.Second)
	if wait := r.Take("a", 0, of, now); wait != 0 {
		t.Errorf("after a second: wait %s", wait)
	}
	r.Spend("a", 3, of, now)
	if wait := r.Take("a", 1, of, now); wait != 3*time.Second {
		t.Errorf("after units that were not left: wait %s", wait)
	}
	now = now.Add(time.Hour)
	r.Spend("a", 59, of, now)
	if first, second := r.Take("a", 1, of, now), r.Take("a", 1, of, now); first != 0 || second != time.Second {
		t.Errorf("after an hour: wait %s, then %s", first, second)
	}
}

// TestRateMemory: keys with all of their units are forgotten, and no more are remembered than there may be.
func TestRateMemory(t *testing.T) {
	t.Parallel()
	now, of := time.Now(), fair.Quota{Units: 60, Per: time.Minute}
	var r fair.Rate[string]
	for i := range 50_000 {
		r.Take(fmt.Sprint(i), 1, of, now)
		if r.Kept() > 10_000 {
			t.Fatalf("%d keys are remembered", r.Kept())
		}
	}
	now = now.Add(time.Minute)
	for i := range 20_000 {
		r.Take(fmt.Sprint(i), 1, of, now.Add(time.Duration(i)*time.Second))
	}
	if r.Kept() > 512 {
		t.Errorf("%d keys are remembered, of which one has spent a unit", r.Kept())
	}
}
