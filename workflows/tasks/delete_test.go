package tasks_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/storage/storagetest"
	"modelrelay/workflows/tasks"
)

// remove runs a removal that has an id of its own.
func remove(t *testing.T, acts *activities.Remover, in activities.RemoveInput) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(quiet()))
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(acts.Remove)
	if _, err := env.ExecuteActivity(acts.Remove, in); err != nil {
		t.Fatal(err)
	}
}

// TestDelete: after the answer to a delete no process returns or lists the task. Its idempotency key stays taken until the task
// is removed. A second delete succeeds.
func TestDelete(t *testing.T) {
	t.Parallel()
	synctest.Test(t, deleteATask)
}

func deleteATask(t *testing.T) {
	here, engine, index := newListing(storagetest.NewServer(t).Client(t))
	there := tasks.NewClient(engine, here.Options())
	ctx, cancel := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() { there.Follow(ctx) })
	defer following.Wait()
	defer cancel()
	synctest.Wait() // Follow listens
	task := mustCreate(t, here, keyed("a", 0))
	if err := here.Delete(t.Context(), task.ID, "other"); kindOf(err) != providers.NotFound {
		t.Fatalf("another token's delete: %v", err)
	}
	if _, err := there.Find(t.Context(), task.ID, "demo"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := here.Delete(t.Context(), task.ID, "demo"); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]*tasks.Client{"here": here, "there": there} {
		synctest.Wait() // no time passes: the cached read would be returned for a second
		if _, err := c.Find(t.Context(), task.ID, "demo"); kindOf(err) != providers.NotFound {
			t.Fatalf("%s: read after delete: %v, want not found", name, err)
		}
	}
	if page, err := here.List(t.Context(), tasks.ListQuery{TokenID: "demo", Limit: 10}); err != nil || len(page.Tasks) != 0 {
		t.Errorf("listed %+v, %v", page, err)
	}
	if _, err := here.Create(t.Context(), keyed("a", 0)); kindOf(err) != providers.Conflict {
		t.Errorf("its key during the removal: %v, want conflict", err)
	}
	// What Remove does at the end.
	engine.forget(task.ID)
	acts := &activities.Remover{Index: index, Executions: fakeNothing{}, Log: quiet()}
	remove(t, acts, activities.RemoveInput{TaskID: task.ID, Token: "demo", Created: task.CreatedAt})
	if again, err := here.Create(t.Context(), keyed("a", 0)); err != nil || again.ID != task.ID {
		t.Errorf("its key after the removal: %+v, %v", again, err)
	}
	if err := here.Delete(t.Context(), tasks.RandomID(), "demo"); kindOf(err) != providers.NotFound {
		t.Errorf("an unknown one: %v", err)
	}
}

// TestDeleteOfAnEarlierTask: a delete that comes while the removal of its task ends, or one of a step of that which is done
// again, leaves the task alone that is made under the same key meanwhile: it is read, listed, repeated and not called off.
// And a delete of that task does not take the removal of the earlier one for its own.
func TestDeleteOfAnEarlierTask(t *testing.T) {
	t.Parallel()
	service, engine, index := newListing(storagetest.Redis(t))
	archive := storagetest.NewMemoryArchive()
	acts := &activities.Remover{
		Index: index, Objects: archive, Executions: tasks.NewExecutions(engine, "", ""), Log: quiet(),
	}
	was := mustCreate(t, service, keyed("a", 0))
	if err := service.Delete(t.Context(), was.ID, "demo"); err != nil {
		t.Fatal(err)
	}
	in := activities.RemoveInput{TaskID: was.ID, Token: "demo", Created: was.CreatedAt}
	var now tasks.Task
	engine.described = func() {
		engine.forget(was.ID)
		remove(t, acts, in)
		now = mustCreate(t, service, keyed("a", 0))
	}
	if err := service.Delete(t.Context(), was.ID, "demo"); err != nil {
		t.Fatal(err)
	}
	if now.ID != was.ID {
		t.Fatalf("made %s, want %s", now.ID, was.ID)
	}
	there := func(when string) {
		t.Helper()
		if got, err := service.Find(t.Context(), now.ID, "demo"); err != nil || !got.CreatedAt.Equal(now.CreatedAt) {
			t.Errorf("%s: read %+v, %v", when, got, err)
		}
		if page, err := service.List(t.Context(), tasks.ListQuery{TokenID: "demo", Limit: 10}); err != nil || len(page.Tasks) != 1 {
			t.Errorf("%s: listed %+v, %v", when, page, err)
		}
	}
	there("after the second delete")
	for range 2 { // a worker may be lost that has done it
		remove(t, acts, in) // it would cancel a task that runs, which this engine cannot
		there("after the second removal")
		if again, err := service.Create(t.Context(), keyed("a", 0)); err != nil || !again.CreatedAt.Equal(now.CreatedAt) {
			t.Errorf("repeated: %+v, %v", again, err)
		}
	}
	before := engine.count() // the removal of the earlier task has not closed yet
	if err := service.Delete(t.Context(), now.ID, "demo"); err != nil || engine.count() != before+1 {
		t.Errorf("delete: %v, %d executions, want its own removal", err, engine.count())
	}
	remove(t, acts, in) // late
	if _, err := service.Find(t.Context(), now.ID, "demo"); kindOf(err) != providers.NotFound {
		t.Errorf("read during its own removal: %v, want not found", err)
	}
}

// TestDeleteNotBegun: a delete that could not begin hides nothing.
func TestDeleteNotBegun(t *testing.T) {
	t.Parallel()
	service, engine, _ := newListing(storagetest.Redis(t))
	task := mustCreate(t, service, keyed("a", 0))
	engine.startErr = errors.New("no way")
	if err := service.Delete(t.Context(), task.ID, "demo"); kindOf(err) != providers.Overloaded {
		t.Errorf("got %v, want overloaded", err)
	}
	if _, err := service.Find(t.Context(), task.ID, "demo"); err != nil {
		t.Errorf("read afterwards: %v", err)
	}
	if page, err := service.List(t.Context(), tasks.ListQuery{TokenID: "demo", Limit: 1}); err != nil || len(page.Tasks) != 1 {
		t.Errorf("listed afterwards: %+v, %v", page, err)
	}
}

// fakeNothing is a Temporal without tasks.
type fakeNothing struct {
	activities.Executions // nil: what is not below panics
}

func (fakeNothing) End(context.Context, activities.RemoveInput) (activities.Execution, error) {
	return activities.Execution{Closed: true}, nil
}

func (fakeNothing) Delete(context.Context, string, activities.Execution) ([]string, error) {
	return nil, nil
}

func (fakeNothing) Left(context.Context, string, []string) ([]string, error) { return nil, nil }
