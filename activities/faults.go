package activities

import (
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"modelrelay/providers"
	"modelrelay/providers/router"
)

// Types of the errors that cross the line between activity and workflow. They stand in histories.
const (
	// typeFault carries a Record.
	typeFault = "Fault"
	// typeUnknownActivity is the SDK's word for an activity that the worker does not have.
	typeUnknownActivity = "ActivityNotRegisteredError"
	// typePending is a benign "ask again later".
	typePending = "Pending"
)

// brokeDown is what a client may read of an error that is no fault. The history has its own words.
const brokeDown = "The gateway failed to handle the task."

// Record is a *providers.Fault as it stands in a history: no key, no upstream body beyond a short message.
type Record struct {
	Kind       providers.Kind     `json:"kind"`
	Message    string             `json:"message"`
	Param      string             `json:"param,omitempty"`
	Code       string             `json:"code,omitempty"`
	Status     int                `json:"status,omitempty"`
	Accepted   providers.Accepted `json:"accepted"`
	RetryAfter time.Duration      `json:"retry_after,omitempty"`
	// Retryable: another channel may succeed, or another key of this one where KeyOnly says so.
	Retryable bool `json:"retryable,omitempty"`
	KeyOnly   bool `json:"key_only,omitempty"`
	Refusal
	// Gone: the configuration no longer has the channel or key.
	Gone bool `json:"gone,omitempty"`
	// Deadline: the task's own time ran out.
	Deadline bool `json:"deadline,omitempty"`
	// Progress is where the job stood, in percent.
	Progress int `json:"progress,omitempty"`
	// Archive: it is not the upstream, the gateway's own archive is away.
	Archive bool `json:"archive,omitempty"`
	// Finished: the process that made the request lived to see its outcome, so nothing of it is still under way.
	Finished bool `json:"finished,omitempty"`
}

// Refusal is what more is known of a submit that was not taken.
type Refusal struct {
	// NoModel: the channel does not have the model, so that only another can make the video.
	NoModel bool `json:"no_model,omitempty"`
	// Failed is what the vendor's own code means, one of the Failed words of package providers; "" where that is not known.
	Failed string `json:"failed,omitempty"`
}

// record makes the Record of any error.
func record(err error) Record {
	fault := providers.AsFault(err)
	r := Record{
		Kind: fault.Kind, Message: providers.Words(fault.Message), Param: fault.Param, Code: fault.Code, Accepted: fault.Accepted,
		RetryAfter: fault.RetryAfter, Retryable: fault.Retryable(), KeyOnly: fault.Blame == providers.BlameKey, Gone: errors.Is(err, router.ErrChannelGone), Finished: true,
		Refusal: Refusal{Failed: fault.Failed},
	}
	if fault.Upstream != nil {
		r.Status = fault.Upstream.Status
	}
	if r.Gone {
		r.Message = err.Error() // our own words: they name the channel
	}
	return r
}

// fail ends an activity for good with the record. That a client asked for what the upstream does not take is benign: the
// SDK would log it as an error and count it, and wake an operator who can do nothing about it.
func fail(r Record) error {
	options := temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{r}}
	if r.Kind == providers.Invalid {
		options.Category = temporal.ApplicationErrorCategoryBenign
	}
	return temporal.NewApplicationErrorWithOptions(r.Message, typeFault, options)
}

// again asks for another try of the activity after the delay because of a fault.
func again(r Record, delay time.Duration) error {
	return temporal.NewApplicationErrorWithOptions(r.Message, typeFault, temporal.ApplicationErrorOptions{NextRetryDelay: delay, Details: []any{r}})
}

// againUnnoticed is again where no operator can help: a client's own part failed, or it is not its turn yet. It is benign, as
// in fail.
func againUnnoticed(r Record, delay time.Duration) error {
	return temporal.NewApplicationErrorWithOptions(r.Message, typeFault, temporal.ApplicationErrorOptions{
		NextRetryDelay: delay, Details: []any{r}, Category: temporal.ApplicationErrorCategoryBenign,
	})
}

// pending asks for another try after the delay because there is nothing to report yet. It is no failure.
func pending(word string, delay time.Duration) error {
	return temporal.NewApplicationErrorWithOptions(word, typePending, temporal.ApplicationErrorOptions{
		NextRetryDelay: delay, Category: temporal.ApplicationErrorCategoryBenign,
	})
}

// Outcome reads what an activity's error means. A cancelled activity and a nil error have none: ok is false.
//
// A timeout of a single try, a lost worker included, is AcceptedUnknown and not Finished. One of the whole activity
// (ScheduleToClose, or a retry that would pass it) is a Deadline and keeps the last fault's words.
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
		r = Record{} // the last fault says more than the timeout around it
		switch {
		case app.Type() == typeUnknownActivity: // an older worker during an upgrade: it did nothing at all
			r = Record{Kind: providers.Internal, Message: brokeDown, Finished: true, Accepted: providers.NotAccepted, Retryable: true}
		case app.Type() != typeFault || app.Details(&r) != nil:
			r = Record{Kind: providers.Internal, Message: brokeDown, Finished: true}
		}
		if app.Type() == typePending {
			r = Record{Kind: providers.Timeout, Message: "The upstream did not finish in time."}
		}
	} else if timeout == nil {
		r = Record{Kind: providers.Internal, Message: brokeDown}
	}
	r.Deadline = r.Deadline || overdue
	return r, true
}
