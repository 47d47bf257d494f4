package console

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"time"

	"modelrelay/activities"
	"modelrelay/api/console/inprocess"
	"modelrelay/api/edge"
	"modelrelay/api/operator"
	"modelrelay/providers"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

type taskData struct {
	// Details are all data of the task for operators; for holders, only those that they may read.
	tasks.Details

	Cell   Cell
	Prompt string
	// Answer is the answer of a call; nil while there is none.
	Answer *callAnswer
	// Typed is the act, fail or remix, of a form that is shown alone with its typed values, because the task cannot be read; "" for the whole
	// page.
	Typed string
	// ForOperator has the data for operators; nil for holders.
	ForOperator *operatorTask
}

type operatorTask struct {
	TokenCell                      Cell
	Temporal                       string // address in the Temporal UI, "" if unknown
	RequestText                    string // indented JSON
	Done, Tried, Waits, Deliveries *Table
}

// Running reports whether the task has not ended.
func (d *taskData) Running() bool { return !d.State.Ended() }

// Archivable reports whether the archiving of the video may be retried.
func (d *taskData) Archivable() bool { return d.Code == "archive_failed" && d.Call == nil }

// taskPage shows one task: the video, its progress, and its steps.
func taskPage() page {
	end := func(do string) act {
		return act{roles: []edge.Role{Operator}, do: func(v *View) (string, any, error) {
			id := v.R.PathValue("id")
			return pathOf("tasks", id) + "?done=task-" + do, nil, endTask(v, do, id)
		}}
	}
	own := []edge.Role{Holder}
	return page{
		name: "task", path: "/tasks/{id}", roles: allRoles(), under: "tasks", scripts: []string{"task.js"}, show: showTask,
		acts: map[string]act{
			"cancel": {roles: []edge.Role{Operator, Holder}, do: func(v *View) (string, any, error) {
				if v.User.Role == Operator {
					return end("cancel").do(v)
				}
				id := v.R.PathValue("id")
				token, err := v.holder(1)
				if err == nil {
					_, err = v.s.o.Account.Tasks.Cancel(v.R.Context(), id, token.ID)
				}
				return pathOf("tasks", id) + "?done=task-cancel", nil, err
			}},
			"fail": end("fail"), "retry-archive": end("retry-archive"), "redeliver": end("redeliver"),
			"delete": {roles: own, do: func(v *View) (string, any, error) {
				token, err := v.holder(1)
				if err == nil {
					err = v.s.o.Account.Tasks.Delete(v.R.Context(), v.R.PathValue("id"), token.ID)
				}
				return Root + "/tasks?done=task-delete", nil, err
			}},
			"remix": {roles: own, do: remix},
		},
	}
}

// remix creates a variation of a holder's video. It uses the client API, which limits and charges creates.
func remix(v *View) (string, any, error) {
	sent, _ := json.Marshal(map[string]string{"prompt": v.Form.Value("prompt")}) // a text always encodes
	answer, err := v.call(v.User, "/v1/videos/"+inprocess.Segment(v.R.PathValue("id"))+"/remix", bytes.NewReader(sent))
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	var made struct {
		ID    string
		Error struct{ Message, Param string }
	}
	err = json.NewDecoder(answer.Body).Decode(&made)
	if answer.StatusCode >= http.StatusBadRequest {
		return "", nil, &Problem{
			Status: answer.StatusCode, Message: cmp.Or(made.Error.Message, http.StatusText(answer.StatusCode)), Param: made.Error.Param,
			RequestID: answer.Header.Get("X-Request-Id"),
		}
	}
	return pathOf("tasks", made.ID), nil, err
}

// showTask reads a task. If the form was not performed and the task cannot be read either, the page shows the typed values.
func showTask(v *View) (any, error) {
	id, read := v.R.PathValue("id"), showStory
	if v.User.Role == Holder {
		read = showOwnTask
	}
	data, err := read(v, id)
	if err == nil && data.Call != nil {
		if data.State != workflows.Cancelled { // a cancelled call has events, but no result
			data.Answer = readAnswer(v, id, data.Outputs)
		}
		data.Outputs = nil
	}
	do := v.Form.Value("do")
	if problem := v.problem(err); problem != nil && problem.Away() && (do == "fail" || do == "remix") {
		data = &taskData{Typed: do}
		data.ID = id
		return data, nil
	}
	return data, err
}

func showStory(v *View, id string) (*taskData, error) {
	story, err := v.s.o.Operator.Task(v.R.Context(), v.actor(), &operator.TaskName{ID: id})
	if err != nil {
		return nil, err
	}
	data := &taskData{Details: story, Cell: taskState(string(story.Phase)), ForOperator: &operatorTask{
		TokenCell: tokenCell(v, story.Token, tokenNames(v, []tasks.Details{story}, func(d tasks.Details) string { return d.Token })),
	}}
	if story.State.Ended() || story.Call != nil {
		data.Cell = taskState(string(story.State))
	}
	if request, ok := story.Request.(providers.VideoRequest); ok {
		data.Prompt = request.Prompt
	}
	if story.Request != nil {
		indented, _ := json.MarshalIndent(story.Request, "", "  ") // it was decoded from JSON
		data.ForOperator.RequestText = string(indented)
	}
	if v.s.o.TemporalURL != "" && story.Path != "" {
		data.ForOperator.Temporal = v.s.o.TemporalURL + story.Path
	}
	data.ForOperator.tables(story)
	return data, nil
}

func (d *operatorTask) tables(story tasks.Details) {
	d.Done = &Table{ID: "steps", Caption: "task.steps", Empty: "task.steps.empty", Columns: columns(
		"step.name", "step.at", "#step.took", "#step.tries", "step.fault",
	)}
	var longest time.Duration
	for _, step := range story.Steps {
		longest = max(longest, step.Ended.Sub(step.At))
	}
	for _, step := range story.Steps {
		took := Cell{}
		if !step.Ended.IsZero() {
			lasted := step.Ended.Sub(step.At)
			took = Cell{Text: Lasted(float64(lasted.Microseconds()) / 1000), Bar: Share(lasted.Seconds(), longest.Seconds())}
		}
		d.Done.add("", Cell{Text: step.Name, Note: step.Summary}, step.At, took, known(int64(step.Tries)), step.Fault)
	}
	d.Tried = &Table{ID: "attempts", Caption: "task.attempts", Empty: "task.attempts.empty", Columns: columns(
		"attempt.number", "task.channel", "attempt.upstream", "attempt.key", "attempt.ticket", "step.at", "step.fault",
	)}
	for _, a := range story.Attempts {
		fault := Cell{Word: "attempt.fine", Mark: "done"}
		if a.Fault != nil {
			fault = Cell{Text: string(a.Fault.Kind) + ": " + a.Fault.Message, Mark: "failed"}
		}
		d.Tried.add("", a.Number, Cell{Text: a.Assignment.Channel, Note: a.Assignment.Vendor}, a.Assignment.Model,
			Cell{Text: a.Assignment.Key, Code: true}, Cell{Text: a.Job, Code: true}, a.At, fault)
	}
	d.Waits = &Table{
		ID: "waits", Caption: "task.waits",
		Columns: columns("step.name", "task.state", "#step.tries", "step.next", "step.fault"),
	}
	for _, wait := range story.Waiting {
		d.Waits.add("", wait.Name, waitState(wait.State), wait.Tries, wait.Next, wait.Fault)
	}
	d.Deliveries = &Table{ID: "hooks", Caption: "task.hooks", Columns: columns(
		"task.state", "hook.host", "hook.status", "#step.tries", "step.next", "step.fault",
	)}
	for _, hook := range story.Webhooks {
		var sent activities.Delivery
		_ = json.Unmarshal(hook.Result, &sent) // a delivery that has not begun has no result
		d.Deliveries.add("", taskState(hook.State), sent.Host, known(int64(sent.Status)), sent.Tries, sent.Next, sent.Reason)
	}
}

// waitState returns the state of a running activity: Temporal's word if the console has no text for it.
func waitState(state string) Cell {
	switch state {
	case "scheduled":
		return Cell{Word: "task.wait.scheduled", Mark: "waiting"}
	case "started":
		return Cell{Word: "task.wait.started", Mark: "running"}
	}
	return Cell{Text: state, Mark: "running"}
}

func showOwnTask(v *View, id string) (*taskData, error) {
	token, err := v.holder(1)
	if err != nil {
		return nil, err
	}
	task, err := v.s.o.Account.Tasks.Find(v.R.Context(), id, token.ID)
	if err != nil {
		return nil, err
	}
	data := &taskData{Prompt: task.Request.Prompt, Cell: taskState(string(task.State)), Details: tasks.Details{
		Listed: tasks.Listed{
			ID: id, Operation: task.Operation, Model: task.Request.Named(), Created: task.CreatedAt, Closed: task.CompletedAt,
		},
		State: task.State, Progress: task.Progress, Position: task.QueuePosition, Expires: task.ExpiresAt, Call: task.CallDetails(),
	}}
	if task.Failure != nil {
		data.Code, data.Failure = task.Failure.Code, task.Failure.Message
	}
	if data.Call != nil {
		data.Outputs = task.Outputs
	} else if task.State == workflows.Completed {
		data.Outputs = []activities.Output{{}}
	}
	return data, nil
}
