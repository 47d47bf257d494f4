package activities_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"modelrelay/activities"
)

// executions is a Temporal that deletes in its own time.
type executions struct {
	deletes, looks int
	left           int // looks that still find the execution
}

func (e *executions) End(context.Context, activities.RemoveInput) (activities.Standing, error) {
	return activities.Standing{}, nil // it runs on
}

func (e *executions) Delete(context.Context, string, activities.Standing) ([]string, error) {
	e.deletes++
	return []string{"run"}, nil
}

func (e *executions) Left(_ context.Context, _ string, runs []string) ([]string, error) {
	e.looks++
	if e.left--; e.left < 0 {
		return nil, nil
	}
	return runs, nil
}

// asked is Forget's heartbeat.
type asked struct {
	Runs []string  `json:"runs"`
	At   time.Time `json:"at"`
}

// TestForgetAsksOnce: Temporal is asked once to delete an execution, and after that only looked at.
func TestForgetAsksOnce(t *testing.T) {
	t.Parallel()
	engine := &executions{left: 5}
	var last asked
	for try := 1; ; try++ {
		r := newRig(t, nil)
		r.acts.Executions = engine
		if try > 1 {
			r.env.SetHeartbeatDetails(last)
		}
		seen := beats[asked](t, r)
		_, err := r.env.ExecuteActivity(r.acts.Forget, activities.Ended{Standing: activities.Standing{Run: "run"}})
		if err == nil {
			break
		}
		app, ok := errors.AsType[*temporal.ApplicationError](err)
		if all := seen(); !ok || app.NextRetryDelay() <= 0 || len(all) != 1 || try > 20 {
			t.Fatalf("try %d: %v, heartbeats %v", try, err, all)
		} else {
			last = all[0]
		}
	}
	if engine.deletes != 1 || engine.looks != 6 {
		t.Errorf("asked %d times to delete and looked %d times, want 1 and 6", engine.deletes, engine.looks)
	}
	// What was asked for long ago is asked for again.
	r := newRig(t, nil)
	r.acts.Executions = engine
	r.env.SetHeartbeatDetails(asked{Runs: []string{"run"}, At: time.Now().Add(-time.Hour)})
	if _, err := r.env.ExecuteActivity(r.acts.Forget, activities.Ended{Standing: activities.Standing{Run: "run"}}); err == nil || engine.deletes != 2 {
		t.Errorf("%v after %d deletes, want a second one", err, engine.deletes)
	}
}
