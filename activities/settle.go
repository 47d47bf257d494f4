package activities

import (
	"context"
	"errors"
	"time"

	"modelrelay/storage/slots"
)

// Settler gives back what a task held once it has ended, and has its money counted.
type Settler struct {
	*SlotKeeper
	*Listing

	Money Money
	Told  Told
}

// SettleInput is a task that has ended.
type SettleInput struct {
	TaskID string `json:"task_id"`
	Token  string `json:"token"`
	// Waiter is the task as it waited, and Channels are where it may have a slot or a place in line.
	Waiter   Waiter   `json:"waiter,omitzero"`
	Channels []string `json:"channels,omitempty"`
	// Bill is the task's money.
	Bill Bill `json:"bill"`
	// Created is when the task began. Code is why it failed, "" where it did not.
	Created time.Time `json:"created"`
	Code    string    `json:"code,omitempty"`
	// Entry is the task's on its token's list. Settle restores it where the list has lost it or never had it: a create does not
	// wait for a Redis that is away.
	Entry Entry `json:"entry"`
}

// Entry is what puts a task on its token's list.
type Entry struct {
	Token string `json:"token"`
	// Created is the task's own word, by which its entry and its removal are told from those of another with its id.
	Created time.Time `json:"created"`
}

// Settle gives back what a task held, and has its money counted. It may run any number of times: each part of it happens
// once.
func (a *Settler) Settle(ctx context.Context, in SettleInput) error {
	a.changed(ctx, in.TaskID)
	var errs []error
	if a.Slots != nil && len(in.Channels) > 0 {
		errs = append(errs, a.Slots.Free(ctx, slots.Waiter(in.Waiter), in.Channels...))
	}
	if a.Index != nil {
		errs = append(errs, a.Index.Restore(ctx, in.Entry.Token, in.TaskID, in.Entry.Created, false))
	}
	if a.Money.Budgets != nil {
		errs = append(errs, a.bill(ctx, in.Token, in.Bill))
	}
	err := errors.Join(errs...)
	if err == nil {
		a.Told.count(in.end())
	}
	return err
}

// end is the step of a task that is settled.
func (in SettleInput) end() Step {
	step := Step{
		Name: StepEnd, Channel: in.Bill.Channel, Model: in.Bill.Model, Outcome: OutcomeFailed, Code: in.Code, Took: max(0, in.Bill.At.Sub(in.Created)),
	}
	if in.Bill.Ending == EndedCompleted {
		step.Outcome = OutcomeCompleted
	}
	return step
}
