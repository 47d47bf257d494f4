package activities_test

import (
	"testing"
	"time"

	"modelrelay/activities"
	"modelrelay/providers"
)

// TestShownWaitsForTheLook: an estimate goes on until the next look is due and no further, so a look that comes late, or a
// cancel on the way, knows what readers have seen at most.
func TestShownWaitsForTheLook(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	p := activities.Progress{
		State: providers.JobRunning, Percent: 3, Usual: activities.Duration(100 * time.Second), Since: since, Next: since.Add(50 * time.Second),
	}
	for after, want := range map[time.Duration]int{0: 3, 20 * time.Second: 20, 50 * time.Second: 50, 90 * time.Second: 50, time.Hour: 50} {
		if got := p.Shown(since.Add(after)); got != want || got > p.Peak() {
			t.Errorf("after %v: shown %d, want %d; peak %d", after, got, want, p.Peak())
		}
	}
	if p.Peak() != 50 {
		t.Errorf("peak %d, want 50", p.Peak())
	}
	p.Next = time.Time{} // a heartbeat of an older worker
	if got := p.Shown(since.Add(90 * time.Second)); got != 90 {
		t.Errorf("without the next look's time: shown %d, want 90", got)
	}
	if p.Peak() != 3 {
		t.Errorf("without the next look's time: peak %d, want 3", p.Peak())
	}
}
