package activities

import (
	"context"
	"errors"
	"time"

	"modelrelay/providers/pricing"
)

// Settler releases the slots of ended tasks, settles their money and corrects their list entries.
type Settler struct {
	*SlotKeeper
	*Listing

	// Budgets holds the money of tokens; nil: nothing is settled.
	Budgets Budgets
	Prices  *pricing.List
	Record  Recorder
}

// SettleInput is a task that has ended.
type SettleInput struct {
	TaskID string `json:"task_id"`
	Token  string `json:"token"`
	// Waiter is the task as a waiter for slots. Channels lists where it may have a slot or wait for one.
	Waiter   Waiter   `json:"waiter,omitzero"`
	Channels []string `json:"channels,omitempty"`
	Bill     Bill     `json:"bill"`
	// Created is the begin of the task. Code is the failure code, "" if it did not fail.
	Created time.Time `json:"created"`
	Code    string    `json:"code,omitempty"`
	// Accepted is the time at which an upstream accepted a video; zero for none, and for a call.
	Accepted time.Time `json:"accepted,omitzero"`
	// Entry is the task's entry on its token's list. Settle restores a missing one: a create does not wait for an unavailable Redis.
	Entry Entry `json:"entry"`
}

// Entry identifies a task's entry on its token's list.
type Entry struct {
	Token string `json:"token"`
	// Created is the time of the create. It distinguishes tasks with the same id.
	Created time.Time `json:"created"`
}

// Settle settles an ended task. It is idempotent: each part happens once.
func (a *Settler) Settle(ctx context.Context, in SettleInput) error {
	a.changed(ctx, in.TaskID)
	var errs []error
	if len(in.Channels) > 0 {
		errs = append(errs, a.Slots.Free(ctx, in.Waiter, in.Channels...))
	}
	if a.Index != nil {
		errs = append(errs, a.Index.Restore(ctx, in.Entry.Token, in.TaskID, in.Entry.Created, false))
	}
	if a.Budgets != nil {
		errs = append(errs, a.bill(ctx, in.Token, in.Bill))
	}
	err := errors.Join(errs...)
	if err == nil {
		a.Record.record(in.end())
	}
	return err
}

const cancelledCode = "cancelled"

func (in SettleInput) end() Step {
	step := Step{
		Name: StepEnd, TaskID: in.TaskID, Channel: in.Bill.Channel, Model: in.Bill.Model, Outcome: OutcomeFailed, Code: in.Code,
		Took: max(0, in.Bill.At.Sub(in.Created)),
	}
	if in.Bill.Ending == EndedCompleted {
		step.Outcome = OutcomeCompleted
	}
	began := in.Accepted
	if call := in.Bill.Call; call != nil {
		began = call.StartedAt
	}
	if !began.IsZero() {
		step.Ran = max(0, in.Bill.At.Sub(began))
	}
	if KindOf(in.TaskID) == KindCall && in.Code == cancelledCode {
		step.Outcome, step.Code = OutcomeCancelled, ""
	}
	return step
}
