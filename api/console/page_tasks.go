package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"modelrelay/api/console/inprocess"
)

// mostChosen is how many tasks one form works on.
const mostChosen = 100

// listedTask is a task in the operators' list.
type listedTask struct {
	ID      string     `json:"id"`
	Token   string     `json:"token"`
	Model   string     `json:"model"`
	Channel string     `json:"channel"`
	Phase   string     `json:"phase"`
	Created time.Time  `json:"created"`
	Closed  time.Time  `json:"closed"`
	Due     *time.Time `json:"due"`
	Code    string     `json:"code"`
}

// taskCounts is how many tasks there are.
type taskCounts struct {
	Queued      int64     `json:"queued"`
	Submitting  int64     `json:"submitting"`
	Polling     int64     `json:"polling"`
	Archiving   int64     `json:"archiving"`
	Stuck       int64     `json:"stuck"`
	Failed      int64     `json:"failed"`
	Undelivered int64     `json:"undelivered"`
	Workers     int64     `json:"workers"`
	CountedAt   time.Time `json:"counted_at"`
}

// taskTab is a way to look at the tasks, with how many there are; "" where that is not known.
type taskTab struct {
	Word, Address, Count string
	Here                 bool
}

type tasksData struct {
	Table  *Table // nil where the engine is away
	Tabs   []taskTab
	Counts *taskCounts
	States []string
	// Ask is what is to be done with the chosen tasks, before it is done. Results tell what came of it.
	Ask     *taskQuestion
	Results *Table
	Holder  bool
	Webhook bool
}

// taskQuestion asks before something is done to several tasks.
type taskQuestion struct {
	Do  string
	IDs []string
}

// Count is how many tasks it is about.
func (q taskQuestion) Count() string { return strconv.Itoa(len(q.IDs)) }

// tasksPage lists tasks: of all tokens for operators, their own for holders.
func tasksPage() page {
	ask := func(do string) act {
		return act{roles: []Role{Operator}, do: func(v *View) (string, any, error) { return workOnTasks(v, do) }}
	}
	return page{
		name: "tasks", path: "/tasks", roles: everybody(), nav: "tasks", key: "t",
		show: func(v *View) (any, error) { return showTasks(v) },
		csv:  func(_ *View, data any) (*Table, error) { return data.(*tasksData).Table, nil }, //nolint:forcetypeassert // of show
		acts: map[string]act{"cancel": ask("cancel"), "fail": ask("fail"), "redeliver": ask("redeliver")},
	}
}

func showTasks(v *View) (*tasksData, error) {
	if v.Who.Role == Holder {
		return showOwnTasks(v)
	}
	data := &tasksData{States: []string{"queued", "submitting", "polling", "archiving", "completed", "failed"}, Webhook: v.Query("view") == "webhooks"}
	// An engine that is away has both wait: they wait at once. The counts are in no live region.
	var counting sync.WaitGroup
	if !v.Refreshes() {
		counting.Go(func() {
			var counts taskCounts
			if v.Get("/admin/tasks/counts", nil, &counts) == nil { // the list stands without them
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
		v.Away = problem // what was typed into the filters stands
		return data, nil
	}
	if err != nil {
		return nil, err
	}
	data.Table = table
	return data, nil
}

// tasksOf are the tasks that the address asks for.
func tasksOf(v *View) (*Table, error) {
	q := url.Values{"limit": {"50"}}
	for _, name := range []string{"token", "model", "channel", "state", "since", "until", "after"} {
		if value := v.Query(name); value != "" {
			q.Set(name, value)
		}
	}
	switch v.Query("view") {
	case "stuck":
		q.Set("stuck", "true")
	case "failed":
		q.Set("state", "failed")
	}
	var list struct {
		Data  []listedTask `json:"data"`
		After *string      `json:"after"`
	}
	if err := v.Get("/admin/tasks", q, &list); err != nil {
		return nil, err
	}
	tokens := make([]string, len(list.Data))
	for i, task := range list.Data {
		tokens[i] = task.Token
	}
	table := tasksTable(v, list.Data, tokenNames(v, tokens))
	table.Empty = emptyTasks(v.Query("view"))
	if v.May() {
		table.Select = "task"
	}
	if list.After != nil && len(list.Data) > 0 {
		table.Next = v.With("after", *list.After)
	}
	return table, nil
}

// emptyTasks is the word for a view without any task.
func emptyTasks(view string) string {
	switch view {
	case "stuck", "failed":
		return "tasks.empty." + view
	}
	return "tasks.empty"
}

// tasksTable lists tasks for operators, with the names of their tokens.
func tasksTable(v *View, tasks []listedTask, names map[string]string) *Table {
	table := &Table{
		ID: "tasks", Caption: "tasks.caption", Empty: "tasks.empty", CSV: true,
		Columns: []Column{
			{Word: "task.id"}, {Word: "task.state"}, {Word: "task.model"}, {Word: "task.token"}, {Word: "task.channel"}, {Word: "task.created"}, {Word: "task.due"}, {Word: "task.ended"},
		},
	}
	for _, task := range tasks {
		table.Rows = append(table.Rows, taskRow(v, task, names))
	}
	return table
}

func taskTabs(v *View, counts *taskCounts) []taskTab {
	tabs := []taskTab{{Word: "tasks.all"}, {Word: "tasks.stuck"}, {Word: "tasks.failed"}, {Word: "tasks.webhooks"}}
	views := []string{"", "stuck", "failed", "webhooks"}
	for i := range tabs {
		tabs[i].Address, tabs[i].Here = v.With("view", views[i], "state", ""), v.Query("view") == views[i]
	}
	if counts != nil {
		// Nobody counts all tasks; those that have not ended stand below, by state.
		for i, n := range []int64{counts.Stuck, counts.Failed, counts.Undelivered} {
			tabs[i+1].Count = number(n)
		}
	}
	return tabs
}

func taskRow(v *View, t listedTask, names map[string]string) Row {
	state := taskState(t.Phase)
	if t.Code != "" {
		state.Note = t.Code
	}
	due := Cell{}
	if t.Due != nil && t.Closed.IsZero() {
		due = When(*t.Due)
	}
	if t.Due != nil && t.Due.Before(time.Now()) {
		state.Mark, state.Note = "hand", v.T("task.overdue")
	}
	return Row{ID: t.ID, Cells: []Cell{
		{Text: t.ID, Code: true, Link: v.To("tasks", t.ID)},
		state,
		{Text: t.Model},
		tokenCell(v, t.Token, names),
		{Text: t.Channel, Link: linkOf(v, "channels", t.Channel)},
		When(t.Created), due, When(t.Closed),
	}}
}

// taskState is a task's state, in the operators' words or in its client's: a mark and a word.
func taskState(state string) Cell {
	marks := map[string]string{
		"completed": "done", "failed": "failed", "polling": "running", "in_progress": "running", "archiving": "running", "submitting": "running",
		"delivering": "running", "delivered": "done", "undelivered": "failed",
	}
	return Cell{Word: "task.state." + cmp.Or(state, "queued"), Mark: cmp.Or(marks[state], "waiting")}
}

// deliveriesTable lists the webhooks that were given up.
func deliveriesTable(v *View) (*Table, error) {
	q := url.Values{"limit": {"50"}}
	for _, name := range []string{"token", "model", "since", "until", "after"} {
		if value := v.Query(name); value != "" {
			q.Set(name, value)
		}
	}
	var list struct {
		Data []struct {
			Task    string    `json:"task"`
			Event   string    `json:"event"`
			Token   string    `json:"token"`
			Model   string    `json:"model"`
			State   string    `json:"state"`
			Created time.Time `json:"created"`
			Closed  time.Time `json:"closed"`
		} `json:"data"`
		After *string `json:"after"`
	}
	if err := v.Get("/admin/deliveries", q, &list); err != nil {
		return nil, err
	}
	table := &Table{
		ID: "webhooks", Caption: "webhooks.caption", Empty: "webhooks.empty", CSV: true,
		Columns: []Column{
			{Word: "task.id"}, {Word: "task.state"}, {Word: "webhook.event"}, {Word: "task.model"}, {Word: "task.token"}, {Word: "webhook.begun"}, {Word: "webhook.ended"},
		},
	}
	if v.May() {
		table.Select = "task"
	}
	tokens := make([]string, len(list.Data))
	for i, d := range list.Data {
		tokens[i] = d.Token
	}
	names := tokenNames(v, tokens)
	for _, d := range list.Data {
		table.Rows = append(table.Rows, Row{ID: d.Task, Cells: []Cell{
			{Text: d.Task, Code: true, Link: v.To("tasks", d.Task)},
			taskState(d.State), taskState(strings.TrimPrefix(d.Event, "video.")),
			{Text: d.Model},
			tokenCell(v, d.Token, names),
			When(d.Created), When(d.Closed),
		}})
	}
	if list.After != nil && len(list.Data) > 0 {
		table.Next = v.With("after", *list.After)
	}
	return table, nil
}

// video is a task as its client reads it.
type video struct {
	ID        string `json:"id"`
	Model     string `json:"model"`
	Status    string `json:"status"`
	Progress  int    `json:"progress"`
	Created   int64  `json:"created_at"`
	Completed *int64 `json:"completed_at"`
	Expires   *int64 `json:"expires_at"`
	Seconds   string `json:"seconds"`
	Size      string `json:"size"`
	Prompt    string `json:"prompt"`
	Position  int    `json:"queue_position"`
	Error     *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// showOwnTasks lists a holder's.
func showOwnTasks(v *View) (*tasksData, error) {
	q := url.Values{"limit": {"50"}}
	if after := v.Query("after"); after != "" {
		q.Set("after", after)
	}
	var list ownTasks
	if err := v.Get("/v1/videos", q, &list); err != nil {
		return nil, err
	}
	return &tasksData{Table: ownTasksTable(v, list), Holder: true}, nil
}

// ownTasks are a token's own tasks as it reads them.
type ownTasks struct {
	Data    []video `json:"data"`
	HasMore bool    `json:"has_more"`
}

func ownTasksTable(v *View, list ownTasks) *Table {
	table := &Table{
		ID: "tasks", Caption: "tasks.own", Empty: "tasks.own.empty", CSV: true,
		Columns: []Column{{Word: "task.id"}, {Word: "task.state"}, {Word: "task.progress", Number: true}, {Word: "task.model"}, {Word: "task.created"}, {Word: "task.ended"}},
	}
	for _, one := range list.Data {
		state := taskState(one.Status)
		if one.Error != nil {
			state.Note = one.Error.Code
		}
		table.Rows = append(table.Rows, Row{ID: one.ID, Cells: []Cell{
			{Text: one.ID, Code: true, Link: v.To("tasks", one.ID)},
			state,
			{Text: v.T("task.percent", "n", strconv.Itoa(one.Progress))},
			{Text: one.Model},
			When(time.Unix(one.Created, 0)), When(moment(one.Completed)),
		}})
	}
	if list.HasMore && len(list.Data) > 0 {
		table.Next = v.With("after", list.Data[len(list.Data)-1].ID)
	}
	return table
}

// moment is a time in Unix seconds; the zero time of nil.
func moment(seconds *int64) time.Time {
	if seconds == nil {
		return time.Time{}
	}
	return time.Unix(*seconds, 0)
}

// workOnTasks does something to the chosen tasks, once that is confirmed, and tells of each what came of it.
func workOnTasks(v *View, do string) (string, any, error) {
	ids := slices.Compact(slices.Sorted(slices.Values(v.Form.values["task"])))
	switch {
	case len(ids) == 0:
		return "", nil, &inprocess.Problem{Status: http.StatusBadRequest, Message: v.T("tasks.none")}
	case len(ids) > mostChosen:
		return "", nil, &inprocess.Problem{Status: http.StatusBadRequest, Message: v.T("tasks.many", "n", strconv.Itoa(mostChosen))}
	}
	data, err := showTasks(v)
	if err != nil {
		return "", nil, err
	}
	if v.Form.Value("sure") == "" {
		data.Ask = &taskQuestion{Do: do, IDs: ids}
		if data.Table != nil {
			data.Table.Chosen = ids
		}
		return "", data, nil
	}
	var body any
	if do == "fail" {
		body = map[string]string{"reason": v.Form.Value("reason")}
	}
	data.Results = &Table{ID: "results", Caption: "tasks.results", Columns: []Column{{Word: "task.id"}, {Word: "tasks.result"}}}
	var away error // what is away is not waited for by each of a hundred
	for _, id := range ids {
		result, err := Cell{Word: "tasks.result.ok", Mark: "done"}, away
		if err == nil {
			err = v.Do(http.MethodPost, "/admin/tasks/"+inprocess.Segment(id)+"/"+do, body, nil)
		}
		if problem := inprocess.AsProblem(err); problem != nil && problem.Away() {
			away = err
		}
		if err != nil {
			result = Cell{Text: err.Error(), Mark: "failed"}
		}
		data.Results.Rows = append(data.Results.Rows, Row{ID: id, Cells: []Cell{{Text: id, Code: true, Link: v.To("tasks", id)}, result}})
	}
	if fresh, err := showTasks(v); err == nil { // as they are now
		data.Table, data.Counts, data.Tabs = fresh.Table, fresh.Counts, fresh.Tabs
	}
	return "", data, nil
}
