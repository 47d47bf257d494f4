package operator

import (
	"cmp"
	"context"
	"time"

	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/storage/audit"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// TaskStore reads and changes the tasks of all tokens; tasks.Operator implements it.
type TaskStore interface {
	// Page reads tasks after a cursor, the newest first; the cursor is empty for the first page. next is empty at the end.
	Page(ctx context.Context, filter tasks.Filter, cursor []byte, limit int) (found []tasks.Listed, next []byte, err error)
	// Deliveries reads deliveries of webhooks in the same way.
	Deliveries(ctx context.Context, filter tasks.DeliveryFilter, cursor []byte, limit int) (found []tasks.ListedDelivery, next []byte,
		err error)
	Show(ctx context.Context, id string) (tasks.Details, error)
	Task(ctx context.Context, id string) (tasks.Task, error)
	Cancel(ctx context.Context, id string) error
	Fail(ctx context.Context, id, reason string) error
	// Wait returns after the end of the task, or after most.
	Wait(ctx context.Context, id string, most time.Duration)
	RetryArchive(ctx context.Context, id string) error
	// Runs reports whether the task's execution is open.
	Runs(ctx context.Context, id string) (bool, error)
	// Redeliver delivers the end of a task to its webhook again.
	Redeliver(ctx context.Context, id string, wait time.Duration) (tasks.Notice, error)
	Counts(ctx context.Context) (tasks.Counts, error)
}

const (
	// MostWait is the maximum wait of an action in seconds.
	MostWait = 60
	// anyState selects deliveries in all states.
	anyState = "any"
)

// TaskQuery selects tasks.
type TaskQuery struct {
	Kind      string `query:"kind" json:"kind,omitempty" enum:"call,video" default:"" placeholder:"KIND" doc:"Tasks of this kind"`
	Operation string `query:"operation" json:"operation,omitempty" placeholder:"OPERATION" doc:"Calls of this operation, as POST /v1/chat/completions"`
	Token     string `query:"token" json:"token,omitempty" placeholder:"NAME" doc:"Tasks of this token, by id or name"`
	Model     string `query:"model" json:"model,omitempty" placeholder:"NAME" doc:"Tasks of this model"`
	Channel   string `query:"channel" json:"channel,omitempty" placeholder:"NAME" doc:"Tasks on this channel"`
	State     string `query:"state" json:"state,omitempty" enum:"queued,submitting,polling,archiving,calling,completed,failed,cancelled" default:"" doc:"Tasks in this state"`
	Stuck     bool   `query:"stuck" json:"stuck,omitempty" doc:"Only tasks that have been in their state for longer than usual"`
	Since     string `query:"since" json:"since,omitempty" type:"past" placeholder:"WHEN" doc:"Only tasks created since this date or RFC 3339 time"`
	Until     string `query:"until" json:"until,omitempty" type:"past" placeholder:"WHEN" doc:"Only tasks created before this date or RFC 3339 time"`
	PageOf    `kong:"-"`
}

// Filter returns the tasks that the query selects. Its token may be a name.
func (q TaskQuery) Filter() (filter tasks.Filter, err error) {
	filter = tasks.Filter{
		Kind: q.Kind, Operation: q.Operation, Token: q.Token, Model: q.Model, Channel: q.Channel, Phase: workflows.Phase(q.State),
		Stuck: q.Stuck,
	}
	filter.Since, filter.Until, err = span(q.Since, q.Until)
	return filter, err
}

// TaskList is a page of tasks.
type TaskList struct {
	Object string         `json:"object" enum:"list"`
	Data   []tasks.Listed `json:"data" nullable:"false"`
	After  *string        `json:"after" doc:"Value of after for the next page, which may be empty; null at the end"`
}

// TaskName identifies one task.
type TaskName struct {
	ID string `path:"task_id" doc:"Task id"`
}

// EndTask is the input of Service.CancelTask.
type EndTask struct {
	TaskName
	Wait int `query:"wait" json:"wait,omitempty" minimum:"1" maximum:"60" default:"2" doc:"How long to wait for the end, in seconds"`
}

// RedeliverTask is the input of Service.Redeliver.
type RedeliverTask struct {
	TaskName
	Wait int `query:"wait" json:"wait,omitempty" minimum:"1" maximum:"60" default:"10" doc:"How long to wait for the receiver, in seconds"`
}

// FailTask is the input of Service.FailTask.
type FailTask struct {
	EndTask

	Body TaskFailure
}

// TaskFailure is the reason for which an operator fails a task.
type TaskFailure struct {
	Reason string   `json:"reason" minLength:"1" maxLength:"1000" doc:"Reason that the client receives"`
	_      struct{} `json:"-" additionalProperties:"false"`
}

// TaskCounts are the numbers of tasks.
type TaskCounts struct {
	Object      string    `json:"object" enum:"task_counts"`
	Queued      int64     `json:"queued"`
	Submitting  int64     `json:"submitting"`
	Polling     int64     `json:"polling"`
	Archiving   int64     `json:"archiving"`
	Calling     int64     `json:"calling" doc:"Background calls, including waiting ones"`
	Stuck       int64     `json:"stuck" doc:"How many of these tasks have been in their state for longer than usual"`
	Failed      int64     `json:"failed" doc:"Tasks that failed within the last 24 hours"`
	Undelivered int64     `json:"undelivered" doc:"Webhooks that the gateway gave up within the last 24 hours"`
	Workers     int64     `json:"workers" doc:"Processes that polled for tasks within the last minutes; 0: no process runs tasks"`
	CountedAt   time.Time `json:"counted_at" doc:"At most ten seconds ago"`
}

// Running returns the number of videos at vendors or in archiving, and of running calls.
func (c TaskCounts) Running() int64 { return c.Submitting + c.Polling + c.Archiving + c.Calling }

// DeliveryQuery selects deliveries of webhooks. A state of "" is undelivered.
type DeliveryQuery struct {
	Token  string `query:"token" json:"token,omitempty" placeholder:"NAME" doc:"Only deliveries for tasks of this token, by id or name"`
	Model  string `query:"model" json:"model,omitempty" placeholder:"NAME" doc:"Only deliveries for tasks of this model"`
	State  string `query:"state" json:"state,omitempty" enum:"delivering,delivered,undelivered,any" default:"undelivered" doc:"State of the deliveries; undelivered: the gateway gave up"`
	Since  string `query:"since" json:"since,omitempty" type:"past" placeholder:"WHEN" doc:"Only deliveries that began since this date or RFC 3339 time"`
	Until  string `query:"until" json:"until,omitempty" type:"past" placeholder:"WHEN" doc:"Only deliveries that began before this date or RFC 3339 time"`
	PageOf `kong:"-"`
}

// DeliveryList is a page of deliveries.
type DeliveryList struct {
	Object string                 `json:"object" enum:"list"`
	Data   []tasks.ListedDelivery `json:"data" nullable:"false"`
	After  *string                `json:"after" doc:"Value of after for the next page, which may be empty; null at the end"`
}

// ListTasks returns a page of the tasks of all tokens, newest first.
func (s *Service) ListTasks(ctx context.Context, by Actor, in *TaskQuery) (list TaskList, err error) {
	if err := reads(by, in); err != nil {
		return list, err
	}
	filter, err := in.Filter()
	if err != nil {
		return list, err
	}
	cursor, err := in.cursor("model", in.Model, "channel", in.Channel, "operation", in.Operation)
	if err == nil {
		filter.Token, err = s.TokenID(ctx, in.Token)
	}
	if err != nil {
		return list, err
	}
	found, next, err := s.Tasks.Page(ctx, filter, cursor, in.limit())
	return TaskList{Object: "list", Data: orNone(found), After: after(next)}, err
}

// ListDeliveries returns a page of the deliveries of webhooks, newest first.
func (s *Service) ListDeliveries(ctx context.Context, by Actor, in *DeliveryQuery) (list DeliveryList, err error) {
	if err := reads(by, in); err != nil {
		return list, err
	}
	filter := tasks.DeliveryFilter{Model: in.Model, Phase: workflows.PhaseUndelivered}
	switch in.State {
	case "":
	case anyState:
		filter.Phase = ""
	default:
		filter.Phase = workflows.Phase(in.State)
	}
	cursor, err := in.cursor("model", in.Model)
	if err == nil {
		filter.Since, filter.Until, err = span(in.Since, in.Until)
	}
	if err == nil {
		filter.Token, err = s.TokenID(ctx, in.Token)
	}
	if err != nil {
		return list, err
	}
	found, next, err := s.Tasks.Deliveries(ctx, filter, cursor, in.limit())
	return DeliveryList{Object: "list", Data: orNone(found), After: after(next)}, err
}

// CountTasks counts the tasks of all tokens. The counts are at most ten seconds old.
func (s *Service) CountTasks(ctx context.Context, by Actor, _ *struct{}) (TaskCounts, error) {
	if err := reads(by, nil); err != nil {
		return TaskCounts{}, err
	}
	counts, err := s.Tasks.Counts(ctx)
	return TaskCounts{
		Object: "task_counts", Queued: counts.Phases[workflows.PhaseQueued], Submitting: counts.Phases[workflows.PhaseSubmitting],
		Polling: counts.Phases[workflows.PhasePolling], Archiving: counts.Phases[workflows.PhaseArchiving],
		Calling: counts.Phases[workflows.PhaseCalling], Stuck: counts.Stuck,
		Failed: counts.Failed, Undelivered: counts.Undelivered, Workers: counts.Workers, CountedAt: counts.At,
	}, err
}

// Task returns all data of a task.
func (s *Service) Task(ctx context.Context, by Actor, in *TaskName) (details tasks.Details, err error) {
	if err := reads(by, nil); err != nil {
		return details, err
	}
	details, err = s.Tasks.Show(ctx, in.ID)
	if req, ok := details.Request.(providers.VideoRequest); ok && by.Role == edge.RoleViewer {
		req.WebhookURL = receiverHost(req.WebhookURL)
		details.Request = req
	}
	return details, err
}

// CancelTask cancels a task like its client, and waits a moment for the end.
func (s *Service) CancelTask(ctx context.Context, by Actor, in *EndTask) (tasks.Details, error) {
	return change(ctx, s, by, "cancel_task", in.ID, in, func(*audit.Entry) (tasks.Details, error) {
		return s.ended(ctx, by, in, s.Tasks.Cancel(ctx, in.ID))
	})
}

// FailTask ends a task as failed, and waits a moment for the end.
func (s *Service) FailTask(ctx context.Context, by Actor, in *FailTask) (tasks.Details, error) {
	return change(ctx, s, by, "fail_task", in.ID, in, func(entry *audit.Entry) (tasks.Details, error) {
		entry.Changes = []audit.Change{audit.Set("reason", in.Body.Reason)}
		return s.ended(ctx, by, &in.EndTask, s.Tasks.Fail(ctx, in.ID, in.Body.Reason))
	})
}

// ended waits a moment for the end of a task, and returns the task.
func (s *Service) ended(ctx context.Context, by Actor, in *EndTask, err error) (tasks.Details, error) {
	if err != nil {
		return tasks.Details{}, err
	}
	s.Tasks.Wait(ctx, in.ID, time.Duration(cmp.Or(in.Wait, 2))*time.Second)
	return s.Task(ctx, by, &in.TaskName)
}

// RetryArchive makes a task that failed with archive_failed archive again.
func (s *Service) RetryArchive(ctx context.Context, by Actor, in *TaskName) (tasks.Details, error) {
	return change(ctx, s, by, "retry_archive", in.ID, nil, func(*audit.Entry) (tasks.Details, error) {
		if err := s.Tasks.RetryArchive(ctx, in.ID); err != nil {
			return tasks.Details{}, err
		}
		return s.Task(ctx, by, in)
	})
}

// Redeliver delivers the event of a task's end to its webhook again, and waits for the receiver.
func (s *Service) Redeliver(ctx context.Context, by Actor, in *RedeliverTask) (tasks.Notice, error) {
	return change(ctx, s, by, "redeliver", in.ID, in, func(*audit.Entry) (tasks.Notice, error) {
		return s.Tasks.Redeliver(ctx, in.ID, time.Duration(cmp.Or(in.Wait, 10))*time.Second)
	})
}

// ReadContent serves an output of a task, and records this.
func (s *Service) ReadContent(ctx context.Context, by Actor, in *TaskName, serve func(tasks.Task) error) error {
	err := reads(by, nil)
	if err == nil {
		var task tasks.Task
		if task, err = s.Tasks.Task(ctx, in.ID); err == nil {
			err = serve(task)
		}
	}
	s.record(ctx, by, audit.Entry{What: "get_task_content", Subject: in.ID}, err)
	return err
}
