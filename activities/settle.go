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
	// Bill is the task's money; nil where an older worker ended it.
	Bill *Bill `json:"bill,omitempty"`
	// Created is when the task began, and Code why it failed; zero where an older worker ended it, or it did not fail.
	Created time.Time `json:"created,omitzero"`
	Code    string    `json:"code,omitempty"`
	// Entry is the task's on its token's list, which it restores where the list has lost it or never had it: no create waits
	// for a Redis that is away. The zero value restores nothing.
	Entry Entry `json:"entry,omitzero"`
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
	switch {
	case a.Index == nil:
	case in.Entry.Created.IsZero():
		errs = append(errs, a.Index.End(ctx, in.Token, in.TaskID))
	default:
		errs = append(errs, a.Index.Restore(ctx, in.Entry.Token, in.TaskID, in.Entry.Created, false))
	}
	if a.Money.Budgets != nil && in.Bill != nil {
		errs = append(errs, a.bill(ctx, in.Token, *in.Bill))
	}
	err := errors.Join(errs...)
	if err == nil && in.Bill != nil {
		a.Told.count(in.end())
	}
	return err
}

// end is the step of a task that is settled.
func (in SettleInput) end() Step {
	step := Step{Name: StepEnd, Channel: in.Bill.Channel, Model: in.Bill.Model, Outcome: OutcomeFailed, Code: in.Code}
	if in.Bill.Ending == EndedCompleted {
		step.Outcome = OutcomeCompleted
	}
	if !in.Created.IsZero() {
		step.Took = max(0, in.Bill.At.Sub(in.Created))
	}
	return step
}
