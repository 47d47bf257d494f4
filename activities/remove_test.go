package activities_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"modelrelay/activities"
	"modelrelay/storage/storagetest"
)

// fakeExecutions is a Temporal that deletes in its own time.
type fakeExecutions struct {
	activities.Executions // nil: what is not below panics

	deletes, looks int
	left           int // looks that still find the execution
}

func (e *fakeExecutions) End(context.Context, activities.RemoveInput) (activities.Execution, error) {
	return activities.Execution{}, nil // it runs on
}

func (e *fakeExecutions) Delete(context.Context, string, activities.Execution) ([]string, error) {
	e.deletes++
	return []string{"run"}, nil
}

func (e *fakeExecutions) Left(_ context.Context, _ string, runs []string) ([]string, error) {
	e.looks++
	if e.left--; e.left < 0 {
		return nil, nil
	}
	return runs, nil
}

// ending is a Temporal whose task ends after some looks, and then is deleted in its own time.
type ending struct {
	fakeExecutions

	running int // looks that still find it running
}

func (e *ending) End(context.Context, activities.RemoveInput) (activities.Execution, error) {
	e.running--
	return activities.Execution{Closed: e.running < 0, Run: "run", Incarnation: "life"}, nil
}

// TestRemoveGoesOn: the tries of one removal wait for the task's end, erase its objects before its execution, ask once to
// delete that, and then look; the waits begin anew after the end.
func TestRemoveGoesOn(t *testing.T) {
	t.Parallel()
	engine := &ending{fakeExecutions: fakeExecutions{left: 2}, running: 3}
	var last json.RawMessage
	var waits []time.Duration
	for try := int32(1); ; try++ {
		r := newTestEnv(t, nil)
		archive := storagetest.NewMemoryArchive()
		mustPut(t, archive, activities.IncarnationPrefix("video_x", "life")+"request.json")
		r.acts.Remover.Executions, r.acts.Remover.Objects = engine, archive
		if last != nil {
			r.env.SetHeartbeatDetails(last)
		}
		seen := beats[json.RawMessage](t, r)
		before := engine.deletes
		_, err := r.env.ExecuteActivity(r.acts.Remover.Remove, activities.RemoveInput{TaskID: "video_x"})
		if erased := len(archive.Keys()) == 0; erased != (engine.deletes > before) {
			t.Errorf("try %d: erased: %t, after %d deletes", try, erased, engine.deletes)
		}
		if err == nil {
			break
		}
		app, ok := errors.AsType[*temporal.ApplicationError](err)
		if !ok || try > 20 {
			t.Fatalf("try %d: %v", try, err)
		}
		waits = append(waits, app.NextRetryDelay())
		if all := seen(); len(all) > 0 {
			last = all[0]
		}
	}
	if engine.deletes != 1 || engine.looks != 3 || len(waits) != 6 {
		t.Errorf("%d deletes, %d looks, waits %v, want 1, 3 and six waits", engine.deletes, engine.looks, waits)
	}
	// What was asked for long ago is asked for again.
	r := newTestEnv(t, nil)
	r.acts.Remover.Executions = engine
	r.env.SetHeartbeatDetails(json.RawMessage(`{"execution":{"run":"run"},"asked":{"runs":["run"],"at":"2026-01-01T00:00:00Z"}}`))
	if _, err := r.env.ExecuteActivity(r.acts.Remover.Remove, activities.RemoveInput{TaskID: "video_x"}); err == nil || engine.deletes != 2 {
		t.Errorf("%v after %d deletes, want a second one", err, engine.deletes)
	}
}

func mustPut(t *testing.T, archive *storagetest.MemoryArchive, key string) {
	t.Helper()
	if err := archive.PutJSON(t.Context(), key, "x"); err != nil {
		t.Fatal(err)
	}
}
