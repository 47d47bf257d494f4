package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/edge"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// Counter counts the tasks of all tokens, as tasks.Counter does.
type Counter interface {
	Census(ctx context.Context) (tasks.Census, error)
}

// ServeContent answers with the output of a task that the query names.
type ServeContent func(x *edge.Request, r *http.Request, task tasks.Task) error

type adminTaskCounts struct {
	Object      string    `json:"object" enum:"task_counts"`
	Queued      int64     `json:"queued"`
	Submitting  int64     `json:"submitting"`
	Polling     int64     `json:"polling"`
	Archiving   int64     `json:"archiving"`
	Stuck       int64     `json:"stuck" doc:"Those of them that have been in their state for longer than usual"`
	Failed      int64     `json:"failed" doc:"Tasks that failed within the last 24 hours"`
	Undelivered int64     `json:"undelivered" doc:"Webhooks that were given up within the last 24 hours"`
	Workers     int64     `json:"workers" doc:"Processes that asked for tasks within the last minutes; 0: nobody works on them"`
	CountedAt   time.Time `json:"counted_at" doc:"At most ten seconds ago"`
}

type deliveriesQuery struct {
	Token string `query:"token" doc:"Of tasks of this token, by id or name"`
	Model string `query:"model" doc:"Of tasks of this model"`
	State string `query:"state" enum:"delivering,delivered,undelivered,any" default:"undelivered" doc:"Where they stand; undelivered: given up"`
	Since string `query:"since" doc:"Those begun since a date or a time of RFC 3339"`
	Until string `query:"until" doc:"Those begun before a date or a time of RFC 3339"`
	PageOf
}

type adminDeliveryList struct {
	Object string                 `json:"object" enum:"list"`
	Data   []tasks.ListedDelivery `json:"data" nullable:"false"`
	After  *string                `json:"after" doc:"What to send as after for the next page, which may be empty; null at the end"`
}

// anyState asks for deliveries wherever they stand.
const anyState = "any"

// addWatch adds what looks over all tasks: how many there are, their webhooks, and what they made.
func (o *taskOperations) addWatch(g *edge.Group) {
	edge.Register(g, huma.Operation{
		OperationID: "adminCountTasks", Method: http.MethodGet, Path: tasksPath + "/counts", Summary: "Count the tasks of all tokens",
		Description: "A census that is at most ten seconds old and is the same for all who ask one process.",
	}, o.count)
	edge.Register(g, huma.Operation{
		OperationID: "adminListDeliveries", Method: http.MethodGet, Path: Root + "/deliveries", Summary: "List the deliveries of webhooks",
		Description: "Those that were given up, unless another state is asked for; newest first, a moment late. The task tells of each delivery's tries.",
	}, o.deliveries)
	o.addContent(g)
}

func (o *taskOperations) count(ctx context.Context, _ *struct{}) (adminTaskCounts, error) {
	census, err := o.Counter.Census(ctx)
	return adminTaskCounts{
		Object: "task_counts", Queued: census.Phases[workflows.PhaseQueued], Submitting: census.Phases[workflows.PhaseSubmitting],
		Polling: census.Phases[workflows.PhasePolling], Archiving: census.Phases[workflows.PhaseArchiving], Stuck: census.Stuck,
		Failed: census.Failed, Undelivered: census.Undelivered, Workers: census.Workers, CountedAt: census.At,
	}, err
}

func (o *taskOperations) deliveries(ctx context.Context, in *deliveriesQuery) (list adminDeliveryList, err error) {
	filter := tasks.DeliveryFilter{Model: in.Model}
	if in.State != anyState {
		filter.Phase = workflows.Phase(in.State)
	}
	cursor, err := in.cursor("model", in.Model)
	if err == nil {
		filter.Since, filter.Until, err = span(in.Since, in.Until)
	}
	if err == nil {
		filter.Token, err = o.names.id(ctx, in.Token)
	}
	if err != nil {
		return list, err
	}
	found, next, err := o.Operator.Deliveries(ctx, filter, cursor, in.Limit)
	return adminDeliveryList{Object: "list", Data: orNone(found), After: after(next)}, err
}

// addContent adds GET and HEAD of a task's output.
func (o *taskOperations) addContent(g *edge.Group) {
	file := &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}
	fault := map[string]*huma.MediaType{"application/json": {Schema: g.FaultSchema()}}
	op := huma.Operation{
		OperationID: "adminGetTaskContent", Method: http.MethodGet, Path: taskPath + "/content", Summary: "Get a task's video",
		Description: "Of a finished task of any token, from the archive. Ranges and conditional requests work as in RFC 9110.",
		Parameters: []*huma.Param{
			edge.PathParameter("task_id", "Video task id"),
			{Name: "index", In: "query", Description: "Which of several videos, from 0", Schema: &huma.Schema{Type: huma.TypeInteger, Minimum: new(float64)}},
			{
				Name: "variant", In: "query", Description: "Variants the upstream does not make are not found",
				Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"video", "thumbnail", "spritesheet"}},
			},
		},
		Responses: map[string]*huma.Response{
			"200": {Description: "The video, or the picture that the variant names", Content: map[string]*huma.MediaType{"video/*": file, "image/*": file}},
			"206": {Description: "The ranges asked for", Content: map[string]*huma.MediaType{"video/*": file, "image/*": file, "multipart/byteranges": file}},
			"304": {Description: "The client has the video as it is"},
			"412": {Description: "The video is not the one that the request's conditions name", Content: fault},
			"416": {Description: "The range does not exist", Content: fault},
		},
	}
	g.Handle(op, o.serveContent)
	op.Method, op.OperationID, op.Hidden = http.MethodHead, "adminHeadTaskContent", true
	g.Handle(op, o.serveContent)
}

func (o *taskOperations) serveContent(x *edge.Request, r *http.Request) error {
	x.Act.Subject, x.Act.Audited = r.PathValue("task_id"), r.Method == http.MethodGet
	task, err := o.Operator.Task(r.Context(), x.Act.Subject)
	if err != nil {
		return err
	}
	return o.Content(x, r, task)
}
