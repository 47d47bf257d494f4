package tasks_test

import (
	"testing"
	"testing/synctest"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/storage/storagetest"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// runRemoval runs a removal to its end, under its task's own id.
func runRemoval(t *testing.T, acts *activities.Remover, in activities.RemoveInput) {
	t.Helper()
	if err := removed(acts, in); err != nil {
		t.Fatal(err)
	}
}

// removed returns the error that a removal ends with.
func removed(acts *activities.Remover, in activities.RemoveInput) error {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(quiet()))
	env := suite.NewTestWorkflowEnvironment()
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: in.TaskID})
	env.RegisterActivity(acts.Remove)
	env.ExecuteWorkflow(workflows.Remove, in)
	return env.GetWorkflowError()
}

// TestRemovalThatCameLate: a delete is delayed until its task was removed and the next task of its key has ended. It does not hide that
// task, before or after it has run, and that task can be deleted.
func TestRemovalThatCameLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		connection := storagetest.NewServer(t).Client(t)
		service, engine, index := newListing(connection)
		acts := &activities.Remover{
			Index: index, Objects: storagetest.NewMemoryArchive(), Executions: tasks.NewExecutions(engine, "", ""), Log: quiet(),
		}
		was := mustCreate(t, service, keyed("a", 0))
		engine.end(t, was.ID)
		first := activities.RemoveInput{
			TaskID: was.ID, Token: "demo", Created: was.CreatedAt, Run: engine.run(was.ID),
			Revision: workflows.Revision,
		}
		var now tasks.Task
		engine.described = func() { // the delete has seen the first task
			if err := service.Delete(t.Context(), was.ID, "demo"); err != nil { // another one is faster
				t.Error(err)
			}
			runRemoval(t, acts, first)
			engine.forget(was.ID) // the removal has deleted itself
			now = mustCreate(t, service, keyed("a", 0))
			engine.end(t, now.ID)
		}
		if err := service.Delete(t.Context(), was.ID, "demo"); err != nil {
			t.Fatal(err)
		}
		second := activities.RemoveInput{TaskID: now.ID, Token: "demo", Created: now.CreatedAt, Revision: workflows.Revision}
		there := func(when string) {
			t.Helper()
			for name, c := range map[string]*tasks.Client{"here": service, "elsewhere": tasks.NewClient(engine, service.Options())} {
				if got, err := c.Find(t.Context(), now.ID, "demo"); err != nil || !got.CreatedAt.Equal(now.CreatedAt) ||
					got.State != workflows.Completed {
					t.Errorf("%s, %s: read %+v, %v", when, name, got, err)
				}
			}
			if page, err := service.List(t.Context(), tasks.ListQuery{TokenID: "demo", Limit: 10}); err != nil || len(page.Tasks) != 1 {
				t.Errorf("%s: listed %+v, %v", when, page, err)
			}
			if again, err := service.Create(t.Context(), keyed("a", 0)); err != nil || !again.CreatedAt.Equal(now.CreatedAt) {
				t.Errorf("%s: repeated: %+v, %v", when, again, err)
			}
		}
		if now.ID != was.ID || now.CreatedAt.Equal(was.CreatedAt) {
			t.Fatalf("made %+v", now)
		}
		there("before the removal runs")
		runRemoval(t, acts, first)
		there("after it has run")
		runRemoval(t, acts, first) // a worker may be lost that has done it
		there("after it has run again")

		task, err := service.Find(t.Context(), now.ID, "demo")
		if err != nil || task.ID != was.ID {
			t.Fatal(err)
		}
		if err := service.Delete(t.Context(), now.ID, "demo"); err != nil {
			t.Fatal(err)
		}
		if _, err := service.Find(t.Context(), now.ID, "demo"); kindOf(err) != providers.NotFound {
			t.Errorf("after its own delete: %v, want not found", err)
		}
		runRemoval(t, acts, second)
		if _, err := service.Find(t.Context(), now.ID, "demo"); kindOf(err) != providers.NotFound {
			t.Errorf("after its own removal: %v, want not found", err)
		}
	})
}
