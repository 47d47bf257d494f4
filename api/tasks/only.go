package tasks

import (
	"context"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/workflows/tasks"
)

// Only returns the tasks of one kind: any other task is NotFound.
func Only(all Tasks, kind activities.Kind) Tasks { return only{all, kind} }

type only struct {
	Tasks

	kind activities.Kind
}

func (o only) check(id string) error {
	if tasks.IsTaskID(id) && activities.KindOf(id) != o.kind {
		return providers.Faultf(providers.NotFound, "No task %q.", id)
	}
	return nil
}

// Find implements Tasks.
func (o only) Find(ctx context.Context, id, tokenID string) (tasks.Task, error) {
	if err := o.check(id); err != nil {
		return tasks.Task{}, err
	}
	return o.Tasks.Find(ctx, id, tokenID)
}

// Cancel implements Tasks.
func (o only) Cancel(ctx context.Context, id, tokenID string) (tasks.Task, error) {
	if err := o.check(id); err != nil {
		return tasks.Task{}, err
	}
	return o.Tasks.Cancel(ctx, id, tokenID)
}

// Delete implements Tasks.
func (o only) Delete(ctx context.Context, id, tokenID string) error {
	if err := o.check(id); err != nil {
		return err
	}
	return o.Tasks.Delete(ctx, id, tokenID)
}

// List implements Tasks.
func (o only) List(ctx context.Context, query tasks.ListQuery) (tasks.Page, error) {
	query.Kind = o.kind
	return o.Tasks.List(ctx, query)
}
