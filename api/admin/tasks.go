package admin

import (
	"bytes"
	"context"
	"encoding/base64"
	"hash/crc32"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/storage/audit"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// Operator sees and moves the tasks of all tokens, as tasks.Operator does.
type Operator interface {
	// Page reads tasks newest first behind a cursor, empty for the first page; next is empty at the end.
	Page(ctx context.Context, filter tasks.Filter, cursor []byte, limit int) (found []tasks.Listed, next []byte, err error)
	// Deliveries reads deliveries of webhooks as Page reads tasks.
	Deliveries(ctx context.Context, filter tasks.DeliveryFilter, cursor []byte, limit int) (found []tasks.ListedDelivery, next []byte, err error)
	Show(ctx context.Context, id string) (tasks.Story, error)
	Task(ctx context.Context, id string) (tasks.Task, error)
	Cancel(ctx context.Context, id string) error
	Fail(ctx context.Context, id, reason string) error
	// Wait returns the task when it has ended, or as it is after so long.
	Wait(ctx context.Context, id string, most time.Duration) (tasks.Task, error)
	RetryArchive(ctx context.Context, id string) (run string, err error)
}

// Redeliverer tells the end of a task to its webhook once more, as tasks.Client does.
type Redeliverer interface {
	Redeliver(ctx context.Context, id string, wait time.Duration) (tasks.Notice, error)
}

// Paths of the tasks.
const (
	tasksPath = Root + "/tasks"
	taskPath  = tasksPath + "/{task_id}"
)

const (
	// endWait is how long the end of a task is waited for that was told to end, as long as a client's cancel waits.
	endWait = 2 * time.Second
)

type tasksQuery struct {
	Token   string `query:"token" doc:"Tasks of this token, by id or name"`
	Model   string `query:"model" doc:"Tasks of this model"`
	Channel string `query:"channel" doc:"Tasks on this channel"`
	State   string `query:"state" enum:"queued,submitting,polling,archiving,completed,failed" doc:"Tasks in this state"`
	Stuck   bool   `query:"stuck" doc:"Those that have been in their state for longer than usual"`
	Since   string `query:"since" doc:"Those made since a date or a time of RFC 3339"`
	Until   string `query:"until" doc:"Those made before a date or a time of RFC 3339"`
	PageOf
}

type adminTaskList struct {
	Object string         `json:"object" enum:"list"`
	Data   []tasks.Listed `json:"data" nullable:"false"`
	After  *string        `json:"after" doc:"What to send as after for the next page, which may be empty; null at the end"`
}

// TaskName is the path of one task. It is exported as TokenChange is.
type TaskName struct {
	ID string `path:"task_id" doc:"Video task id"`
}

// TaskOptions are what the operations on tasks work with.
type TaskOptions struct {
	// Operator has the tasks of all tokens, Webhooks their deliveries.
	Operator Operator
	Webhooks Redeliverer
	// Counter counts them; Content serves what they made.
	Counter Counter
	Content ServeContent
}

// taskOperations are those on the tasks of all tokens.
type taskOperations struct {
	TaskOptions

	names tokenNames
}

// add adds the operations on tasks.
func (o *taskOperations) add(g *edge.Group) {
	edge.Register(g, huma.Operation{
		OperationID: "adminListTasks", Method: http.MethodGet, Path: tasksPath, Summary: "List the tasks of all tokens",
		Description: "Newest first, as Temporal's visibility knows them, a moment late. Who asks for the same page within two seconds gets the same tasks, those that run as they are now.",
	}, o.list)
	edge.Register(g, huma.Operation{
		OperationID: "adminGetTask", Method: http.MethodGet, Path: taskPath, Summary: "Tell all there is to know of a task",
		Description: "Its attempts with tickets and faults, its steps, what it waits for, its outputs, its webhook.",
	}, func(ctx context.Context, in *TaskName) (tasks.Story, error) {
		return o.show(ctx, in.ID, nil)
	})
	edge.Register(g, huma.Operation{
		OperationID: "adminCancelTask", Method: http.MethodPost, Path: taskPath + "/cancel", Summary: "Cancel a task",
		Description: "As its client could. Waits up to two seconds for the end. A task that has ended: 409.",
	}, func(ctx context.Context, in *TaskName) (tasks.Story, error) {
		return o.end(ctx, in.ID, o.Operator.Cancel(ctx, in.ID))
	})
	edge.Register(g, huma.Operation{
		OperationID: "adminFailTask", Method: http.MethodPost, Path: taskPath + "/fail", Summary: "End a task as failed",
		Description: "The client reads the reason. Waits up to two seconds for the end. A task that has ended: 409.",
	}, func(ctx context.Context, in *struct {
		TaskName

		Body struct {
			Reason string   `json:"reason" minLength:"1" maxLength:"1000" doc:"What the client reads"`
			_      struct{} `json:"-" additionalProperties:"false"`
		}
	},
	) (tasks.Story, error) {
		edge.Of(ctx).Act.Changes = []audit.Change{audit.Set("reason", in.Body.Reason)}
		return o.end(ctx, in.ID, o.Operator.Fail(ctx, in.ID, in.Body.Reason))
	})
	edge.Register(g, huma.Operation{
		OperationID: "adminRetryArchive", Method: http.MethodPost, Path: taskPath + "/retry-archive", Summary: "Archive a task again",
		Description: "Only for a task that failed with archive_failed; any other is answered 409.",
	}, func(ctx context.Context, in *TaskName) (tasks.Story, error) {
		_, err := o.Operator.RetryArchive(ctx, in.ID)
		return o.show(ctx, in.ID, err)
	})
	edge.Register(g, huma.Operation{
		OperationID: "adminRedeliver", Method: http.MethodPost, Path: taskPath + "/redeliver", Summary: "Deliver the event of a task's end to its webhook again",
		Description: "The event keeps its id. Waits up to ten seconds for the receiver; the delivery goes on without this request.",
	}, func(ctx context.Context, in *TaskName) (adminNotice, error) {
		edge.Of(ctx).Act.Subject = in.ID
		notice, err := o.Webhooks.Redeliver(ctx, in.ID, redeliverWait)
		return newNotice(notice), err
	})
	o.addWatch(g)
}

// adminNotice is how far a delivery got.
type adminNotice struct {
	WorkflowID string     `json:"workflow_id" doc:"The delivery's own, in the Temporal UI"`
	EventID    string     `json:"event_id" doc:"The event's id, the same in every try"`
	Type       string     `json:"type" enum:"video.completed,video.failed"`
	State      string     `json:"state" enum:"delivering,delivered,undelivered"`
	Host       string     `json:"host" doc:"The receiver's host name"`
	Status     int        `json:"status" doc:"HTTP status of the receiver's last answer; 0: it has not answered"`
	Tries      int        `json:"tries" doc:"Tries so far"`
	Reason     string     `json:"reason" doc:"Why the last try failed"`
	Next       *time.Time `json:"next" doc:"When it is tried again"`
}

func newNotice(n tasks.Notice) adminNotice {
	return adminNotice{
		WorkflowID: n.WorkflowID, EventID: n.EventID, Type: n.Type, State: string(n.State), Host: n.Delivery.Host,
		Status: n.Delivery.Status, Tries: n.Delivery.Tries, Reason: n.Delivery.Reason, Next: timeOrNull(n.Delivery.Next),
	}
}

// redeliverWait is how long a redelivery is waited for: most receivers answer at once.
const redeliverWait = 10 * time.Second

func (o *taskOperations) list(ctx context.Context, in *tasksQuery) (list adminTaskList, err error) {
	filter := tasks.Filter{Model: in.Model, Channel: in.Channel, Phase: workflows.Phase(in.State), Stuck: in.Stuck}
	cursor, err := in.cursor("model", in.Model, "channel", in.Channel)
	if err == nil {
		filter.Since, filter.Until, err = span(in.Since, in.Until)
	}
	if err == nil {
		filter.Token, err = o.names.id(ctx, in.Token)
	}
	if err != nil {
		return list, err
	}
	found, next, err := o.Operator.Page(ctx, filter, cursor, in.Limit)
	return adminTaskList{Object: "list", Data: orNone(found), After: after(next)}, err
}

// PageOf is which page of a list is asked for. It is exported as TokenChange is.
type PageOf struct {
	After string `query:"after" doc:"The cursor of the page before"`
	Limit int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"Length of the page"`
}

// cursor is where the page begins, empty for the first one. filters are names and values of what else is asked for.
func (p PageOf) cursor(filters ...string) ([]byte, error) {
	if err := plainFilters(filters...); err != nil {
		return nil, err
	}
	cursor, ok := readCursor(p.After)
	if !ok {
		return nil, noCursor()
	}
	return cursor, nil
}

func noCursor() error {
	return providers.InvalidField("after", "Invalid request: 'after' is no cursor of this list.")
}

// span reads the times between which something was made.
func span(sinceText, untilText string) (since, until time.Time, err error) {
	if since, err = edge.Moment("since", sinceText); err != nil {
		return since, until, err
	}
	if until, err = edge.Moment("until", untilText); err == nil && !until.IsZero() && !since.Before(until) {
		err = providers.InvalidField("until", "Invalid request: 'until' does not lie after 'since'.")
	}
	return since, until, err
}

// after is the cursor of the next page as clients have it, nil at the end.
func after(next []byte) *string {
	if len(next) == 0 {
		return nil
	}
	return new(writeCursor(next))
}

// writeCursor writes a cursor of the engine's with a checksum in front: what is none of its cursors the engine answers in
// as many ways as it has stores.
func writeCursor(cursor []byte) string {
	return base64.RawURLEncoding.EncodeToString(append(checksum(cursor), cursor...))
}

// readCursor is the cursor that was written; of "" the empty one.
func readCursor(text string) (cursor []byte, ok bool) {
	if text == "" {
		return nil, true
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) <= crc32.Size || !bytes.Equal(raw[:crc32.Size], checksum(raw[crc32.Size:])) {
		return nil, false
	}
	return raw[crc32.Size:], true
}

func checksum(cursor []byte) []byte {
	sum := crc32.NewIEEE()
	_, _ = sum.Write(cursor) // it never fails
	return sum.Sum(nil)
}

// plainFilters refuses filters, given as names and values, that no name of anything here matches and no query takes.
func plainFilters(pairs ...string) error {
	for i := 0; i+1 < len(pairs); i += 2 {
		if !providers.Plain(pairs[i+1]) {
			return providers.InvalidField(pairs[i], "Invalid request: '%s' holds a control character.", pairs[i])
		}
	}
	return nil
}

// end waits a while for the end of a task that was told to end, and shows it.
func (o *taskOperations) end(ctx context.Context, id string, err error) (tasks.Story, error) {
	if err == nil {
		_, _ = o.Operator.Wait(ctx, id, endWait) // what has come of it is shown next
	}
	return o.show(ctx, id, err)
}

// show renders a task, or what went wrong before.
func (o *taskOperations) show(ctx context.Context, id string, err error) (tasks.Story, error) {
	edge.Of(ctx).Act.Subject = id
	if err != nil {
		return tasks.Story{}, err
	}
	story, err := o.Operator.Show(ctx, id)
	if req, ok := story.Request.(providers.VideoRequest); ok && viewed(ctx) {
		req.WebhookURL = receiverHost(req.WebhookURL)
		story.Request = req
	}
	return story, err
}
