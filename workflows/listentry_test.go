package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"

	"modelrelay/activities"
	"modelrelay/providers"
)

// TestVideoPassesItsEntry: a task passes Poll and Settle the data that restores its entry on the list.
func TestVideoPassesItsEntry(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	s.admits("main")
	s.submits(nil)
	s.archives()
	want := activities.Entry{Token: "demo", Created: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)}
	var polled, settled activities.Entry
	s.OnActivity("Poll", mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.PollInput) (providers.VideoStatus, error) {
		polled = in.Entry
		return done, nil
	})
	s.OnActivity("Settle", mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.SettleInput) error {
		settled = in.Entry
		return nil
	})
	in := input()
	in.Created = want.Created
	s.play(t, in)
	if polled != want || settled != want {
		t.Errorf("polled with %+v, settled with %+v, want %+v", polled, settled, want)
	}
}
