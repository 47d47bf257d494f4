package taskindex_test

import (
	"testing"
	"time"

	"modelrelay/storage/storagetest"
	"modelrelay/storage/taskindex"
)

func TestDurations(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	durations := taskindex.NewDurations(storagetest.Redis(t))
	usual := func(channel, model string) time.Duration {
		t.Helper()
		d, ok, err := durations.Usual(ctx, channel, model)
		if err != nil || ok != (d > 0) {
			t.Fatalf("%v, %v, %v", d, ok, err)
		}
		return d
	}
	for i, want := range []time.Duration{0, 0, time.Minute, time.Minute} {
		took := []time.Duration{time.Second, time.Minute, time.Hour, time.Minute}[i]
		if err := durations.Observe(ctx, "a:b", "c", took); err != nil {
			t.Fatal(err)
		}
		if got := usual("a:b", "c"); got != want {
			t.Errorf("after %d jobs: got %v, want %v", i+1, got, want)
		}
	}
	for range 20 { // old ones are forgotten
		if err := durations.Observe(ctx, "a:b", "c", 5*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if err := durations.Observe(ctx, "a:b", "c", 0); err != nil {
		t.Fatal(err)
	}
	if got := usual("a:b", "c"); got != 5*time.Second {
		t.Errorf("got %v, want 5s", got)
	}
	if got := usual("a", "b:c"); got != 0 {
		t.Errorf("two names meet in one key: %v", got)
	}
}
