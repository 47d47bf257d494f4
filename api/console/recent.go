package console

import (
	"time"

	"modelrelay/api/console/chart"
	"modelrelay/api/logs"
	"modelrelay/api/operator"
	"modelrelay/providers/pricing"
	"modelrelay/storage/ledger"
)

// recentMost is the number of rows of a page's last calls, tasks and entries.
const recentMost = 5

// recent is a part of a page with the last rows of a list or a chart, or the reason why it is absent.
type recent struct {
	Word  string // key of the heading
	Table *Table
	Chart *chart.Series
	// Away is why it is unknown. Link is the address of the whole list, "" for none.
	Away, Link string
}

// with returns the part with its table, or with the reason of the failed read. drop is a column that the page does not need.
func (r recent) with(v *View, table *Table, drop string, err error) (recent, error) {
	if err != nil {
		r.Away, err = v.away(err)
		return r, err
	}
	r.Table = table
	r.Table.CSV = false
	r.Table.drop(drop)
	return r, nil
}

// recentCalls returns the last calls that a filter selects.
func recentCalls(v *View, word string, query logs.Query) (recent, error) {
	r, drop := recent{Word: word, Link: v.To("calls")}, ""
	if query.Token != "" { // it is the token's page
		r.Link, drop = v.List("calls", "token", query.Token), "call.token"
	}
	query.Limit = recentMost
	list, err := readCalls(v, query)
	return r.with(v, callsTable(v, list.Data), drop, err)
}

func recentTasks(v *View, token operator.Token) (recent, error) {
	list, err := v.s.o.Operator.ListTasks(v.R.Context(), v.actor(),
		&operator.TaskQuery{Token: token.ID, PageOf: operator.PageOf{Limit: recentMost}})
	r := recent{Word: "token.tasks", Link: v.List("tasks", "token", token.ID)}
	return r.with(v, tasksTable(v, list.Data, nil), "task.token", err)
}

func recentOwnTasks(v *View) (recent, error) {
	page, err := ownTasks(v, recentMost)
	page.More = false
	return recent{Word: "home.own.last", Link: v.To("tasks")}.with(v, ownTasksTable(v, page), "", err)
}

func recentAudit(v *View, token operator.Token) (recent, error) {
	list, err := v.s.o.Operator.ListAudit(v.R.Context(), v.actor(),
		&operator.AuditQuery{Subject: token.ID, PageOf: operator.PageOf{Limit: recentMost}})
	r := recent{Word: "token.audit", Link: v.List("audit", "subject", token.ID)}
	return r.with(v, auditTable(v, list.Data), "", err)
}

// recentUsage is the usage of a token in thirty days, with a bar for each day.
func recentUsage(v *View, token operator.Token) (r recent, err error) {
	r.Word = "token.month"
	list, err := v.s.o.Operator.Usage(v.R.Context(), v.actor(), &operator.UsageQuery{Token: token.ID, By: []string{ledger.ByDay}})
	if err != nil {
		r.Away, err = v.away(err)
		return r, err
	}
	var calls, tasks int64
	var cost pricing.Money
	days := usageChart("month", r.Word, list, func(row operator.UsageRow) chart.Point {
		calls, tasks, cost = calls+row.Requests, tasks+row.Tasks, cost+row.Cost
		return chart.Point{Value: float64(row.Requests + row.Tasks), Bad: float64(row.Failed), Text: number(row.Requests + row.Tasks)}
	})
	days.Figure = v.T("token.month.sum", "calls", number(calls), "tasks", number(tasks), "cost", v.Money(cost))
	r.Chart = &days
	return r, nil
}

func usageChart(id, word string, list operator.UsageList, point func(operator.UsageRow) chart.Point) chart.Series {
	c := chart.Series{ID: id, Word: word, Step: 24 * time.Hour}
	c.From, _ = time.Parse(time.DateOnly, list.From) // from the service, as all days
	last, _ := time.Parse(time.DateOnly, list.To)
	c.To = last.Add(c.Step)
	for _, row := range list.Data {
		p := point(row)
		p.At, _ = time.Parse(time.DateOnly, row.Day)
		c.Points = append(c.Points, p)
	}
	return c
}
