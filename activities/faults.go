package activities

import (
	"context"
	"errors"
	"log/slog"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"modelrelay/providers"
	"modelrelay/providers/router"
)

// The types of errors between activities and workflows. Histories contain them.
const (
	// typeFault carries a Record.
	typeFault = "Fault"
	// typeUnknownActivity is the SDK's type for an activity that the worker does not have.
	typeUnknownActivity = "ActivityNotRegisteredError"
	// typePending is a benign request for a retry.
	typePending = "Pending"
)

// internalMessage is the message to the client for an error that is not a fault. The history contains the error itself.
const internalMessage = "The gateway failed to handle the task."

// Record is a *providers.Fault for histories: without keys, and without an upstream body beyond a short message.
type Record struct {
	Kind       providers.Kind     `json:"kind"`
	Message    string             `json:"message"`
	Param      string             `json:"param,omitempty"`
	Code       string             `json:"code,omitempty"`
	Status     int                `json:"status,omitempty"`
	Accepted   providers.Accepted `json:"accepted"`
	RetryAfter time.Duration      `json:"retry_after,omitempty"`
	// Retryable: another channel may succeed, or with KeyOnly another key of this one.
	Retryable bool `json:"retryable,omitempty"`
	KeyOnly   bool `json:"key_only,omitempty"`
	// NoModel: the channel does not have the model, so only another channel can accept the task.
	NoModel bool `json:"no_model,omitempty"`
	// Failed is the meaning of the vendor's code, one of the Failed codes of package providers; "" if unknown.
	Failed string `json:"failed,omitempty"`
	// Gone: the channel or key is no longer configured.
	Gone bool `json:"gone,omitempty"`
	// Deadline: the task's deadline has passed.
	Deadline bool `json:"deadline,omitempty"`
	Progress int  `json:"progress,omitempty"`
	// Archive: the gateway's archive is unavailable, not the upstream.
	Archive bool `json:"archive,omitempty"`
	// Finished: the process that sent the request has its outcome, so the request is no longer in progress.
	Finished bool `json:"finished,omitempty"`
}

func unsent(kind providers.Kind, message string, cause error) *providers.Fault {
	return &providers.Fault{Kind: kind, Message: message, Accepted: providers.NotAccepted, Err: cause}
}

func record(err error) Record {
	fault := providers.AsFault(err)
	r := Record{
		Kind: fault.Kind, Message: providers.WithoutQueries(fault.Message), Param: fault.Param, Code: fault.Code, Accepted: fault.Accepted,
		RetryAfter: fault.RetryAfter, Retryable: fault.Retryable(), KeyOnly: fault.Blame == providers.BlameKey,
		Gone: errors.Is(err, router.ErrChannelGone), Finished: true,
		Failed: fault.Failed,
	}
	if fault.Upstream != nil {
		r.Status = fault.Upstream.Status
	}
	if r.Gone {
		r.Message = err.Error() // a message of the gateway, with the name of the channel
	}
	return r
}

// fail ends an activity without retries. An invalid request is benign: otherwise the SDK logs an error that no operator can fix.
func fail(r Record) error {
	options := temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{r}}
	if r.Kind == providers.Invalid {
		options.Category = temporal.ApplicationErrorCategoryBenign
	}
	return temporal.NewApplicationErrorWithOptions(r.Message, typeFault, options)
}

// again requests a retry of the activity after the delay, because of a fault.
func again(r Record, delay time.Duration) error {
	return temporal.NewApplicationErrorWithOptions(r.Message, typeFault,
		temporal.ApplicationErrorOptions{NextRetryDelay: delay, Details: []any{r}})
}

// againBenign is again for a fault that no operator can fix, or for a wait that is not a fault.
func againBenign(r Record, delay time.Duration) error {
	return temporal.NewApplicationErrorWithOptions(r.Message, typeFault, temporal.ApplicationErrorOptions{
		NextRetryDelay: delay, Details: []any{r}, Category: temporal.ApplicationErrorCategoryBenign,
	})
}

// pending requests a retry after the delay, because there is nothing to report yet. It is not a failure.
func pending(reason string, delay time.Duration) error {
	return temporal.NewApplicationErrorWithOptions(reason, typePending, temporal.ApplicationErrorOptions{
		NextRetryDelay: delay, Category: temporal.ApplicationErrorCategoryBenign,
	})
}

// lastHeartbeat returns the last heartbeat of earlier tries of an activity, the zero value for none. An unreadable one counts as none.
func lastHeartbeat[Progress any](ctx context.Context, log *slog.Logger) (last Progress) {
	if !activity.HasHeartbeatDetails(ctx) {
		return last
	}
	if err := activity.GetHeartbeatDetails(ctx, &last); err != nil {
		log.WarnContext(ctx, "heartbeat unreadable, the copy starts again", "error", err)
		return *new(Progress)
	}
	return last
}

// Outcome converts an activity's error to a Record. ok is false for nil and for a cancelled activity.
//
// A timeout of a single try, also because of a lost worker, is AcceptedUnknown and not Finished. A timeout of the whole activity
// (ScheduleToClose, or a retry that would exceed it) is a Deadline with the last fault's message.
func Outcome(err error) (r Record, ok bool) {
	if err == nil || temporal.IsCanceledError(err) {
		return Record{}, false
	}
	var (
		act     *temporal.ActivityError
		app     *temporal.ApplicationError
		timeout *temporal.TimeoutError
	)
	overdue := errors.As(err, &act) && act.RetryState() == enumspb.RETRY_STATE_TIMEOUT
	if errors.As(err, &timeout) {
		overdue = overdue || timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE
		r = Record{Kind: providers.Timeout, Message: "The worker did not answer in time.", Retryable: true}
	}
	if errors.As(err, &app) {
		r = Record{} // the last fault has more information than the timeout around it
		switch {
		case app.Type() == typeUnknownActivity: // an older worker during an upgrade; it did nothing
			r = Record{Kind: providers.Internal, Message: internalMessage, Finished: true, Accepted: providers.NotAccepted, Retryable: true}
		case app.Type() != typeFault || app.Details(&r) != nil:
			r = Record{Kind: providers.Internal, Message: internalMessage, Finished: true}
		}
		if app.Type() == typePending {
			r = Record{Kind: providers.Timeout, Message: "The upstream did not finish in time."}
		}
	} else if timeout == nil {
		r = Record{Kind: providers.Internal, Message: internalMessage}
	}
	r.Deadline = r.Deadline || overdue
	return r, true
}
