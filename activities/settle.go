package activities

import "context"

// Unfinished knows the tasks of a token that have not ended. *storage.TaskIndex implements it.
type Unfinished interface {
	// End takes a task out; one that is out already is no error.
	End(ctx context.Context, tokenID, taskID string) error
}

// SettleInput is a task that has ended.
type SettleInput struct {
	TaskID string `json:"task_id"`
	Token  string `json:"token"`
}

// Settle gives back what a task held. It may run any number of times.
func (a *Activities) Settle(ctx context.Context, in SettleInput) error {
	if a.Unfinished == nil {
		return nil
	}
	return a.Unfinished.End(ctx, in.Token, in.TaskID)
}
