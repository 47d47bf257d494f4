package console

import (
	"cmp"
	"strings"
	"sync"
	"time"

	"modelrelay/activities"
	"modelrelay/api/edge"
	"modelrelay/api/operator"
	"modelrelay/workflows/tasks"
)

// ownPage is the number of tasks on a page of a holder's list. Each counts as one of the token's reads.
const ownPage = 50

// taskTab is a view of the tasks. Count is their number, "" if unknown.
type taskTab struct {
	Word, Address, Count string
	Here                 bool
}

type tasksData struct {
	Table   *Table // nil if Temporal does not answer
	Tabs    []taskTab
	Counts  *operator.TaskCounts
	States  []string
	Holder  bool
	Webhook bool
}

// tasksPage lists tasks: of all tokens for operators, only their own for holders.
func tasksPage() page {
	end := func(do string) act {
		return act{roles: []edge.Role{Operator}, do: func(v *View) (string, any, error) {
			return v.several(bulk{
				box: "task", column: "task.id", page: "tasks", end: func(id string) error { return endTask(v, do, id) },
				ask: func(ids []string) (question, error) {
					return question{Text: v.T("tasks.ask."+do, "n", len(ids)), Yes: v.T("tasks.many." + do), Reason: do == "fail"}, nil
				},
			})
		}}
	}
	return page{
		name: "tasks", path: "/tasks", roles: allRoles(), nav: "tasks", key: "t",
		show: func(v *View) (any, error) { return showTasks(v) },
		csv:  func(data any) *Table { return data.(*tasksData).Table }, //nolint:forcetypeassert // of show
		acts: map[string]act{"cancel": end("cancel"), "fail": end("fail"), "redeliver": end("redeliver")},
	}
}

func showTasks(v *View) (*tasksData, error) {
	if v.User.Role == Holder {
		page, err := ownTasks(v, ownPage)
		if err != nil {
			return nil, err
		}
		return &tasksData{Table: ownTasksTable(v, page), Holder: true}, nil
	}
	data := &tasksData{
		States:  []string{"queued", "submitting", "polling", "archiving", "calling", "completed", "failed", "cancelled"},
		Webhook: v.Query("view") == "webhooks",
	}
	// If Temporal does not answer, both reads wait, so they run concurrently. The counts are in no live region.
	var counting sync.WaitGroup
	if !v.Refreshes() {
		counting.Go(func() {
			if counts, err := v.s.o.Operator.CountTasks(v.R.Context(), v.actor(), nil); err == nil { // on an error, the list is shown without them
				data.Counts = &counts
			}
		})
	}
	read := tasksOf
	if data.Webhook {
		read = deliveriesTable
	}
	table, err := read(v)
	counting.Wait()
	data.Tabs = taskTabs(v, data.Counts)
	if problem := v.problem(err); problem != nil && problem.Away() {
		v.Away = problem // the filters keep what was typed
		return data, nil
	}
	data.Table = table
	return data, err
}

func tasksOf(v *View) (*Table, error) {
	view, query := v.Query("view"), operator.TaskQuery{
		Kind: v.Query("kind"), Operation: v.Query("operation"),
		Token: v.Query("token"), Model: v.Query("model"), Channel: v.Query("channel"), State: v.Query("state"), Since: v.Query("since"),
		Until:  v.Query("until"),
		PageOf: operator.PageOf{After: v.Query("after")},
	}
	query.Stuck = view == "stuck"
	if view == "failed" {
		query.State = view
	}
	list, err := v.s.o.Operator.ListTasks(v.R.Context(), v.actor(), &query)
	if err != nil {
		return nil, err
	}
	names := tokenNames(v, list.Data, func(task tasks.Listed) string { return task.Token })
	table := tasksTable(v, list.Data, names)
	if view == "stuck" || view == "failed" {
		table.Empty = "tasks.empty." + view
	}
	table.Select = v.boxes("task")
	if len(list.Data) > 0 {
		table.Next = v.next(list.After)
	}
	return table, nil
}

func tasksTable(v *View, list []tasks.Listed, names map[string]string) *Table {
	table := &Table{
		ID: "tasks", Caption: "tasks.caption", Empty: "tasks.empty", CSV: true,
		Columns: columns(
			"task.id", "task.state", "task.operation", "task.model", "task.token", "task.channel", "#task.tokens", "#task.cost",
			"task.created", "task.due", "task.ended",
		),
	}
	for _, task := range list {
		state := taskState(string(task.Phase))
		state.Note = codeNote(string(task.Phase), task.Code)
		due := time.Time{}
		if task.Closed.IsZero() {
			due = task.Due
		}
		if !task.Due.IsZero() && task.Due.Before(time.Now()) {
			state.Mark, state.Note = "warning", v.T("task.overdue")
		}
		id := Cell{Text: task.ID, Code: true, Link: v.To("tasks", task.ID)}
		channel := Cell{Text: task.Channel, Link: linkOf(v, "channels", task.Channel)}
		table.add(task.ID, id, state, operationCell(task.Operation), task.Model, tokenCell(v, task.Token, names), channel, known(task.Tokens),
			v.Money(task.Cost), task.Created, due, task.Closed)
	}
	return table
}

func taskTabs(v *View, counts *operator.TaskCounts) []taskTab {
	tabs := []taskTab{{Word: "tasks.all"}, {Word: "tasks.stuck"}, {Word: "tasks.failed"}, {Word: "tasks.webhooks"}}
	views := []string{"", "stuck", "failed", "webhooks"}
	for i := range tabs {
		tabs[i].Address, tabs[i].Here = v.With("view", views[i], "state", ""), v.Query("view") == views[i]
	}
	if counts != nil {
		// There is no count of all tasks. Running tasks are counted by state.
		for i, n := range []int64{counts.Stuck, counts.Failed, counts.Undelivered} {
			tabs[i+1].Count = number(n)
		}
	}
	return tabs
}

// codeNote returns a failure's code, which is shown below the state; "" if it equals the state.
func codeNote(state, code string) string {
	if code == state {
		return ""
	}
	return code
}

// operationCell is the operation of a call, or a video.
func operationCell(operation string) Cell {
	if operation == "" {
		return Cell{Word: "task.kind.video"}
	}
	return Cell{Text: operation}
}

// known formats a number that is 0 if it is unknown.
func known(n int64) string {
	if n == 0 {
		return ""
	}
	return number(n)
}

// taskState is a task's state, for operators or for clients: a mark and a word.
func taskState(state string) Cell {
	marks := map[string]string{
		"completed": "done", "failed": "failed", "polling": "running", "in_progress": "running", "archiving": "running", "submitting": "running",
		"calling": "running", "cancelled": "failed",
		"delivering": "running", "delivered": "done", "undelivered": "failed",
	}
	return Cell{Word: "task.state." + cmp.Or(state, "queued"), Mark: cmp.Or(marks[state], "waiting")}
}

func deliveriesTable(v *View) (*Table, error) {
	list, err := v.s.o.Operator.ListDeliveries(v.R.Context(), v.actor(), &operator.DeliveryQuery{
		Token: v.Query("token"), Model: v.Query("model"), Since: v.Query("since"), Until: v.Query("until"),
		PageOf: operator.PageOf{After: v.Query("after")},
	})
	if err != nil {
		return nil, err
	}
	table := &Table{
		ID: "webhooks", Caption: "webhooks.caption", Empty: "webhooks.empty", CSV: true, Select: v.boxes("task"),
		Columns: columns("task.id", "task.state", "webhook.event", "task.model", "task.token", "webhook.begun", "webhook.ended"),
	}
	names := tokenNames(v, list.Data, func(d tasks.ListedDelivery) string { return d.Token })
	for _, d := range list.Data {
		event := taskState(d.Event[strings.LastIndexByte(d.Event, '.')+1:])
		table.add(d.Task, Cell{Text: d.Task, Code: true, Link: v.To("tasks", d.Task)}, taskState(string(d.State)), event, d.Model,
			tokenCell(v, d.Token, names), d.Created, d.Closed)
	}
	if len(list.Data) > 0 {
		table.Next = v.next(list.After)
	}
	return table, nil
}

func ownTasks(v *View, limit int) (tasks.Page, error) {
	token, err := v.holder(limit)
	if err != nil {
		return tasks.Page{}, err
	}
	query := tasks.ListQuery{TokenID: token.ID, Limit: limit}
	if limit == ownPage {
		query.After, query.Kind = v.Query("after"), activities.Kind(v.Query("kind"))
	}
	return v.s.o.Account.Tasks.List(v.R.Context(), query)
}

func ownTasksTable(v *View, page tasks.Page) *Table {
	table := &Table{
		ID: "tasks", Caption: "tasks.own", Empty: "tasks.own.empty", CSV: true,
		Columns: columns(
			"task.id", "task.state", "#task.progress", "task.operation", "task.model", "#task.tokens", "#task.cost",
			"task.created", "task.ended",
		),
	}
	for _, task := range page.Tasks {
		state := taskState(string(task.State))
		if task.Failure != nil {
			state.Note = codeNote(string(task.State), task.Failure.Code)
		}
		progress, call := Cell{Text: v.T("task.percent", "n", task.Progress)}, task.CallDetails()
		if call == nil {
			call = new(tasks.CallDetails)
		} else if progress = (Cell{}); !task.Ended() {
			progress.Word = "task.stage." + string(call.Stage)
		}
		table.add(task.ID, Cell{Text: task.ID, Code: true, Link: v.To("tasks", task.ID)}, state, progress, operationCell(task.Operation),
			task.Request.Named(), known(call.Usage.Tokens()), v.Money(call.Cost), task.CreatedAt, task.CompletedAt)
	}
	if page.More {
		table.Next = v.With("after", page.Last)
	}
	return table
}

func endTask(v *View, do, id string) error {
	ctx, by, name := v.R.Context(), v.actor(), operator.TaskName{ID: id}
	var err error
	switch do {
	case "cancel":
		_, err = v.s.o.Operator.CancelTask(ctx, by, &operator.EndTask{TaskName: name})
	case "fail":
		_, err = v.s.o.Operator.FailTask(ctx, by, &operator.FailTask{
			EndTask: operator.EndTask{TaskName: name},
			Body:    operator.TaskFailure{Reason: v.Form.Value("reason")},
		})
	case "retry-archive":
		_, err = v.s.o.Operator.RetryArchive(ctx, by, &name)
	case "redeliver":
		_, err = v.s.o.Operator.Redeliver(ctx, by, &operator.RedeliverTask{TaskName: name})
	}
	return err
}
