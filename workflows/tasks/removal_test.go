package tasks_test

import (
	"testing"
	"testing/synctest"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/storage/storagetest"
	"modelrelay/workflows/tasks"
)

// TestDeleteWithoutRedis: without Redis, Temporal's record of a task suffices. After the answer to a delete every process reports
// the task as not found, whether it ran or had ended, and its key stays taken. If Temporal is unavailable too, a read reports
// neither a task nor its absence.
func TestDeleteWithoutRedis(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := storagetest.NewServer(t)
		connection := server.Client(t)
		engine := &fakeEngine{}
		process := func() *tasks.Client {
			return tasks.NewClient(engine, options(&fakeArchive{docs: make(map[string][]byte)}, connection))
		}
		here, there := process(), process()
		running, ended := mustCreate(t, here, keyed("running", 0)), mustCreate(t, here, keyed("ended", 0))
		engine.end(t, ended.ID)
		server.Leave()
		for key, task := range map[string]tasks.Task{"running": running, "ended": ended} {
			if _, err := there.Find(t.Context(), task.ID, "demo"); err != nil {
				t.Fatalf("%s: %v", key, err)
			}
			for range 2 {
				if err := here.Delete(t.Context(), task.ID, "demo"); err != nil {
					t.Fatalf("%s: delete: %v", key, err)
				}
				for name, c := range map[string]*tasks.Client{"here": here, "there": there} {
					if _, err := c.Find(t.Context(), task.ID, "demo"); kindOf(err) != providers.NotFound {
						t.Errorf("%s: read %s: %v, want not found", key, name, err)
					}
				}
			}
			if _, err := there.Create(t.Context(), keyed(key, 0)); kindOf(err) != providers.Conflict {
				t.Errorf("%s: its key: %v, want conflict", key, err)
			}
		}
		if got := engine.cancelled(running.ID); !got {
			t.Error("the running task was not called off")
		}
		engine.down(true)
		pass(2 * time.Second) // no look serves any more
		if _, err := there.Find(t.Context(), ended.ID, "demo"); kindOf(err) != providers.Overloaded {
			t.Errorf("read without Temporal: %v, want overloaded", err)
		}
		if err := there.Delete(t.Context(), ended.ID, "demo"); kindOf(err) != providers.Overloaded {
			t.Errorf("delete without Temporal: %v, want overloaded", err)
		}
	})
}

// TestRemovalOfAnEndedTask: the removal under the task's id finds the task's own execution and touches no other. The mark
// of one task does not apply to another one with its id.
func TestRemovalOfAnEndedTask(t *testing.T) {
	t.Parallel()
	service, engine, _ := newListing(storagetest.Redis(t))
	was := mustCreate(t, service, keyed("a", 0))
	engine.end(t, was.ID)
	run := engine.run(was.ID)
	if err := service.Delete(t.Context(), was.ID, "demo"); err != nil {
		t.Fatal(err)
	}
	if engine.count() != 1 || engine.run(was.ID) == run {
		t.Fatalf("%d executions, want the removal in the task's place", engine.count())
	}
	removals := tasks.NewExecutions(engine, "", "")
	in := activities.RemoveInput{TaskID: was.ID, Token: "demo", Created: was.CreatedAt}
	standing, err := removals.End(t.Context(), in)
	if err != nil || !standing.Closed || standing.Run != run || standing.Incarnation == "" || !standing.Single {
		t.Fatalf("is %+v, %v, want closed, of run %s", standing, err, run)
	}
	asked, err := removals.Delete(t.Context(), was.ID, standing)
	if err != nil || len(asked) != 1 {
		t.Fatalf("asked to delete %v, %v", asked, err)
	}
	if left, err := removals.Left(t.Context(), was.ID, asked); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
	if engine.count() != 1 {
		t.Errorf("the removal was deleted before its end")
	}
	engine.forget(was.ID) // the removal's last step
	now := mustCreate(t, tasks.NewClient(engine, options(&fakeArchive{docs: make(map[string][]byte)}, storagetest.Redis(t))), keyed("a", 0))
	if standing, err = removals.End(t.Context(), in); err != nil || standing.Run != "" || engine.cancelled(now.ID) {
		t.Errorf("the earlier task is %+v, %v, want it gone", standing, err)
	}
}

// TestRemovalCancelsOnce: a task that takes its time to end is asked once.
func TestRemovalCancelsOnce(t *testing.T) {
	t.Parallel()
	service, engine, _ := newListing(storagetest.Redis(t))
	task := mustCreate(t, service, keyed("a", 0))
	removals := tasks.NewExecutions(engine, "", "")
	in := activities.RemoveInput{TaskID: task.ID, Token: "demo", Created: task.CreatedAt}
	for range 3 {
		if standing, err := removals.End(t.Context(), in); err != nil || standing.Closed {
			t.Fatalf("is %+v, %v", standing, err)
		}
	}
	if engine.cancels != 1 {
		t.Errorf("cancelled %d times, want once", engine.cancels)
	}
	engine.close(task.ID, enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED)
	if standing, err := removals.End(t.Context(), in); err != nil || !standing.Closed {
		t.Errorf("is %+v, %v, want closed", standing, err)
	}
}
