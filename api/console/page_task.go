package console

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"modelrelay/api/console/inprocess"
)

// taskOutput is one video of a task, where the page plays it from, and its pictures.
type taskOutput struct {
	Index    int
	Kind     string `json:"content_type"`
	Size     int64  `json:"size"`
	SHA256   string `json:"sha256"`
	Variants []struct {
		Name string `json:"name"`
	} `json:"variants"`
}

// taskStep is an activity of a task that has ended.
type taskStep struct {
	Name    string    `json:"name"`
	Summary string    `json:"summary"`
	At      time.Time `json:"at"`
	Ended   time.Time `json:"ended"`
	Tries   int       `json:"tries"`
	Fault   string    `json:"fault"`
}

// taskAttempt is one channel and one submit.
type taskAttempt struct {
	Number     int `json:"number"`
	Assignment struct {
		Channel string `json:"channel"`
		Vendor  string `json:"vendor"`
		Key     string `json:"key"`
		Model   string `json:"model"`
	} `json:"assignment"`
	At     time.Time       `json:"at"`
	Job    string          `json:"job"`
	Ticket json.RawMessage `json:"ticket"`
	Fault  *struct {
		Kind    string `json:"kind"`
		Message string `json:"message"`
	} `json:"fault"`
}

// taskWait is an activity under way.
type taskWait struct {
	Name      string          `json:"name"`
	State     string          `json:"state"`
	Tries     int             `json:"tries"`
	Next      time.Time       `json:"next"`
	Heartbeat json.RawMessage `json:"heartbeat"`
	Fault     string          `json:"fault"`
}

// taskHook is the telling of a task's end to a webhook.
type taskHook struct {
	State  string `json:"state"`
	Result struct {
		Host   string    `json:"host"`
		Status int       `json:"status"`
		Tries  int       `json:"tries"`
		Reason string    `json:"reason"`
		Next   time.Time `json:"next"`
	} `json:"result"`
}

// taskStory is all that an operator is told of a task.
type taskStory struct {
	listedTask
	Path     string          `json:"path"`
	State    string          `json:"state"`
	Progress int             `json:"progress"`
	Failure  string          `json:"failure"`
	Expires  time.Time       `json:"expires"`
	Price    string          `json:"vendor_price"`
	Charge   *float64        `json:"charge"`
	Request  json.RawMessage `json:"request"`
	Attempts []taskAttempt   `json:"attempts"`
	Steps    []taskStep      `json:"steps"`
	Waiting  []taskWait      `json:"waiting"`
	Outputs  []taskOutput    `json:"outputs"`
	Webhooks []taskHook      `json:"webhooks"`
}

type taskData struct {
	ID, Model, State, Prompt, Failure, Code string
	Cell                                    Cell
	Progress, Position                      int
	Created, Ended, Expires                 time.Time
	Outputs                                 []taskOutput

	// Kept is the act of a form whose answer this is while the task cannot be read: only what was typed is there. It is fail or remix, ""
	// for the whole page.
	Kept string

	// Told is what operators are told; nil for holders.
	Told *taskTold
}

// taskTold is a task's story as the page shows it.
type taskTold struct {
	Story                         *taskStory
	Token                         Cell
	Temporal                      string // address in the Temporal UI, "" where that is not known
	Request                       string // indented
	Steps, Attempts, Waits, Hooks *Table
}

// Running tells that the task has not ended.
func (d *taskData) Running() bool { return d.State != "completed" && d.State != "failed" }

// Archivable tells that the copy of its video may be tried again.
func (d *taskData) Archivable() bool { return d.Code == "archive_failed" }

// taskPage shows one task: the video, how far it is, and how it got there.
func taskPage() page {
	post := func(verb string) act {
		return act{roles: []Role{Operator}, do: func(v *View) (string, any, error) {
			var body any
			if verb == "fail" {
				body = map[string]string{"reason": v.Form.Value("reason")}
			}
			id := v.R.PathValue("id")
			err := v.Do(http.MethodPost, "/admin/tasks/"+inprocess.Segment(id)+"/"+verb, body, nil)
			return Root + "/tasks/" + inprocess.Segment(id) + "?done=task-" + verb, nil, err
		}}
	}
	own := []Role{Holder}
	return page{
		name: "task", path: "/tasks/{id}", roles: everybody(), under: "tasks", show: showTask,
		acts: map[string]act{
			"cancel": {roles: []Role{Operator, Holder}, do: func(v *View) (string, any, error) {
				if v.Who.Role == Operator {
					return post("cancel").do(v)
				}
				id := v.R.PathValue("id")
				return Root + "/tasks/" + inprocess.Segment(id) + "?done=task-cancel", nil, v.Do(http.MethodPost, "/v1/videos/"+inprocess.Segment(id)+"/cancel", nil, nil)
			}},
			"fail": post("fail"), "retry-archive": post("retry-archive"), "redeliver": post("redeliver"),
			"delete": {roles: own, do: func(v *View) (string, any, error) {
				return Root + "/tasks?done=task-delete", nil, v.Do(http.MethodDelete, "/v1/videos/"+inprocess.Segment(v.R.PathValue("id")), nil, nil)
			}},
			"remix": {roles: own, do: func(v *View) (string, any, error) {
				var made video
				err := v.Do(http.MethodPost, "/v1/videos/"+inprocess.Segment(v.R.PathValue("id"))+"/remix", map[string]string{"prompt": v.Form.Value("prompt")}, &made)
				return Root + "/tasks/" + inprocess.Segment(made.ID), nil, err
			}},
		},
	}
}

func showTask(v *View) (any, error) {
	id := v.R.PathValue("id")
	if v.Who.Role == Holder {
		data, err := showOwnTask(v, id)
		return keepTyped(v, id, data, err)
	}
	data, err := showStory(v, id)
	return keepTyped(v, id, data, err)
}

// keepTyped leaves what was typed on the page that comes back where neither the form could be answered nor the task be read.
func keepTyped(v *View, id string, data *taskData, err error) (*taskData, error) {
	act := v.Form.Value("do")
	if problem := inprocess.AsProblem(err); problem == nil || !problem.Away() || act != "fail" && act != "remix" {
		return data, err
	}
	return &taskData{ID: id, Kept: act}, nil
}

// showStory is a task as operators see it.
func showStory(v *View, id string) (*taskData, error) {
	story := new(taskStory)
	if err := v.Get("/admin/tasks/"+inprocess.Segment(id), nil, story); err != nil {
		return nil, err
	}
	data := &taskData{
		ID: id, Model: story.Model, State: story.State, Failure: story.Failure, Code: story.Code, Progress: story.Progress, Created: story.Created,
		Ended: story.Closed, Expires: story.Expires, Outputs: story.Outputs, Told: &taskTold{Story: story}, Cell: taskState(story.Phase),
	}
	if !data.Running() {
		data.Cell = taskState(story.State)
	}
	var request struct {
		Prompt string `json:"prompt"`
	}
	_ = json.Unmarshal(story.Request, &request) // a request without a prompt has none
	data.Prompt = request.Prompt
	var indented bytes.Buffer
	if json.Indent(&indented, story.Request, "", "  ") == nil {
		data.Told.Request = indented.String()
	}
	for _, wait := range story.Waiting {
		var line struct {
			Position int `json:"position"`
		}
		if json.Unmarshal(wait.Heartbeat, &line) == nil && line.Position > 0 {
			data.Position = line.Position
		}
	}
	for i := range data.Outputs {
		data.Outputs[i].Index = i
	}
	if v.s.o.TemporalURL != "" && story.Path != "" {
		data.Told.Temporal = v.s.o.TemporalURL + story.Path
	}
	data.Told.Token = tokenCell(v, story.Token, tokenNames(v, []string{story.Token}))
	data.Told.tables()
	return data, nil
}

// tables makes what a story has several of.
func (d *taskTold) tables() {
	d.Steps = &Table{ID: "steps", Caption: "task.steps", Empty: "task.steps.empty", Columns: []Column{
		{Word: "step.name"}, {Word: "step.at"}, {Word: "step.took", Number: true}, {Word: "step.tries", Number: true}, {Word: "step.fault"},
	}}
	var whole time.Duration
	for _, step := range d.Story.Steps {
		whole = max(whole, step.Ended.Sub(step.At))
	}
	for _, step := range d.Story.Steps {
		took := Cell{}
		if !step.Ended.IsZero() {
			lasted := step.Ended.Sub(step.At)
			took = Cell{Text: Lasted(float64(lasted.Microseconds()) / 1000), Bar: Share(lasted.Seconds(), whole.Seconds())}
		}
		d.Steps.Rows = append(d.Steps.Rows, Row{Cells: []Cell{{Text: step.Name, Note: step.Summary}, When(step.At), took, {Text: strconv.Itoa(step.Tries)}, {Text: step.Fault}}})
	}
	d.Attempts = &Table{ID: "attempts", Caption: "task.attempts", Empty: "task.attempts.empty", Columns: []Column{
		{Word: "attempt.number"}, {Word: "task.channel"}, {Word: "attempt.upstream"}, {Word: "attempt.key"}, {Word: "attempt.ticket"}, {Word: "step.at"}, {Word: "step.fault"},
	}}
	for _, a := range d.Story.Attempts {
		fault := Cell{Word: "attempt.fine", Mark: "done"}
		if a.Fault != nil {
			fault = Cell{Text: a.Fault.Kind + ": " + a.Fault.Message, Mark: "failed"}
		}
		d.Attempts.Rows = append(d.Attempts.Rows, Row{Cells: []Cell{
			{Text: strconv.Itoa(a.Number)},
			{Text: a.Assignment.Channel, Note: a.Assignment.Vendor},
			{Text: a.Assignment.Model},
			{Text: a.Assignment.Key, Code: true},
			{Text: a.Job, Code: true},
			When(a.At), fault,
		}})
	}
	d.Waits = &Table{ID: "waits", Caption: "task.waits", Columns: []Column{{Word: "step.name"}, {Word: "task.state"}, {Word: "step.tries", Number: true}, {Word: "step.next"}, {Word: "step.fault"}}}
	for _, wait := range d.Story.Waiting {
		d.Waits.Rows = append(d.Waits.Rows, Row{Cells: []Cell{{Text: wait.Name}, waitState(wait.State), {Text: strconv.Itoa(wait.Tries)}, When(wait.Next), {Text: wait.Fault}}})
	}
	d.Hooks = &Table{ID: "hooks", Caption: "task.hooks", Columns: []Column{{Word: "task.state"}, {Word: "hook.host"}, {Word: "hook.status"}, {Word: "step.tries", Number: true}, {Word: "step.next"}, {Word: "step.fault"}}}
	for _, hook := range d.Story.Webhooks {
		status := Cell{}
		if hook.Result.Status > 0 {
			status.Text = strconv.Itoa(hook.Result.Status)
		}
		d.Hooks.Rows = append(d.Hooks.Rows, Row{Cells: []Cell{
			taskState(hook.State), {Text: hook.Result.Host}, status, {Text: strconv.Itoa(hook.Result.Tries)}, When(hook.Result.Next), {Text: hook.Result.Reason},
		}})
	}
}

// waitState is how it stands with an activity under way, in Temporal's words where the console has none.
func waitState(state string) Cell {
	switch state {
	case "scheduled":
		return Cell{Word: "task.wait.scheduled", Mark: "waiting"}
	case "started":
		return Cell{Word: "task.wait.started", Mark: "running"}
	}
	return Cell{Text: state, Mark: "running"}
}

// showOwnTask is a task of a holder.
func showOwnTask(v *View, id string) (*taskData, error) {
	var one video
	if err := v.Get("/v1/videos/"+inprocess.Segment(id), url.Values{}, &one); err != nil {
		return nil, err
	}
	data := &taskData{
		ID: id, Model: one.Model, State: one.Status, Prompt: one.Prompt, Cell: taskState(one.Status), Progress: one.Progress, Position: one.Position,
		Created: time.Unix(one.Created, 0), Ended: moment(one.Completed), Expires: moment(one.Expires),
	}
	if one.Error != nil {
		data.Code, data.Failure = one.Error.Code, one.Error.Message
	}
	if one.Status == "completed" {
		data.Outputs = []taskOutput{{}}
	}
	return data, nil
}
