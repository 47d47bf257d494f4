package admin

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/api/edge"
	"modelrelay/api/operator"
	"modelrelay/workflows/tasks"
)

const (
	tasksPath       = Root + "/tasks"
	taskPath        = tasksPath + "/{task_id}"
	unsettledPath   = Root + "/usage/unsettled"
	reservationPath = unsettledPath + "/{id}"
)

// ServeContent answers with the output of a task that the query selects.
type ServeContent func(x *edge.Request, r *http.Request, task tasks.Task) error

func addTasks(g *edge.Group, s *operator.Service) {
	register(g, huma.Operation{
		OperationID: "adminListUnsettled", Method: http.MethodGet, Path: unsettledPath, Summary: "List reservations that no process will settle",
		Description: "Reservations of calls whose gateway process ended, about a minute later, and of tasks that do not run. " +
			"They count against the budgets of their tokens until they are charged or refunded.",
	}, s.ListUnsettled)
	const answer = " The answer lists the reservations that ended. An id that is not in the list is 404."
	register(g, huma.Operation{
		OperationID: "adminChargeUnsettled", Method: http.MethodPost, Path: reservationPath + "/charge", Summary: "Charge a reservation",
		Description: "The amount counts as spent. Today's ledger has it as a failed call or task." + answer,
	}, s.ChargeUnsettled)
	register(g, huma.Operation{
		OperationID: "adminRefundUnsettled", Method: http.MethodPost, Path: reservationPath + "/refund", Summary: "Refund a reservation",
		Description: "The token may spend the amount again. The ledger does not change." + answer,
	}, s.RefundUnsettled)
	register(g, huma.Operation{
		OperationID: "adminListTasks", Method: http.MethodGet, Path: tasksPath, Summary: "List the tasks of all tokens",
		Description: "Newest first, from Temporal's visibility store, with a short delay. " +
			"A process returns the same page for two seconds, with the current state of running tasks.",
	}, s.ListTasks)
	register(g, huma.Operation{
		OperationID: "adminGetTask", Method: http.MethodGet, Path: taskPath, Summary: "Get the details of a task",
		Description: "Attempts with tickets and faults, steps, pending activities, outputs and webhooks.",
	}, s.Task)
	register(g, huma.Operation{
		OperationID: "adminCancelTask", Method: http.MethodPost, Path: taskPath + "/cancel", Summary: "Cancel a task",
		Description: "Has the same effect as a cancel by the token's client. Waits for the end, two seconds by default. " +
			"For a task that has ended the answer is 409.",
	}, s.CancelTask)
	register(g, huma.Operation{
		OperationID: "adminFailTask", Method: http.MethodPost, Path: taskPath + "/fail", Summary: "End a task as failed",
		Description: "The client receives the reason. Waits for the end, two seconds by default. For a task that has ended the answer is 409.",
	}, s.FailTask)
	register(g, huma.Operation{
		OperationID: "adminRetryArchive", Method: http.MethodPost, Path: taskPath + "/retry-archive", Summary: "Archive a task again",
		Description: "Only for a task that failed with archive_failed; for any other task the answer is 409.",
	}, s.RetryArchive)
	register(g, huma.Operation{
		OperationID: "adminRedeliver", Method: http.MethodPost, Path: taskPath + "/redeliver",
		Summary:     "Deliver the event of a task's end to its webhook again",
		Description: "The event keeps its id. Waits for the receiver, ten seconds by default. The delivery continues when this request ends.",
	}, s.Redeliver)
	register(g, huma.Operation{
		OperationID: "adminCountTasks", Method: http.MethodGet, Path: tasksPath + "/counts", Summary: "Count the tasks of all tokens",
		Description: "Counts that are at most ten seconds old. All callers of a process get the same counts.",
	}, s.CountTasks)
	register(g, huma.Operation{
		OperationID: "adminListDeliveries", Method: http.MethodGet, Path: Root + "/deliveries", Summary: "List the deliveries of webhooks",
		Description: "Newest first, with a short delay. Without `state` the list has the deliveries that the gateway gave up. " +
			"The details of a task have the tries of each delivery.",
	}, s.ListDeliveries)
}

// addContent adds GET and HEAD of a task's output.
func addContent(g *edge.Group, s *operator.Service, serve ServeContent) {
	op := huma.Operation{
		OperationID: "adminGetTaskContent", Method: http.MethodGet, Path: taskPath + "/content", Summary: "Get a task's video",
		Description: "The video of a finished task of any token, from the archive. Ranges and conditional requests work as in RFC 9110.",
		Parameters:  []*huma.Param{edge.PathParameter("task_id", "Video task id")},
	}
	body.DeclareContent(&op, g.FaultSchema())
	answer := func(x *edge.Request, r *http.Request) error {
		return s.ReadContent(r.Context(), actorOf(r.Context(), x), &operator.TaskName{ID: r.PathValue("task_id")},
			func(task tasks.Task) error { return serve(x, r, task) })
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
