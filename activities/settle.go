package activities

import (
	"context"
	"errors"

	"modelrelay/storage"
)

// SettleInput is a task that has ended.
type SettleInput struct {
	TaskID string `json:"task_id"`
	Token  string `json:"token"`
	// Waiter is the task as it waited, and Channels are where it may have a slot or a place in line.
	Waiter   Waiter   `json:"waiter,omitzero"`
	Channels []string `json:"channels,omitempty"`
}

// Settle gives back what a task held. It may run any number of times.
func (a *Activities) Settle(ctx context.Context, in SettleInput) error {
	a.changed(ctx, in.TaskID)
	var errs []error
	if a.Slots != nil && len(in.Channels) > 0 {
		errs = append(errs, a.Slots.Free(ctx, storage.Waiter(in.Waiter), in.Channels...))
	}
	if a.Index != nil {
		errs = append(errs, a.Index.End(ctx, in.Token, in.TaskID))
	}
	return errors.Join(errs...)
}
