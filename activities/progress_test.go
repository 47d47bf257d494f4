package activities_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"modelrelay/activities"
	"modelrelay/providers"
)

// TestShownWaitsForTheLook: the estimate grows until the next poll is due and then stops, so a late poll never lowers it.
func TestShownWaitsForTheLook(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	p := activities.Progress{
		State: providers.JobRunning, Percent: 3, Usual: activities.Duration(100 * time.Second), Since: since, Next: since.Add(50 * time.Second),
	}
	for after, want := range map[time.Duration]int{0: 3, 20 * time.Second: 20, 50 * time.Second: 50, 90 * time.Second: 50, time.Hour: 50} {
		if got := p.Shown(since.Add(after)); got != want {
			t.Errorf("after %v: shown %d, want %d", after, got, want)
		}
	}
}

// TestPollShowsTheVendorsNumber: the shown progress never exceeds the number that the vendor reports, even if the job takes
// longer than usual. An estimate from before the vendor's first number stays.
func TestPollShowsTheVendorsNumber(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		says []int // at look after look, -1 for nothing; the last repeats
		want int   // shown by the end of the usual length
	}{
		"from the first look on":  {[]int{0, 12}, 12},
		"a constant number":       {[]int{12}, 12},
		"after looks without one": {[]int{-1, 12}, 50},
		"never":                   {[]int{-1}, 95},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const usual = 100 * time.Second
				n := 0
				w := newWatch(t, func(int) (providers.VideoStatus, error) {
					n++
					return providers.VideoStatus{State: providers.JobRunning, Progress: tc.says[min(n, len(tc.says))-1]}, nil
				})
				w.acts.Poller.Durations = fakeDurations{usual: func(context.Context, string, string) (time.Duration, bool, error) {
					return usual, true,
						nil
				}}
				began, most := time.Now(), 0
				for time.Since(began) < 2*usual {
					if _, _, ended := w.look(t); ended {
						t.Fatal("ended")
					}
					shown := w.last.Shown(time.Now())
					if shown < most {
						t.Errorf("fell from %d to %d", most, shown)
					}
					most = max(most, shown)
				}
				if most != tc.want {
					t.Errorf("shown %d, want %d", most, tc.want)
				}
			})
		})
	}
}
