package console

import (
	"net/url"
	"strconv"
	"time"

	"modelrelay/api/console/chart"
	"modelrelay/api/console/inprocess"
	"modelrelay/api/operator"
)

// recentMost is how many rows the last calls, tasks and entries of a page have.
const recentMost = 5

// recent is what a page shows of something below its own: a table, or why there is none.
type recent struct {
	Word  string // its heading
	Table *Table
	// Away is why it cannot be told now; Link leads to all of it, "" where there is no page.
	Away, Link string
}

// readPart reads one part of a page that lives without it. A refusal stands in its place.
func readPart(v *View, r *recent, path string, query url.Values, into any) error {
	err := v.Get(path, query, into)
	if problem := inprocess.AsProblem(err); problem != nil {
		r.Away = problem.Message
		return nil //nolint:nilerr // the rest of the page stands
	}
	return err
}

// recentCalls are the last calls that a filter selects.
func recentCalls(v *View, word string, query url.Values) (recent, error) {
	r := recent{Word: word, Link: v.To("calls")}
	if token := query.Get("token"); token != "" {
		r.Link += "?" + url.Values{"token": {token}}.Encode()
	}
	query.Set("limit", strconv.Itoa(recentMost))
	var list callsList
	if err := readPart(v, &r, callsRoot(v), query, &list); err != nil || r.Away != "" {
		return r, err
	}
	r.Table = callsTable(v, list.Data)
	r.Table.CSV = false
	if query.Has("token") {
		r.Table.drop("call.token") // the page is the token's
	}
	return r, nil
}

// recentTasks are the last tasks of a token, for operators.
func recentTasks(v *View, token string) (recent, error) {
	r := recent{Word: "token.tasks", Link: v.To("tasks") + "?" + url.Values{"token": {token}}.Encode()}
	var list struct {
		Data []listedTask `json:"data"`
	}
	if err := readPart(v, &r, "/admin/tasks", url.Values{"token": {token}, "limit": {strconv.Itoa(recentMost)}}, &list); err != nil || r.Away != "" {
		return r, err
	}
	r.Table = tasksTable(v, list.Data, nil)
	r.Table.CSV = false
	r.Table.drop("task.token") // the page is the token's
	return r, nil
}

// recentOwnTasks are a holder's last tasks.
func recentOwnTasks(v *View) (recent, error) {
	r := recent{Word: "home.own.last", Link: v.To("tasks")}
	var list ownTasks
	if err := readPart(v, &r, "/v1/videos", url.Values{"limit": {strconv.Itoa(recentMost)}}, &list); err != nil || r.Away != "" {
		return r, err
	}
	r.Table = ownTasksTable(v, list)
	r.Table.CSV = false
	return r, nil
}

// recentAudit is what was changed of a subject.
func recentAudit(v *View, subject string) (r recent, err error) {
	r = recent{Word: "token.audit", Link: v.To("audit") + "?" + url.Values{"subject": {subject}}.Encode()}
	list, err := v.s.o.Operator.ListAudit(v.R.Context(), v.actor(), &operator.AuditQuery{Subject: subject, PageOf: operator.PageOf{Limit: recentMost}})
	if err != nil {
		r.Away, err = v.away(err)
		return r, err
	}
	r.Table = auditTable(v, list.Data)
	r.Table.CSV = false
	return r, nil
}

// month is what a token used in thirty days, a bar a day.
type month struct {
	Chart        chart.Series
	Calls, Tasks int64
	Cost         float64
	Away         string
}

func monthOf(v *View, token string) (month, error) {
	m := month{Chart: chart.Series{ID: "month", Word: "token.month", Step: 24 * time.Hour}}
	var list struct {
		Data []usageRow `json:"data"`
		From string     `json:"from"`
		To   string     `json:"to"`
	}
	err := v.Get("/admin/usage", url.Values{"token": {token}, "group_by": {"day"}}, &list)
	if problem := inprocess.AsProblem(err); problem != nil {
		m.Away = problem.Message
		return m, nil //nolint:nilerr // the rest of the page stands
	}
	if err != nil {
		return m, err
	}
	m.Chart.From, _ = time.Parse(time.DateOnly, list.From) // of the API
	if last, err := time.Parse(time.DateOnly, list.To); err == nil {
		m.Chart.To = last.Add(m.Chart.Step)
	}
	for _, row := range list.Data {
		m.Calls, m.Tasks, m.Cost = m.Calls+row.Requests, m.Tasks+row.Tasks, m.Cost+row.Cost
		day, err := time.Parse(time.DateOnly, row.Day)
		if err != nil {
			continue
		}
		m.Chart.Points = append(m.Chart.Points, chart.Point{
			At: day, Value: float64(row.Requests + row.Tasks), Bad: float64(row.Failed), Text: number(row.Requests + row.Tasks),
		})
	}
	m.Chart.Figure = v.T("token.month.sum", "calls", number(m.Calls), "tasks", number(m.Tasks), "cost", v.Money(m.Cost))
	return m, nil
}
