package metrics_test

import (
	"testing"
	"testing/synctest"
	"time"

	"modelrelay/activities"
	"modelrelay/cmd/gateway/internal/metrics"
)

// TestOldestQueued: the metric is the age of the oldest queued task of each kind. A task leaves it when it begins or ends, or
// when no worker reports it any more.
func TestOldestQueued(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		report, oldest := metrics.NewQueue()
		queued := func(id string, since time.Duration) {
			report(activities.Step{Name: activities.StepQueued, TaskID: id, Since: time.Now().Add(-since), Took: time.Minute})
		}
		want := func(video, call time.Duration) {
			t.Helper()
			if got := oldest(); got[activities.KindVideo] != video || got[activities.KindCall] != call {
				t.Errorf("got %v, want %s and %s", got, video, call)
			}
		}
		want(0, 0)
		queued("video_1", time.Hour)
		queued("call_1", 2*time.Minute)
		queued("resp_2", time.Minute)
		want(time.Hour, 2*time.Minute)
		report(activities.Step{Name: activities.StepBegun, TaskID: "call_1"})
		want(time.Hour, time.Minute)
		report(activities.Step{Name: activities.StepEnd, TaskID: "video_1"})
		want(0, time.Minute)
		<-time.After(2 * time.Minute) // of the bubble's clock
		want(0, 0)
	})
}
