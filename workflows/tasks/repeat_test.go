package tasks_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/storage/storagetest"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// TestRepeated: Repeated finds the task of a repeat and creates none.
func TestRepeated(t *testing.T) {
	t.Parallel()
	service, engine, _ := newListing(storagetest.Redis(t))
	made := mustCreate(t, service, keyed("a", 0))
	if got, err := service.Repeated(t.Context(), keyed("a", 0)); err != nil || got.ID != made.ID || got.Request.Prompt != "a" {
		t.Errorf("the repeat: got %+v, %v", got, err)
	}
	another, unknown, unkeyed := keyed("a", 0), keyed("b", 0), keyed("a", 0)
	another.Request.Prompt, unkeyed.IdempotencyKey = "another", ""
	for name, tc := range map[string]struct {
		in   tasks.Create
		want providers.Kind
	}{
		"another request": {another, providers.Mismatch}, "another key": {unknown, providers.NotFound}, "no key": {unkeyed, providers.NotFound},
	} {
		if got, err := service.Repeated(t.Context(), tc.in); kindOf(err) != tc.want {
			t.Errorf("%s: got %+v, %v, want %s", name, got, err, tc.want)
		}
	}
	if err := service.Delete(t.Context(), made.ID, "demo"); err != nil {
		t.Fatal(err)
	}
	if got, err := service.Repeated(t.Context(), keyed("a", 0)); kindOf(err) != providers.Conflict {
		t.Errorf("during its removal: got %+v, %v, want conflict", got, err)
	}
	if engine.count() != 2 { // the task and its removal
		t.Errorf("%d executions", engine.count())
	}
}

// TestRepeatDuringRemovalOfEarlierTask: a task whose id another had before is found by its key, also while the removal of
// that other has not ended.
func TestRepeatDuringRemovalOfEarlierTask(t *testing.T) {
	t.Parallel()
	service, engine, index := newListing(storagetest.Redis(t))
	made := mustCreate(t, service, keyed("a", 0))
	if err := index.MarkRemoval(t.Context(), "demo", made.ID, made.CreatedAt.Add(-time.Minute)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got, err := service.Create(t.Context(), keyed("a", 0)); err != nil || got.ID != made.ID {
			t.Errorf("got %+v, %v, want %s", got, err, made.ID)
		}
	}
	engine.forget(made.ID) // the removal of the earlier task is still in progress
	if got, err := service.Create(t.Context(), keyed("a", 0)); kindOf(err) != providers.Conflict {
		t.Errorf("without a task of its own: got %+v, %v, want conflict", got, err)
	}
}

// TestRepeatWhileRemoved: the removal of a task waits for another create under the same key that has put inputs into the archive. That
// create makes no task and removes its inputs. A task that starts has its inputs, and nothing else is left behind.
func TestRepeatWhileRemoved(t *testing.T) {
	t.Parallel()
	archive := storagetest.NewMemoryArchive()
	engine := &fakeEngine{}
	service := tasks.NewClient(engine, options(archive, storagetest.Redis(t)))
	acts := &activities.Remover{Objects: archive, Executions: tasks.NewExecutions(engine, "", ""), Log: quiet()}
	create := func() (tasks.Task, error) {
		return service.Create(t.Context(), create(providers.VideoRequest{
			Model: "m", Prompt: strings.Repeat("long ", 20_000), Inputs: []providers.Media{{Data: []byte("pixels"), ContentType: "image/png"}},
		}))
	}
	removal := func(task tasks.Task) activities.RemoveInput {
		engine.end(t, task.ID)
		return activities.RemoveInput{TaskID: task.ID, Token: "demo", Created: task.CreatedAt}
	}
	remove := func(task tasks.Task) { runRemoval(t, acts, removal(task)) }
	var other tasks.Task
	begun := false
	archive.Fail = func(operation, key string) error {
		// Another create makes the task when this one has seen none, and it is removed when this one's image is there and
		// its request is not.
		switch {
		case operation != "put":
		case !begun:
			begun = true
			var err error
			other, err = create()
			return err
		case other.ID != "" && strings.Contains(key, "/request") && engine.count() == 1:
			if err := removed(acts, removal(other)); err == nil || !strings.Contains(err.Error(), "another create") {
				t.Errorf("the removal during a create: %v, want a wait", err)
			}
		}
		return nil
	}
	made, err := create()
	if err != nil || made.ID != other.ID {
		t.Fatalf("got %s, %v, want %s", made.ID, err, other.ID)
	}
	if remove(other); len(archive.Keys()) != 0 {
		t.Fatalf("removed, with %v", archive.Keys())
	}
	if made, err = create(); err != nil {
		t.Fatal(err)
	}
	var in workflows.Input
	if err := json.Unmarshal(engine.input, &in); err != nil {
		t.Fatal(err)
	}
	var req providers.VideoRequest
	if err := archive.GetJSON(t.Context(), in.RequestObject, &req); err != nil || len(req.Inputs) != 1 {
		t.Fatalf("the task's request: %+v, %v", req.Inputs, err)
	}
	want := []string{req.Inputs[0].Object, in.RequestObject}
	if got := archive.Keys(); !slices.Equal(got, want) {
		t.Errorf("the archive has %v, want %v", got, want)
	}
	// A repeat leaves nothing of its own behind; nor does a create that comes too late, or one that Temporal refuses.
	archive.Fail = nil
	if again, err := create(); err != nil || again.ID != made.ID || !slices.Equal(archive.Keys(), want) {
		t.Errorf("repeated: %+v, %v, with %v", again, err, archive.Keys())
	}
	if remove(made); len(archive.Keys()) != 0 {
		t.Errorf("removed, with %v", archive.Keys())
	}
	begun, other = false, tasks.Task{}
	archive.Fail = func(operation, _ string) error {
		if operation != "put" || begun {
			return nil
		}
		begun = true
		var err error
		other, err = create()
		return err
	}
	if late, err := create(); err != nil || late.ID != other.ID || len(archive.Keys()) != 2 {
		t.Errorf("too late: %+v, %v, with %v", late, err, archive.Keys())
	}
	remove(other)
	archive.Fail = nil
	engine.startErr = serviceerror.NewResourceExhausted(0, "busy")
	if _, err := create(); kindOf(err) != providers.Overloaded || len(archive.Keys()) != 0 {
		t.Errorf("refused: %v, with %v", err, archive.Keys())
	}
}
