package workflows_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/storage/storagetest"
	"modelrelay/workflows"
)

// TestOperatorEndsATask tells it first what its readers have seen, so that its progress does not fall.
func TestOperatorEndsATask(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(context.Context, *workflows.Operator, string) error{
		"fail":   func(ctx context.Context, o *workflows.Operator, id string) error { return o.Fail(ctx, id, "lost") },
		"cancel": func(ctx context.Context, o *workflows.Operator, id string) error { return o.Cancel(ctx, id) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &toldEngine{engine: &engine{}}
			tasks := workflows.NewClient(e, workflows.ClientOptions{TaskQueue: "video"})
			made, err := tasks.Create(t.Context(), create(providers.VideoRequest{Model: "m", Prompt: "p"}))
			if err != nil {
				t.Fatal(err)
			}
			e.progress(t, made.ID, 60)
			if err := do(t.Context(), workflows.NewOperator(e, "default"), made.ID); err != nil {
				t.Fatal(err)
			}
			if want := []any{workflows.SignalShown, 60, name}; !slices.Equal(e.told, want) {
				t.Errorf("told %v, want %v", e.told, want)
			}
		})
	}
}

// TestRetryArchiveOfADeletedTask is refused: the removal has seen the execution that failed, and would leave the new one.
func TestRetryArchiveOfADeletedTask(t *testing.T) {
	t.Parallel()
	tasks, engine, _ := newListing(storagetest.Redis(t))
	operator := workflows.NewOperator(engine, "default")
	task := mustCreate(t, tasks, keyed("a", 0))
	engine.endAs(t, task.ID, workflows.Result{State: workflows.Failed, Failure: &providers.VideoFailure{Code: workflows.CodeArchiveFailed}})
	if _, err := operator.RetryArchive(t.Context(), task.ID); kindOf(err) != providers.Conflict || !strings.Contains(err.Error(), "no archive step") {
		t.Errorf("before: %v, want that its history lacks the step", err)
	}
	if err := tasks.Delete(t.Context(), task.ID, "demo"); err != nil {
		t.Fatal(err)
	}
	if _, err := operator.RetryArchive(t.Context(), task.ID); kindOf(err) != providers.Conflict || !strings.Contains(err.Error(), "being deleted") {
		t.Errorf("during its removal: %v, want a conflict", err)
	}
}

// toldEngine notes what a task is told.
type toldEngine struct {
	*engine

	told []any
}

func (e *toldEngine) SignalWorkflow(_ context.Context, _, _, name string, arg any) error {
	e.told = append(e.told, name)
	if shown, ok := arg.(int); ok {
		e.told = append(e.told, shown)
	}
	return nil
}

func (e *toldEngine) CancelWorkflow(context.Context, string, string) error {
	e.told = append(e.told, "cancel")
	return nil
}
