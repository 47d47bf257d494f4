package fair_test

import (
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

// TestRateMemory: keys with all of their units are forgotten.
func TestRateMemory(t *testing.T) {
	t.Parallel()
	now, of := time.Now(), fair.Quota{Units: 60, Per: time.Minute}
	var r fair.Rate[int]
	for i := range 20_000 {
		r.Take(i, 1, of, now.Add(time.Duration(i)*time.Second))
	}
	if r.Kept() > 512 {
		t.Errorf("%d keys are remembered, of which one has spent a unit", r.Kept())
	}
}

// TestRateKeys: 100,000 keys have their rates at a time, and neither a key that takes without end nor many new keys make it forget a
// key that has spent its units.
func TestRateKeys(t *testing.T) {
	t.Parallel()
	now, of := time.Now(), fair.Quota{Units: 60, Per: time.Minute}
	var r fair.Rate[int]
	const keys = 100_000
	for key := range keys {
		r.Take(key, 60, of, now)
		r.Take(-1, 1, of, now)
	}
	for key := -1; key < keys; key++ {
		if wait := r.Take(key, 1, of, now); wait == 0 {
			t.Fatalf("key %d of %d has its units again", key, keys)
		}
	}
	most := 0
	for key := range 5 * keys {
		r.Take(keys+key, 1, of, now)
		most = max(most, r.Kept())
	}
	if most > 1<<18 {
		t.Errorf("%d keys are remembered", most)
	}
	for key := range keys {
		if wait := r.Take(key, 1, of, now); wait == 0 {
			t.Fatalf("new keys made it forget key %d", key)
		}
	}
}
