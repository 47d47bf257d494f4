package console

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"modelrelay/api/console/chart"
	"modelrelay/api/edge"
	"modelrelay/api/logs"
	"modelrelay/api/operator"
	"modelrelay/providers/health"
)

// startPage is Overview for operators, and Home for holders.
func startPage() page {
	verb := func(done string, do changeChannel) act {
		return act{roles: []edge.Role{Operator}, do: func(v *View) (string, any, error) {
			_, err := do(v.s.o.Operator, v.R.Context(), v.actor(), &operator.ChannelName{Name: v.Form.Value("channel")})
			return Root + "?done=" + done, nil, err
		}}
	}
	return page{
		name: "start", path: "", roles: allRoles(), nav: "start", key: "o",
		show: func(v *View) (any, error) {
			if v.IsOperatorOrViewer() {
				return showOverview(v)
			}
			return showHome(v)
		},
		acts: map[string]act{
			"wake":   verb("channel-woken", (*operator.Service).WakeChannel),
			"resume": verb("channel-resumed", (*operator.Service).ResumeChannel),
		},
	}
}

// Action is something that an operator has to fix.
type Action struct {
	Mark, Text, Link, Note string
	// Do is the act with which the page can fix it, for Channel; "" for none.
	Do, Channel string
}

type overviewData struct {
	// Mark and Health are the overall state in a sentence.
	Mark, Health string
	Actions      []Action
	// Faulty are channels with the last faults, the newest first.
	Faulty []health.ChannelState
	Charts []chart.Series
	By     *Table
	Tasks  *operator.TaskCounts
	// Last is the period, By the dimension of the table.
	Last, Group string
	At          time.Time
	// Away are the keys of the parts that could not be read.
	Away []string
}

const faultsMost = 5

func (d *overviewData) add(mark, text, link, note string) {
	d.Actions = append(d.Actions, Action{Mark: mark, Text: text, Link: link, Note: note})
}

// part reports whether a part of the page was read. If the read was refused, it records the part's key, and the page is shown without the
// part.
func (d *overviewData) part(v *View, word string, err error) (bool, error) {
	if err == nil {
		return true, nil
	}
	problem := v.problem(err)
	if problem == nil {
		return false, err
	}
	if !problem.Missing() {
		d.Away = append(d.Away, word)
	}
	return false, nil
}

func showOverview(v *View) (any, error) {
	d := &overviewData{Last: "1h", Group: "channel", At: time.Now()}
	if v.Query("last") == "24h" {
		d.Last = "24h"
	}
	if v.Query("by") == "model" {
		d.Group = "model"
	}
	for _, read := range []func(*View) error{d.readChannels, d.readServices, d.readTasks, d.readMoney, d.readTokens, d.readTraffic} {
		if err := read(v); err != nil {
			return nil, err
		}
	}
	if len(d.Away) > 0 {
		var parts []string
		for _, word := range d.Away {
			parts = append(parts, v.T(word))
		}
		d.Mark, d.Health = "failed", v.T("home.health.away", "what", strings.Join(parts, ", "))
	}
	return d, nil
}

// readChannels finds channels without calls, and summarizes the states of all.
func (d *overviewData) readChannels(v *View) error {
	sum, err := v.s.o.Operator.SummarizeChannels(v.R.Context(), v.actor())
	if ok, err := d.part(v, "home.part.channels", err); !ok {
		return err
	}
	for _, c := range sum.FirstOut {
		action := Action{Mark: "warning", Text: v.T("home.cooldown", "name", c.Name), Link: v.To("channels", c.Name), Do: "wake", Channel: c.Name}
		if now := c.Overall(); now.State == health.StatePaused {
			action.Mark, action.Text, action.Do = "paused", v.T("home.paused", "name", c.Name), "resume"
			if c.Pause != nil {
				action.Note = pauseNote(c.Pause)
			}
		} else {
			action.Note = v.T("home.cooldown.left", "left", Lasted(1000*now.CooldownLeft))
		}
		d.Actions = append(d.Actions, action)
	}
	if more := sum.Out - len(sum.FirstOut); more > 0 {
		d.add("warning", v.T("home.cooldown.more", "n", number(more)), v.To("channels"), "")
	}
	d.Faulty = slices.DeleteFunc(sum.Faulty, func(c health.ChannelState) bool { return d.At.Sub(c.Overall().LastFault.At) >= spans()[d.Last] })
	d.Faulty = d.Faulty[:min(len(d.Faulty), faultsMost)]
	switch {
	case sum.All == 0:
		d.Mark, d.Health = "warning", v.T("home.health.none")
	case sum.Out == sum.All:
		d.Mark, d.Health = "failed", v.T("home.health.bad")
	case sum.Out > 0:
		d.Mark, d.Health = "working", v.T("home.health.cooldown", "n", number(sum.Out), "all", number(sum.All))
	default:
		d.Mark, d.Health = "working", v.T("home.health.ok")
	}
	return nil
}

// readServices finds services that do not answer or are misconfigured.
func (d *overviewData) readServices(v *View) error {
	_, failed := v.s.o.Ready(v.R.Context())
	for _, service := range [][2]string{{"redis", "check.redis"}, {"temporal", "check.temporal"}, {"archive", "check.store"}} {
		if reason := failed[service[0]]; reason != "" {
			d.add("failed", v.T("home.service", "what", v.T(service[1])), v.To("setup"), reason)
		}
	}
	return nil
}

func (d *overviewData) readTasks(v *View) error {
	counts, err := v.s.o.Operator.CountTasks(v.R.Context(), v.actor(), nil)
	if ok, err := d.part(v, "home.part.tasks", err); !ok {
		return err
	}
	d.Tasks = &counts
	if counts.Workers == 0 && counts.Queued+counts.Running() > 0 {
		d.add("failed", v.T("home.workers"), v.To("setup"), "")
	}
	for _, list := range []struct {
		mark, word, view string
		n                int64
	}{
		{"warning", "home.stuck", "stuck", counts.Stuck},
		{"failed", "home.failed", "failed", counts.Failed},
		{"warning", "home.undelivered", "webhooks", counts.Undelivered},
	} {
		if list.n > 0 {
			d.add(list.mark, v.T(list.word, "n", number(list.n)), v.List("tasks", "view", list.view), "")
		}
	}
	return nil
}

func (d *overviewData) readMoney(v *View) error {
	list, err := v.s.o.Operator.ListUnsettled(v.R.Context(), v.actor(), new(operator.UnsettledQuery))
	if ok, err := d.part(v, "home.part.money", err); !ok {
		return err
	}
	if n := len(list.Data); n > 0 {
		d.add("warning", v.T("home.unsettled", "n", number(n)), v.To("usage"), v.Money(list.Amount))
	}
	return nil
}

// Thresholds of warnings about tokens: the used share of the budget, and the time until the expiry.
const (
	nearBudget = 0.9
	nearExpiry = 7 * 24 * time.Hour
)

func (d *overviewData) readTokens(v *View) error {
	sorts, err := v.s.o.Operator.SortsTokens(v.R.Context(), v.actor())
	if ok, err := d.part(v, "home.part.tokens", err); !ok || !sorts { // too many tokens are not searched
		return err
	}
	for _, sort := range []string{"spent", "expires"} {
		list, err := v.s.o.Operator.ListTokens(v.R.Context(), v.actor(),
			&operator.TokenQuery{State: "active", Sort: sort, PageOf: operator.PageOf{Limit: 20}})
		if ok, err := d.part(v, "home.part.tokens", err); !ok {
			return err
		}
		for _, t := range list.Data {
			share := 0.0
			if t.InForce.Budget > 0 && t.Spent != nil {
				share = amount(*t.Spent) / t.InForce.Budget
			}
			ends := t.Expires != nil && time.Until(*t.Expires) < nearExpiry
			switch {
			case sort == "spent" && share >= nearBudget:
				d.add("waiting", v.T("home.budget", "name", t.Name, "share", number(int(100*share))), v.To("tokens", t.ID), "")
			case sort == "expires" && ends:
				note := t.Expires.UTC().Format("2006-01-02 15:04") + " " + v.T("utc")
				d.add("waiting", v.T("home.expires", "name", t.Name), v.To("tokens", t.ID), note)
			}
		}
	}
	return nil
}

func (d *overviewData) readTraffic(v *View) error {
	span := spans()[d.Last]
	from := d.At.Add(-span).UTC().Format(time.RFC3339)
	var sums logs.TrafficList
	series, err := v.s.o.Operator.Traffic(v.R.Context(), v.actor(), &logs.TrafficQuery{From: from})
	if err == nil {
		sums, err = v.s.o.Operator.Traffic(v.R.Context(), v.actor(), &logs.TrafficQuery{From: from, Step: "all", GroupBy: d.Group})
	}
	if ok, err := d.part(v, "home.part.traffic", err); !ok {
		return err
	}
	d.Charts = chartsOf(v, series)
	d.By = d.table(v, sums)
	return nil
}

func chartsOf(v *View, list logs.TrafficList) []chart.Series {
	step := time.Duration(list.Step) * time.Second
	var requests, failed, tokens int64
	var cost float64
	charts := make([]chart.Series, 4)
	words := []string{"requests", "errors", "first", "spend"}
	for i, word := range words {
		charts[i] = chart.Series{ID: "chart-" + word, Word: "home.chart." + word, From: list.From, To: list.To, Step: step}
	}
	slowest := 0.0
	for _, s := range list.Data {
		requests, failed, tokens, cost = requests+s.Requests, failed+s.Failed, tokens+s.Tokens, cost+amount(s.Cost)
		slowest = max(slowest, s.FirstP95)
		points := []chart.Point{
			{At: s.At, Value: float64(s.Requests), Bad: float64(s.Failed), Text: number(s.Requests)},
			{At: s.At, Value: float64(s.Failed), Bad: float64(s.Failed), Text: number(s.Failed)},
			{At: s.At, Value: s.FirstP95, Bad: 0, Text: Lasted(s.FirstP95)},
			{At: s.At, Value: amount(s.Cost), Bad: 0, Text: money(s.Cost)},
		}
		for i, p := range points {
			charts[i].Points = append(charts[i].Points, p)
		}
	}
	charts[0].Figure = number(requests)
	charts[1].Figure = percent(failed, requests)
	if charts[2].Figure = "–"; slowest > 0 {
		charts[2].Figure = v.T("home.most", "ms", Lasted(slowest))
	}
	charts[3].Figure = v.Money(cost)
	return charts
}

// percent formats a share in percent, with a decimal if it is small.
func percent(of, whole int64) string {
	if whole == 0 {
		return "0 %"
	}
	return strings.TrimSuffix(strconv.FormatFloat(100*float64(of)/float64(whole), 'f', 1, 64), ".0") + " %"
}

func (d *overviewData) table(v *View, list logs.TrafficList) *Table {
	table := &Table{
		ID: "by", Caption: "home.by." + d.Group, Empty: "home.by.empty",
		Columns: columns(
			"call."+d.Group, "#home.chart.requests", "#home.chart.errors", "#home.chart.first", "#call.tokens", "#home.chart.spend",
		),
	}
	slices.SortStableFunc(list.Data, func(a, b logs.Traffic) int { return cmp.Compare(b.Requests, a.Requests) })
	for _, s := range list.Data[:min(len(list.Data), shownNames)] {
		name := Cell{Text: *cmp.Or(s.Channel, s.Model)} // the sums have one of them
		if name.Text == "" {
			name.Word = "home.none"
		} else {
			name.Link = v.List("calls", d.Group, name.Text)
		}
		errors := Cell{Text: percent(s.Failed, s.Requests)}
		if s.Failed > 0 {
			errors.Link = v.List("calls", d.Group, name.Text, "status", "failed")
		}
		first := ""
		if s.FirstP95 > 0 {
			first = Lasted(s.FirstP95)
		}
		table.add("", name, s.Requests, errors, first, s.Tokens, money(s.Cost))
	}
	return table
}
