package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/providers/pricing"
	"modelrelay/workflows"
)

// Details is the operator's view of a task.
type Details struct {
	Listed

	// Path is its path in the Temporal UI.
	Path     string          `json:"path"`
	State    workflows.State `json:"state"`
	Progress int             `json:"progress"`
	// Position is the task's place in the queue of a full channel, 1 for the next; 0: it is in none.
	Position int       `json:"queue_position,omitempty"`
	Failure  string    `json:"failure,omitempty"`
	Expires  time.Time `json:"expires,omitzero"`
	// Sent is the footage that the upstream was asked to make; the task is charged for it if the vendor measures nothing. VendorPrice is
	// the vendor's charge, in its own unit; "" if it reports none.
	Sent        providers.Footage `json:"sent,omitzero"`
	VendorPrice string            `json:"vendor_price,omitempty"`
	// Charge is the token's charge, in the currency of the prices; nil until the task is settled, and while Redis is unavailable.
	Charge *pricing.Money `json:"charge,omitempty"`
	// Request is the part of the request that the memo holds.
	Request any `json:"request,omitempty"`
	// Call is the progress or the end of a call; nil for a video.
	Call     *CallDetails        `json:"call,omitempty"`
	Attempts []AttemptDetails    `json:"attempts,omitempty"`
	Steps    []Step              `json:"steps,omitempty"`
	Waiting  []Waiting           `json:"waiting,omitempty"`
	Outputs  []activities.Output `json:"outputs,omitempty"`
	Webhooks []Delivery          `json:"webhooks,omitempty"`
}

// CallDetails is the progress of a call, or its end.
type CallDetails struct {
	activities.CallProgress

	Stream bool `json:"stream,omitempty"`
	// StatusCode is that of the answer, Events the number of events of a stream.
	StatusCode int       `json:"status_code,omitempty"`
	Events     int64     `json:"events,omitempty"`
	Usage      CallUsage `json:"usage,omitzero"`
	// Cost is nil before the end, and of a model without a price.
	Cost *pricing.Money `json:"cost,omitempty"`
}

// CallUsage is the usage of an ended call.
type CallUsage struct {
	// InputTokens includes CachedTokens, which the vendor read from its cache.
	InputTokens  int64   `json:"input_tokens"`
	CachedTokens int64   `json:"cached_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	Images       int64   `json:"images"`
	AudioSeconds float64 `json:"audio_seconds"`
}

// Tokens returns the number of input and output tokens.
func (u CallUsage) Tokens() int64 { return u.InputTokens + u.OutputTokens }

// CallDetails returns the progress or the end of a call; nil for a video.
func (t Task) CallDetails() *CallDetails {
	if t.Kind() != activities.KindCall {
		return nil
	}
	details := &CallDetails{CallProgress: t.Progressed, Stream: t.Stream}
	if end := t.Call; end != nil {
		details.CallProgress, details.StatusCode, details.Events = end.CallProgress, end.Status, end.Events
		details.Usage = CallUsage{
			end.Usage.Input, end.Usage.Cached, end.Usage.Output, end.Usage.Images, end.Usage.Audio.Seconds(),
		}
		if end.Priced {
			details.Cost = new(pricing.Money(end.Cost))
		}
	}
	return details
}

// AttemptDetails is one submit to one channel.
type AttemptDetails struct {
	workflows.Attempt

	At time.Time `json:"at"`
	// Ticket is the vendor's handle of the job, with the adapter's own data.
	Ticket json.RawMessage `json:"ticket,omitempty"`
}

// Step is one activity of a task that has ended.
type Step struct {
	Name    string    `json:"name"`
	Summary string    `json:"summary,omitempty"`
	At      time.Time `json:"at"`
	Ended   time.Time `json:"ended,omitzero"`
	// Tries is the number of tries.
	Tries int32 `json:"tries,omitempty"`
	// Fault is the reason for its failure, "" if it succeeded.
	Fault string `json:"fault,omitempty"`
}

// Waiting is a pending activity.
type Waiting struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Tries int32  `json:"tries"`
	// Next is the time of the next try; zero during a try.
	Next time.Time `json:"next,omitzero"`
	// Heartbeat is the payload of its last heartbeat.
	Heartbeat json.RawMessage `json:"heartbeat,omitempty"`
	// Fault is the fault of the last try.
	Fault  string `json:"fault,omitempty"`
	Worker string `json:"worker,omitempty"`
}

// Delivery is the delivery of the task's end to a webhook.
type Delivery struct {
	ID     string `json:"id"`
	State  string `json:"state"`
	Status string `json:"status"`
	Path   string `json:"path"`
	// Result is its result, or its last heartbeat while it runs.
	Result json.RawMessage `json:"result,omitempty"`
}

// Show returns the details of a task from its history. No worker is needed.
func (o *Operator) Show(ctx context.Context, id string) (Details, error) {
	task, answer, err := o.find(ctx, id)
	if err != nil {
		return Details{}, err
	}
	info := answer.GetWorkflowExecutionInfo()
	details := Details{
		Listed: listed(info), State: task.State, Progress: task.Progress, Position: task.QueuePosition, Outputs: task.Outputs,
		Expires: task.ExpiresAt,
		Path:    o.path(info.GetExecution()), Request: task.Request, VendorPrice: task.Price,
		Call: task.CallDetails(),
	}
	if details.Call != nil {
		details.Channel = cmp.Or(details.Channel, details.Call.Channel)
	}
	if task.Job != nil {
		details.Sent = task.Job.Sent
	}
	if task.Failure != nil {
		details.Code, details.Failure = task.Failure.Code, task.Failure.Message
	}
	for _, pending := range answer.GetPendingActivities() {
		wait := Waiting{
			Name: pending.GetActivityType().GetName(), State: strings.ToLower(pending.GetState().String()), Tries: pending.GetAttempt(),
			Heartbeat: document(pending.GetHeartbeatDetails()), Fault: failureText(pending.GetLastFailure().GetMessage()),
			Worker: pending.GetLastWorkerIdentity(),
		}
		if pending.GetNextAttemptScheduleTime() != nil {
			wait.Next = pending.GetNextAttemptScheduleTime().AsTime()
		}
		details.Waiting = append(details.Waiting, wait)
	}
	in, err := o.addHistory(ctx, info.GetExecution(), &details)
	if err != nil {
		return Details{}, err
	}
	if o.Charges != nil { // the other details do not depend on Redis
		if amount, settled, err := o.Charges.Charge(ctx, in.Reservation); err == nil && settled {
			details.Charge = new(pricing.Money(amount))
		}
	}
	for _, state := range []workflows.State{workflows.Completed, workflows.Failed, workflows.Cancelled} {
		delivery, err := o.delivery(ctx, in.NotifyID(state))
		if err != nil {
			return Details{}, err
		}
		if delivery != nil {
			details.Webhooks = append(details.Webhooks, *delivery)
		}
	}
	return details, nil
}

func (o *Operator) addHistory(
	ctx context.Context, execution *commonpb.WorkflowExecution, details *Details,
) (in workflows.Input, err error) {
	steps := make(map[int64]*activityEvents) // by the event that scheduled them
	var order []*activityEvents
	history := o.temporal.GetWorkflowHistory(ctx, execution.GetWorkflowId(), execution.GetRunId(), false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		event, err := history.Next()
		if err != nil {
			return in, o.explain(execution.GetWorkflowId(), err)
		}
		if event.GetWorkflowExecutionStartedEventAttributes() != nil {
			if in, err = inputOf(execution.GetWorkflowId(), event); err != nil {
				return in, err
			}
		}
		if scheduled := event.GetActivityTaskScheduledEventAttributes(); scheduled != nil {
			t := &activityEvents{step: Step{
				Name: scheduled.GetActivityType().GetName(), At: event.GetEventTime().AsTime(), Summary: summary(event),
			}, input: scheduled.GetInput()}
			steps[event.GetEventId()] = t
			order = append(order, t)
			continue
		}
		id, result, err := outcome(event)
		if t, ok := steps[id]; ok {
			t.end(event, result, err)
		}
	}
	for _, t := range order {
		t.add(details)
	}
	return in, nil
}

// inputOf decodes the input of the task with the id from the first event of its history.
func inputOf(id string, first *historypb.HistoryEvent) (in workflows.Input, err error) {
	payloads := first.GetWorkflowExecutionStartedEventAttributes().GetInput()
	if err = converter.GetDefaultDataConverter().FromPayloads(payloads, &in); err != nil {
		err = fmt.Errorf("read the input of %s: %w", id, err)
	}
	return in, err
}

type activityEvents struct {
	step   Step
	input  *commonpb.Payloads
	result *commonpb.Payloads
	err    error
}

func (t *activityEvents) end(event *historypb.HistoryEvent, result *commonpb.Payloads, err error) {
	if started := event.GetActivityTaskStartedEventAttributes(); started != nil {
		t.step.Tries = started.GetAttempt()
		return
	}
	t.step.Ended, t.result, t.err = event.GetEventTime().AsTime(), result, err
	if fault, bad := activities.Outcome(err); bad {
		t.step.Fault = string(fault.Kind) + ": " + fault.Message
	} else if err != nil {
		t.step.Fault = "cancelled"
	}
}

// add adds the step to the details; a Submit or Reconcile also describes an attempt.
func (t *activityEvents) add(details *Details) {
	details.Steps = append(details.Steps, t.step)
	var in activities.SubmitInput
	switch t.step.Name {
	case "Submit":
		if converter.GetDefaultDataConverter().FromPayloads(t.input, &in) != nil {
			return
		}
		details.Attempts = append(details.Attempts, AttemptDetails{
			At:      t.step.At,
			Attempt: workflows.Attempt{Number: in.Attempt, Assignment: in.Assignment},
		})
	case "Reconcile":
		if len(details.Attempts) == 0 {
			return
		}
	default:
		return
	}
	last := &details.Attempts[len(details.Attempts)-1]
	var job activities.Job
	if t.err == nil && t.result != nil && converter.GetDefaultDataConverter().FromPayloads(t.result, &job) == nil {
		last.Job, last.Fault = job.Ticket.Job, nil
		last.Ticket, _ = json.Marshal(job.Ticket) // it was unmarshalled, so it can be marshalled
	}
	if fault, bad := activities.Outcome(t.err); bad {
		last.Fault = &fault
	}
}

// outcome parses the event that starts or ends an activity. id is that of the event that scheduled it, 0 for other events.
func outcome(event *historypb.HistoryEvent) (id int64, result *commonpb.Payloads, err error) {
	failures := temporal.GetDefaultFailureConverter()
	switch {
	case event.GetActivityTaskStartedEventAttributes() != nil:
		return event.GetActivityTaskStartedEventAttributes().GetScheduledEventId(), nil, nil
	case event.GetActivityTaskCompletedEventAttributes() != nil:
		a := event.GetActivityTaskCompletedEventAttributes()
		return a.GetScheduledEventId(), a.GetResult(), nil
	case event.GetActivityTaskFailedEventAttributes() != nil:
		a := event.GetActivityTaskFailedEventAttributes()
		return a.GetScheduledEventId(), nil, failures.FailureToError(a.GetFailure())
	case event.GetActivityTaskTimedOutEventAttributes() != nil:
		a := event.GetActivityTaskTimedOutEventAttributes()
		return a.GetScheduledEventId(), nil, failures.FailureToError(a.GetFailure())
	case event.GetActivityTaskCanceledEventAttributes() != nil:
		return event.GetActivityTaskCanceledEventAttributes().GetScheduledEventId(), nil, temporal.NewCanceledError()
	default:
		return 0, nil, nil
	}
}

// delivery returns the delivery with the workflow id; nil if there is none.
func (o *Operator) delivery(ctx context.Context, id string) (*Delivery, error) {
	answer, err := describeRun(ctx, o.temporal, id, "")
	switch {
	case err != nil:
		return nil, unavailable("The task engine", err)
	case answer == nil:
		return nil, nil
	}
	info := answer.GetWorkflowExecutionInfo()
	delivery := &Delivery{ID: id, State: string(listed(info).Phase), Status: info.GetStatus().String(), Path: o.path(info.GetExecution())}
	if info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		closing, err := o.temporal.WorkflowService().GetWorkflowExecutionHistoryReverse(ctx,
			&workflowservice.GetWorkflowExecutionHistoryReverseRequest{
				Namespace: o.namespace, Execution: info.GetExecution(), MaximumPageSize: 1,
			})
		if err != nil {
			return nil, unavailable("The task engine", fmt.Errorf("read the end of %s: %w", id, err))
		}
		if events := closing.GetHistory().GetEvents(); len(events) > 0 { // the last event first; a page has more than one
			delivery.Result = document(events[0].GetWorkflowExecutionCompletedEventAttributes().GetResult())
		}
		return delivery, nil
	}
	for _, pending := range answer.GetPendingActivities() {
		delivery.Result = document(pending.GetHeartbeatDetails())
	}
	return delivery, nil
}

func (o *Operator) path(execution *commonpb.WorkflowExecution) string {
	return "/namespaces/" + o.namespace + "/workflows/" + execution.GetWorkflowId() + "/" + execution.GetRunId()
}

func summary(event *historypb.HistoryEvent) (text string) {
	if payload := event.GetUserMetadata().GetSummary(); payload != nil {
		if err := converter.GetDefaultDataConverter().FromPayload(payload, &text); err != nil {
			return ""
		}
	}
	return text
}

// document returns the first payload if it is JSON.
func document(payloads *commonpb.Payloads) json.RawMessage {
	if len(payloads.GetPayloads()) == 0 || !json.Valid(payloads.GetPayloads()[0].GetData()) {
		return nil
	}
	return payloads.GetPayloads()[0].GetData()
}

func failureText(message string) string {
	line, _, _ := strings.Cut(message, "\n")
	return line
}
