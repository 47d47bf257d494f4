package workflows_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/storage/storagetest"
	"modelrelay/workflows"
)

// TestRepeated finds the task of a repeat and makes none.
func TestRepeated(t *testing.T) {
	t.Parallel()
	tasks, engine, _ := newListing(storagetest.Redis(t))
	made := mustCreate(t, tasks, keyed("a", 0))
	if got, err := tasks.Repeated(t.Context(), keyed("a", 0)); err != nil || got.ID != made.ID || got.Request.Prompt != "a" {
		t.Errorf("the repeat: got %+v, %v", got, err)
	}
	another, unknown, unkeyed := keyed("a", 0), keyed("b", 0), keyed("a", 0)
	another.Request.Prompt, unkeyed.IdempotencyKey = "another", ""
	for name, tc := range map[string]struct {
		in   workflows.Create
		want providers.Kind
	}{
		"another request": {another, providers.Mismatch}, "another key": {unknown, providers.NotFound}, "no key": {unkeyed, providers.NotFound},
	} {
		if got, err := tasks.Repeated(t.Context(), tc.in); kindOf(err) != tc.want {
			t.Errorf("%s: got %+v, %v, want %s", name, got, err, tc.want)
		}
	}
	if err := tasks.Delete(t.Context(), made.ID, "demo"); err != nil {
		t.Fatal(err)
	}
	if got, err := tasks.Repeated(t.Context(), keyed("a", 0)); kindOf(err) != providers.Conflict {
		t.Errorf("during its removal: got %+v, %v, want conflict", got, err)
	}
	if engine.count() != 2 { // the task and its removal
		t.Errorf("%d executions", engine.count())
	}
}

// TestRepeatWhileRemoved: a task that is deleted while its create is repeated takes nothing with it that the repeat put
// into the archive: a task that starts has its inputs.
func TestRepeatWhileRemoved(t *testing.T) {
	t.Parallel()
	archive := storagetest.NewMemoryArchive()
	engine := &engine{}
	tasks := workflows.NewClient(engine, workflows.ClientOptions{TaskQueue: "video", Intake: activities.Intake{Objects: archive}})
	create := func() (workflows.Task, error) {
		return tasks.Create(t.Context(), create(providers.VideoRequest{
			Model: "m", Prompt: strings.Repeat("long ", 20_000), Images: []providers.Media{{Data: []byte("pixels"), ContentType: "image/png"}},
		}))
	}
	made, err := create()
	if err != nil {
		t.Fatal(err)
	}
	inputs := archive.Keys()
	if len(inputs) != 2 {
		t.Fatalf("staged %v, want the image and the request", inputs)
	}
	removed := false
	archive.Fail = func(operation, key string) error {
		// The removal comes when the repeat's image is there and its request is not.
		if operation != "put" || !strings.Contains(key, "/request") || removed {
			return nil
		}
		removed = true
		if err := archive.DeletePrefix(t.Context(), activities.TaskPrefix(made.ID)); err != nil {
			return fmt.Errorf("remove: %w", err)
		}
		engine.forget(made.ID)
		return nil
	}
	again, err := create()
	if err != nil || again.ID != made.ID {
		t.Fatalf("got %+v, %v", again, err)
	}
	if engine.count() == 1 && !slices.Equal(archive.Keys(), inputs) {
		t.Errorf("the task has %v of its inputs, want %v", archive.Keys(), inputs)
	}
	// Deleted before the repeat, it is made anew.
	archive.Fail = nil
	if err := archive.DeletePrefix(t.Context(), activities.TaskPrefix(made.ID)); err != nil {
		t.Fatal(err)
	}
	engine.forget(made.ID)
	if again, err = create(); err != nil || again.ID != made.ID || !slices.Equal(archive.Keys(), inputs) {
		t.Errorf("made anew: %+v, %v, with %v", again, err, archive.Keys())
	}
}
