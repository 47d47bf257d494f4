package admin

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/edge"
	"modelrelay/api/operator"
	"modelrelay/workflows/tasks"
)

// Paths of the tasks and of the reservations.
const (
	tasksPath       = Root + "/tasks"
	taskPath        = tasksPath + "/{task_id}"
	unsettledPath   = Root + "/usage/unsettled"
	reservationPath = unsettledPath + "/{id}"
)

// ServeContent answers with the output of a task that the query names.
type ServeContent func(x *edge.Request, r *http.Request, task tasks.Task) error

// addTasks adds the operations on the tasks of all tokens, and on money that no process will settle.
func addTasks(g *edge.Group, s *operator.Service) {
	register(g, huma.Operation{
		OperationID: "adminListUnsettled", Method: http.MethodGet, Path: unsettledPath, Summary: "List money that nobody will settle",
		Description: "Reservations of calls whose gateway is gone, which shows about a minute later, and of tasks that do not run. " +
			"Until they are charged or refunded they count against their tokens' budgets.",
	}, s.ListUnsettled)
	const answer = " The answer lists what was ended. An id that is not listed, or no more: 404."
	register(g, huma.Operation{
		OperationID: "adminChargeUnsettled", Method: http.MethodPost, Path: reservationPath + "/charge", Summary: "Charge a reservation",
		Description: "Its amount counts as spent, and stands in today's ledger as of a call or task that failed." + answer,
	}, s.ChargeUnsettled)
	register(g, huma.Operation{
		OperationID: "adminRefundUnsettled", Method: http.MethodPost, Path: reservationPath + "/refund", Summary: "Refund a reservation",
		Description: "Its token may spend the amount again; the ledger has nothing of it." + answer,
	}, s.RefundUnsettled)
	register(g, huma.Operation{
		OperationID: "adminListTasks", Method: http.MethodGet, Path: tasksPath, Summary: "List the tasks of all tokens",
		Description: "Newest first, as Temporal's visibility knows them, a moment late. Who asks for the same page within two seconds gets the same tasks, those that run as they are now.",
	}, s.ListTasks)
	register(g, huma.Operation{
		OperationID: "adminGetTask", Method: http.MethodGet, Path: taskPath, Summary: "Tell all there is to know of a task",
		Description: "Its attempts with tickets and faults, its steps, what it waits for, its outputs, its webhook.",
	}, s.Task)
	register(g, huma.Operation{
		OperationID: "adminCancelTask", Method: http.MethodPost, Path: taskPath + "/cancel", Summary: "Cancel a task",
		Description: "As its client could. Waits for the end, two seconds unless more is asked for. A task that has ended: 409.",
	}, s.CancelTask)
	register(g, huma.Operation{
		OperationID: "adminFailTask", Method: http.MethodPost, Path: taskPath + "/fail", Summary: "End a task as failed",
		Description: "The client reads the reason. Waits for the end, two seconds unless more is asked for. A task that has ended: 409.",
	}, s.FailTask)
	register(g, huma.Operation{
		OperationID: "adminRetryArchive", Method: http.MethodPost, Path: taskPath + "/retry-archive", Summary: "Archive a task again",
		Description: "Only for a task that failed with archive_failed; any other is answered 409.",
	}, s.RetryArchive)
	register(g, huma.Operation{
		OperationID: "adminRedeliver", Method: http.MethodPost, Path: taskPath + "/redeliver", Summary: "Deliver the event of a task's end to its webhook again",
		Description: "The event keeps its id. Waits for the receiver, ten seconds unless more is asked for; the delivery goes on without this request.",
	}, s.Redeliver)
	register(g, huma.Operation{
		OperationID: "adminCountTasks", Method: http.MethodGet, Path: tasksPath + "/counts", Summary: "Count the tasks of all tokens",
		Description: "A census that is at most ten seconds old and is the same for all who ask one process.",
	}, s.CountTasks)
	register(g, huma.Operation{
		OperationID: "adminListDeliveries", Method: http.MethodGet, Path: Root + "/deliveries", Summary: "List the deliveries of webhooks",
		Description: "Those that were given up, unless another state is asked for; newest first, a moment late. The task tells of each delivery's tries.",
	}, s.ListDeliveries)
}

// addContent adds GET and HEAD of a task's output.
func addContent(g *edge.Group, s *operator.Service, serve ServeContent) {
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
	answer := func(x *edge.Request, r *http.Request) error {
		return s.ReadContent(r.Context(), actorOf(r.Context(), x), &operator.TaskName{ID: r.PathValue("task_id")}, func(task tasks.Task) error { return serve(x, r, task) })
	}
	g.Handle(op, answer)
	op.Method, op.OperationID, op.Hidden = http.MethodHead, "adminHeadTaskContent", true
	g.Handle(op, func(x *edge.Request, r *http.Request) error {
		task, err := s.Tasks.Task(r.Context(), r.PathValue("task_id"))
		if err != nil {
			return err
		}
		return serve(x, r, task)
	})
}
