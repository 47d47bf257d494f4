package metrics_test

import (
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
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

// TestTaskTimes: the time in the queue and the time after it are counted for each kind.
func TestTaskTimes(t *testing.T) {
	t.Parallel()
	m, err := metrics.New(metrics.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	m.Learn(nil, maps.Keys(map[string]bool{}), nil)
	step := m.Step
	step(activities.Step{
		Name: activities.StepEnd, TaskID: "video_1", Outcome: activities.OutcomeCompleted, Took: 70 * time.Second,
		Ran: time.Minute,
	})
	step(activities.Step{Name: activities.StepEnd, TaskID: "video_2", Outcome: activities.OutcomeFailed, Took: time.Minute}) // never accepted
	step(activities.Step{Name: activities.StepBegun, TaskID: "call_1", Took: 2 * time.Second})
	step(activities.Step{
		Name: activities.StepEnd, TaskID: "call_1", Outcome: activities.OutcomeCompleted, Took: 5 * time.Second,
		Ran: 3 * time.Second,
	})
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	for _, want := range []string{
		`gateway_task_queued_duration_seconds_sum{kind="video"} 10`, `gateway_task_queued_duration_seconds_count{kind="video"} 1`,
		`gateway_task_queued_duration_seconds_sum{kind="call"} 2`, `gateway_task_queued_duration_seconds_count{kind="call"} 1`,
		`gateway_task_running_duration_seconds_sum{kind="video",state="completed"} 60`,
		`gateway_task_running_duration_seconds_sum{kind="call",state="completed"} 3`,
	} {
		if !strings.Contains(rec.Body.String(), want+"\n") {
			t.Errorf("the answer lacks %s", want)
		}
	}
	if strings.Contains(rec.Body.String(), `gateway_task_running_duration_seconds_count{kind="video",state="failed"}`) {
		t.Error("a video that no upstream accepted ran")
	}
}
