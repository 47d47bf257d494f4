package activities_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/sdk/temporal"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/providers/router"
)

// failed is an activity's failure as the server hands it to a workflow.
func failed(state enumspb.RetryState, cause *failurepb.Failure) error {
	return temporal.GetDefaultFailureConverter().FailureToError(&failurepb.Failure{
		Message: "activity error",
		FailureInfo: &failurepb.Failure_ActivityFailureInfo{ActivityFailureInfo: &failurepb.ActivityFailureInfo{
			ActivityId: "5", RetryState: state,
		}},
		Cause: cause,
	})
}

func timedOut(kind enumspb.TimeoutType, cause *failurepb.Failure) *failurepb.Failure {
	return &failurepb.Failure{
		Message:     "activity timeout",
		FailureInfo: &failurepb.Failure_TimeoutFailureInfo{TimeoutFailureInfo: &failurepb.TimeoutFailureInfo{TimeoutType: kind}},
		Cause:       cause,
	}
}

func applied(name string, details ...any) *failurepb.Failure {
	err := temporal.NewApplicationErrorWithOptions("in words", name, temporal.ApplicationErrorOptions{Details: details})
	return temporal.GetDefaultFailureConverter().ErrorToFailure(err)
}

func TestOutcome(t *testing.T) {
	t.Parallel()
	refused := activities.Record{
		Kind: providers.Invalid, Message: "No.", Param: "size", Code: "c", Status: 400,
		Accepted: providers.NotAccepted, RetryAfter: time.Second, Finished: true,
	}
	overdue := refused
	overdue.Deadline = true
	lost := activities.Record{Kind: providers.Timeout, Message: "The worker did not answer in time.", Retryable: true}
	late := lost
	late.Deadline = true
	const brokeDown = "The gateway failed to handle the task."
	unfinished := activities.Record{Kind: providers.Timeout, Message: "The upstream did not finish in time.", Deadline: true}
	for _, tc := range []struct {
		name string
		err  error
		want activities.Record
		none bool
	}{
		{name: "none", none: true},
		{name: "cancelled", err: temporal.NewCanceledError(), none: true},
		{name: "cancelled activity", err: failed(enumspb.RETRY_STATE_CANCEL_REQUESTED, &failurepb.Failure{
			FailureInfo: &failurepb.Failure_CanceledFailureInfo{CanceledFailureInfo: &failurepb.CanceledFailureInfo{}},
		}), none: true},
		{name: "fault", err: failed(enumspb.RETRY_STATE_NON_RETRYABLE_FAILURE, applied("Fault", refused)), want: refused},
		{
			name: "fault, wrapped", err: fmt.Errorf("poll: %w", failed(enumspb.RETRY_STATE_NON_RETRYABLE_FAILURE, applied("Fault", refused))),
			want: refused,
		},
		{
			name: "fault without details", err: failed(enumspb.RETRY_STATE_NON_RETRYABLE_FAILURE, applied("Fault")),
			want: activities.Record{Kind: providers.Internal, Message: brokeDown, Finished: true},
		},
		{
			name: "fault with other details", err: failed(enumspb.RETRY_STATE_NON_RETRYABLE_FAILURE, applied("Fault", "text")),
			want: activities.Record{Kind: providers.Internal, Message: brokeDown, Finished: true},
		},
		{name: "the last retry would be too late", err: failed(enumspb.RETRY_STATE_TIMEOUT, applied("Fault", refused)), want: overdue},
		{name: "the last wait would be too late", err: failed(enumspb.RETRY_STATE_TIMEOUT, applied("Pending")), want: unfinished},
		{
			name: "another error", err: failed(enumspb.RETRY_STATE_NON_RETRYABLE_FAILURE, applied("Odd")),
			want: activities.Record{Kind: providers.Internal, Message: brokeDown, Finished: true},
		},
		{
			name: "panic", err: failed(enumspb.RETRY_STATE_NON_RETRYABLE_FAILURE, applied("PanicError")),
			want: activities.Record{Kind: providers.Internal, Message: brokeDown},
		},
		{
			name: "lost worker", err: failed(enumspb.RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED, timedOut(enumspb.TIMEOUT_TYPE_HEARTBEAT, nil)),
			want: lost,
		},
		{
			name: "start to close", err: failed(enumspb.RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED, timedOut(enumspb.TIMEOUT_TYPE_START_TO_CLOSE, nil)),
			want: lost,
		},
		{
			name: "start to close in the last try", err: failed(enumspb.RETRY_STATE_TIMEOUT, timedOut(enumspb.TIMEOUT_TYPE_START_TO_CLOSE, nil)),
			want: late,
		},
		{name: "schedule to close", err: failed(enumspb.RETRY_STATE_TIMEOUT, timedOut(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE, nil)), want: late},
		{name: "schedule to close, state unset", err: failed(enumspb.RETRY_STATE_UNSPECIFIED,
			timedOut(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE, nil)), want: late},
		{name: "schedule to close after a fault", err: failed(enumspb.RETRY_STATE_TIMEOUT,
			timedOut(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE, applied("Fault", refused))), want: overdue},
		{name: "schedule to close while waiting", err: failed(enumspb.RETRY_STATE_TIMEOUT,
			timedOut(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE, applied("Pending"))), want: unfinished},
		{name: "not Temporal's", err: errors.New("odd"), want: activities.Record{Kind: providers.Internal, Message: brokeDown}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, ok := activities.Outcome(tc.err)
			if ok == tc.none || got != tc.want {
				t.Errorf("got %+v, %t, want %+v", got, ok, tc.want)
			}
		})
	}
}

// TestOutcomeAsTheSDKMakesIt: what an activity returned is what the workflow reads, through Temporal's own coding.
func TestOutcomeAsTheSDKMakesIt(t *testing.T) {
	t.Parallel()
	r := newTestEnv(t, fakeAdapter{})
	r.upstreams.Channels = fakeChannels{resolve: func(string, string, string) (providers.Target, error) {
		return providers.Target{}, router.ErrChannelGone
	}}
	_, err := do[activities.Job](t, r, r.acts.Submitter.Submit, submitInput())
	var app *temporal.ApplicationError
	if !errors.As(err, &app) {
		t.Fatalf("got %v", err)
	}
	failure := temporal.GetDefaultFailureConverter().ErrorToFailure(app)
	if info := failure.GetApplicationFailureInfo(); !info.GetNonRetryable() || info.GetType() != "Fault" {
		t.Errorf("got %v", info)
	}
	got, ok := activities.Outcome(failed(enumspb.RETRY_STATE_NON_RETRYABLE_FAILURE, failure))
	if !ok || !got.Gone || !got.Retryable || got.Accepted != providers.NotAccepted {
		t.Errorf("got %+v, %t", got, ok)
	}
}

// TestOutcomeOfAnOlderWorker: a worker that does not have the activity has surely done nothing. The SDK's worker gives
// its ActivityNotRegisteredError by that name.
func TestOutcomeOfAnOlderWorker(t *testing.T) {
	t.Parallel()
	r, ok := activities.Outcome(failed(enumspb.RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED, &failurepb.Failure{
		Message: "unable to find activityType=New",
		FailureInfo: &failurepb.Failure_ApplicationFailureInfo{ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{
			Type: "ActivityNotRegisteredError",
		}},
	}))
	if !ok || r.Accepted != providers.NotAccepted || !r.Retryable || !r.Finished {
		t.Errorf("got %+v, %t", r, ok)
	}
}
