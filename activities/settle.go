package activities

import "context"

// SettleInput is a task that has ended.
type SettleInput struct {
	TaskID string `json:"task_id"`
	Token  string `json:"token"`
}

// Settle gives back what a task held. It may run any number of times.
func (a *Activities) Settle(ctx context.Context, in SettleInput) error {
	a.changed(ctx, in.TaskID)
	if a.Index == nil {
		return nil
	}
	return a.Index.End(ctx, in.Token, in.TaskID)
}
