package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"modelrelay/activities"
	"modelrelay/providers"
)

// Call is the workflow of one background call: relay, finish. It returns an error only for a bug.
func Call(ctx workflow.Context, in Input) (Result, error) {
	refuseNewer(in.Revision)
	v, ctx := begin(ctx, in)
	return v.finish(ctx, v.relay(ctx))
}

func (v *task) relay(ctx workflow.Context) Result {
	deadline := v.Began.Add(time.Duration(v.in.Limits.Deadline))
	var answer activities.Answered
	in := activities.RelayInput{
		TaskID: v.in.TaskID, Incarnation: v.in.Incarnation, Token: v.in.Token, Weight: v.in.Weight, Lane: v.in.Lane, Model: v.in.Model,
		Call: *v.in.Call, Deadline: deadline,
		Reservation: v.in.Reservation, Entry: v.entry(), Expires: deadline.Add(relayMargin + time.Duration(v.in.Limits.Retention)),
	}
	err := workflow.ExecuteActivity(withRelay(ctx, deadline.Sub(workflow.Now(ctx)), v.in.Lane, v.in.Call.Operation()), v.acts.Relayer.Relay,
		in).Get(ctx, &answer)
	if err != nil {
		answer = v.conclude(ctx, in)
	}
	result := Result{State: Completed, Progress: ProgressCompleted, Ending: Ending{Call: &answer}}
	if answer.Output != nil {
		result.Outputs = []activities.Output{*answer.Output}
	}
	fault, bad := activities.Outcome(err)
	switch {
	case answer.Cancelled, answer.Status == 0 && err != nil && (isCancelled(ctx) || temporal.IsCanceledError(err)):
		result.State, result.Failure = Cancelled, v.cancelFailure(ctx)
		if result.Failure.Code == CodeFailedByOperator {
			result.State = Failed
		}
	case answer.Failure != nil:
		result.State, result.Failure = Failed, answer.Failure
	case answer.Status != 0:
	case bad && fault.Deadline:
		result.State, result.Failure = Failed, &providers.VideoFailure{Code: CodeQueueTimeout, Message: "No upstream took the call in time."}
	case bad:
		result.State, result.Failure = Failed, &providers.VideoFailure{Code: CodeInternal, Message: clientMessage(fault)}
	}
	if result.State != Completed {
		result.Progress = 0
	}
	return result
}

// conclude returns the end of a call whose activity returned no result: first by a local activity, and if that fails by an activity with
// retries. If the archive has no record of a call, the call may have been sent.
func (v *task) conclude(ctx workflow.Context, in activities.RelayInput) (answer activities.Answered) {
	free, _ := workflow.NewDisconnectedContext(ctx)
	if workflow.ExecuteLocalActivity(localOnce(free, concludeNow, "conclude"), v.acts.Relayer.Conclude, in).Get(free, &answer) == nil {
		return answer
	}
	err := workflow.ExecuteActivity(retried(free, concludeLimit, concludeTry, "conclude"), v.acts.Relayer.Conclude, in).Get(free, &answer)
	if err == nil {
		return answer
	}
	workflow.GetLogger(free).Error("call not concluded", "error", err)
	return activities.Answered{
		Unknown: true, Cost: v.in.Call.Amount, Failure: &providers.VideoFailure{
			Code:    CodeDeadlineExceeded,
			Message: "The call did not end in time.",
		},
	}
}

// callBill completes the bill of a call with its activity's result.
func callBill(b activities.Bill, result Result) activities.Bill {
	b.Call = result.Call
	if result.Call == nil { // terminated in Temporal's own tools
		return b
	}
	b.Channel = result.Call.Channel
	switch {
	case result.State == Completed:
		b.Ending = activities.EndedCompleted
	case result.Call.Unknown:
		b.Ending = activities.EndedUnknown
	}
	return b
}
