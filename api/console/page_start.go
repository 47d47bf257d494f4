package console

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"modelrelay/api/console/chart"
	"modelrelay/api/console/inprocess"
	"modelrelay/api/operator"
)

// startPage is Overview for operators, and Home for holders.
func startPage() page {
	verb := func(verb, done string) act {
		return act{roles: []Role{Operator}, do: func(v *View) (string, any, error) {
			return Root + "?done=" + done, nil, v.Do(http.MethodPost, "/admin/channels/"+inprocess.Segment(v.Form.Value("channel"))+"/"+verb, nil, nil)
		}}
	}
	return page{
		name: "start", path: "", roles: everybody(), nav: "start", key: "o",
		show: func(v *View) (any, error) {
			if v.Staff() {
				return showOverview(v)
			}
			return showHome(v)
		},
		acts: map[string]act{"wake": verb("wake", "channel-woken"), "resume": verb("resume", "channel-resumed")},
	}
}

// Hand is something that needs somebody's hand.
type Hand struct {
	Mark, Text, Link, Note string
	// Do is what the page itself can do about it, with Channel; "" for nothing.
	Do, Channel string
}

// faultNow is the last fault of a channel.
type faultNow struct {
	At                   time.Time
	Channel, Words, Code string
	Status               int
}

type overviewData struct {
	// Mark and Health are the state of all in a sentence.
	Mark, Health string
	Hands        []Hand
	// Faults are the last ones of channels, the newest first.
	Faults []faultNow
	Charts []chart.Series
	By     *Table
	Tasks  *overviewCounts
	// Last is the span that is shown, By what the table is by.
	Last, Group string
	At          time.Time
	// Away are the words of parts that did not answer.
	Away []string
}

type overviewCounts struct {
	Queued      int64 `json:"queued"`
	Submitting  int64 `json:"submitting"`
	Polling     int64 `json:"polling"`
	Archiving   int64 `json:"archiving"`
	Stuck       int64 `json:"stuck"`
	Failed      int64 `json:"failed"`
	Undelivered int64 `json:"undelivered"`
	Workers     int64 `json:"workers"`
}

// Running are the tasks that vendors work on, or whose results are copied.
func (c overviewCounts) Running() int64 { return c.Submitting + c.Polling + c.Archiving }

// trafficList is a series of the API.
type trafficList struct {
	From time.Time    `json:"from"`
	To   time.Time    `json:"to"`
	Step int          `json:"step_seconds"`
	Data []trafficSum `json:"data"`
}

type trafficSum struct {
	At       time.Time `json:"at"`
	Channel  string    `json:"channel"`
	Model    string    `json:"model"`
	Requests int64     `json:"requests"`
	Failed   int64     `json:"failed"`
	Tokens   int64     `json:"tokens"`
	Cost     float64   `json:"cost"`
	First    float64   `json:"first_byte_p95_ms"`
}

// channelNow is how a channel is doing.
type channelNow struct {
	Name     string  `json:"name"`
	State    string  `json:"state"`
	RestLeft float64 `json:"rest_left"`
	Pause    *struct {
		Until  time.Time `json:"until"`
		By     string    `json:"by"`
		Reason string    `json:"reason"`
	} `json:"pause"`
	LastFault *lastFault `json:"last_fault"`
	Keys      []struct {
		State     string     `json:"state"`
		RestLeft  float64    `json:"rest_left"`
		LastFault *lastFault `json:"last_fault"`
	} `json:"keys"`
}

// withKeys counts what is wrong with its keys as the channel's: a channel whose keys all rest rests until the first of them is back, and
// the last fault is the last one of any.
func (c channelNow) withKeys() channelNow {
	resting, left := 0, 0.0
	for _, key := range c.Keys {
		c.LastFault = later(c.LastFault, key.LastFault)
		if key.State != "open" {
			continue
		}
		if resting++; resting == 1 || key.RestLeft < left {
			left = key.RestLeft
		}
	}
	if c.State == "closed" && resting > 0 && resting == len(c.Keys) {
		c.State, c.RestLeft = "open", left
	}
	return c
}

// faultsMost is how many last faults the page has.
const faultsMost = 5

// faultsOf are the last faults of the channels within the page's span.
func (d *overviewData) faultsOf(v *View, channels []channelNow) {
	for _, c := range channels {
		if f := c.LastFault; f != nil && d.At.Sub(f.At) < lasts()[d.Last] {
			d.Faults = append(d.Faults, faultNow{
				At: f.At, Channel: c.Name, Words: v.T("fault." + knownFault(v, f.Kind)), Code: f.Code, Status: f.Status,
			})
		}
	}
	slices.SortFunc(d.Faults, func(a, b faultNow) int { return b.At.Compare(a.At) })
	d.Faults = d.Faults[:min(len(d.Faults), faultsMost)]
}

// part reads one part of a page that lives without it, and notes it where it does not answer. It tells whether it did.
func (d *overviewData) part(v *View, word, path string, query url.Values, into any) (bool, error) {
	err := v.Get(path, query, into)
	if err == nil {
		return true, nil
	}
	problem := inprocess.AsProblem(err)
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

// readChannels finds the channels that rest, and says of all how it is.
func (d *overviewData) readChannels(v *View) error {
	var list struct {
		Data []channelNow `json:"data"`
	}
	ok, err := d.part(v, "home.part.channels", "/admin/channels", nil, &list)
	if !ok || err != nil {
		return err
	}
	all, rest := 0, 0
	for i := range list.Data {
		list.Data[i] = list.Data[i].withKeys()
	}
	for _, c := range list.Data {
		switch c.State {
		case "disabled":
			continue
		case "open":
			rest++
			d.Hands = append(d.Hands, Hand{
				Mark: "hand", Text: v.T("home.rests", "name", c.Name), Link: v.To("channels", c.Name), Note: v.T("home.rests.left", "left", Lasted(1000*c.RestLeft)),
				Do: "wake", Channel: c.Name,
			})
		case "paused":
			hand := Hand{Mark: "paused", Text: v.T("home.paused", "name", c.Name), Link: v.To("channels", c.Name), Do: "resume", Channel: c.Name}
			if c.Pause != nil {
				hand.Note = strings.TrimSpace(c.Pause.By + " " + c.Pause.Reason)
			}
			d.Hands = append(d.Hands, hand)
			rest++
		}
		all++
	}
	d.faultsOf(v, list.Data)
	switch {
	case all == 0:
		d.Mark, d.Health = "hand", v.T("home.health.none")
	case rest == all:
		d.Mark, d.Health = "failed", v.T("home.health.bad")
	case rest > 0:
		d.Mark, d.Health = "working", v.T("home.health.rest", "n", number(rest), "all", number(all))
	default:
		d.Mark, d.Health = "working", v.T("home.health.ok")
	}
	return nil
}

// readServices finds the services that do not answer, or lack something.
func (d *overviewData) readServices(v *View) error {
	checks := v.s.readiness(v).Checks
	for _, service := range [][2]string{{"redis", "check.redis"}, {"temporal", "check.temporal"}, {"archive", "check.store"}} {
		if c, checked := checks[service[0]]; checked && c.Status != "ok" {
			d.Hands = append(d.Hands, Hand{Mark: "failed", Text: v.T("home.service", "what", v.T(service[1])), Link: v.To("setup"), Note: c.Error})
		}
	}
	return nil
}

func (d *overviewData) readTasks(v *View) error {
	counts := new(overviewCounts)
	ok, err := d.part(v, "home.part.tasks", "/admin/tasks/counts", nil, counts)
	if !ok || err != nil {
		return err
	}
	d.Tasks = counts
	if counts.Workers == 0 && counts.Queued+counts.Running() > 0 {
		d.Hands = append(d.Hands, Hand{Mark: "failed", Text: v.T("home.workers"), Link: v.To("setup")})
	}
	if counts.Stuck > 0 {
		d.Hands = append(d.Hands, Hand{Mark: "hand", Text: v.T("home.stuck", "n", number(counts.Stuck)), Link: v.To("tasks") + "?view=stuck"})
	}
	if counts.Failed > 0 {
		d.Hands = append(d.Hands, Hand{Mark: "failed", Text: v.T("home.failed", "n", number(counts.Failed)), Link: v.To("tasks") + "?view=failed"})
	}
	if counts.Undelivered > 0 {
		d.Hands = append(d.Hands, Hand{Mark: "hand", Text: v.T("home.undelivered", "n", number(counts.Undelivered)), Link: v.To("tasks") + "?view=webhooks"})
	}
	return nil
}

func (d *overviewData) readMoney(v *View) error {
	var list struct {
		Data   []struct{} `json:"data"`
		Amount float64    `json:"amount"`
	}
	ok, err := d.part(v, "home.part.money", "/admin/usage/unsettled", nil, &list)
	if ok && len(list.Data) > 0 {
		d.Hands = append(d.Hands, Hand{Mark: "hand", Text: v.T("home.unsettled", "n", number(len(list.Data))), Link: v.To("usage"), Note: v.Money(list.Amount)})
	}
	return err
}

// What is said of tokens: those that have used so much of their budget, and those that end so soon.
const (
	nearBudget = 0.9
	nearExpiry = 7 * 24 * time.Hour
)

func (d *overviewData) readTokens(v *View) error {
	for _, sort := range []string{"spent", "expires"} {
		list, err := v.s.o.Operator.ListTokens(v.R.Context(), v.actor(), &operator.TokenQuery{State: "active", Sort: sort, PageOf: operator.PageOf{Limit: 20}})
		if problem := v.problem(err); problem != nil {
			d.Away = append(d.Away, "home.part.tokens")
			return nil
		}
		if err != nil {
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
				d.Hands = append(d.Hands, Hand{Mark: "waiting", Text: v.T("home.budget", "name", t.Name, "share", number(int(100*share))), Link: v.To("tokens", t.ID)})
			case sort == "expires" && ends:
				d.Hands = append(d.Hands, Hand{
					Mark: "waiting", Text: v.T("home.expires", "name", t.Name), Link: v.To("tokens", t.ID), Note: t.Expires.UTC().Format("2006-01-02 15:04") + " " + v.T("utc"),
				})
			}
		}
	}
	return nil
}

// readTraffic draws the charts.
func (d *overviewData) readTraffic(v *View) error {
	span := lasts()[d.Last]
	from := d.At.Add(-span).UTC().Format(time.RFC3339)
	var series, sums trafficList
	ok, err := d.part(v, "home.part.traffic", "/admin/traffic", url.Values{"from": {from}}, &series)
	if !ok || err != nil {
		return err
	}
	if ok, err = d.part(v, "home.part.traffic", "/admin/traffic", url.Values{"from": {from}, "step": {"all"}, "group_by": {d.Group}}, &sums); !ok || err != nil {
		return err
	}
	d.Charts = chartsOf(v, series)
	d.By = d.table(v, sums)
	return nil
}

func chartsOf(v *View, list trafficList) []chart.Series {
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
		requests, failed, tokens, cost = requests+s.Requests, failed+s.Failed, tokens+s.Tokens, cost+s.Cost
		slowest = max(slowest, s.First)
		points := []chart.Point{
			{At: s.At, Value: float64(s.Requests), Bad: float64(s.Failed), Text: number(s.Requests)},
			{At: s.At, Value: float64(s.Failed), Bad: float64(s.Failed), Text: number(s.Failed)},
			{At: s.At, Value: s.First, Bad: 0, Text: Lasted(s.First)},
			{At: s.At, Value: s.Cost, Bad: 0, Text: money(s.Cost)},
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

// percent is a share in percent, with a digit where it is small.
func percent(of, whole int64) string {
	if whole == 0 {
		return "0 %"
	}
	return strings.TrimSuffix(strconv.FormatFloat(100*float64(of)/float64(whole), 'f', 1, 64), ".0") + " %"
}

func (d *overviewData) table(v *View, list trafficList) *Table {
	table := &Table{
		ID: "by", Caption: "home.by." + d.Group, Empty: "home.by.empty",
		Columns: []Column{
			{Word: "call." + d.Group},
			{Word: "home.chart.requests", Number: true},
			{Word: "home.chart.errors", Number: true},
			{Word: "home.chart.first", Number: true},
			{Word: "call.tokens", Number: true},
			{Word: "home.chart.spend", Number: true},
		},
	}
	for _, s := range list.Data {
		name := Cell{Text: s.Channel + s.Model}
		if name.Text == "" {
			name.Word = "home.none"
		} else {
			name.Link = v.To("calls") + "?" + url.Values{d.Group: {name.Text}}.Encode()
		}
		errors := Cell{Text: percent(s.Failed, s.Requests)}
		if s.Failed > 0 {
			errors.Link = v.To("calls") + "?" + url.Values{d.Group: {s.Channel + s.Model}, "status": {"failed"}}.Encode()
		}
		table.Rows = append(table.Rows, Row{Cells: []Cell{
			name, {Text: number(s.Requests)}, errors, firstByte(s.First), {Text: number(s.Tokens)}, {Text: money(s.Cost)},
		}})
	}
	return table
}

// firstByte is a time to a first byte; a dash where none came.
func firstByte(ms float64) Cell {
	if ms == 0 {
		return Cell{}
	}
	return Text(Lasted(ms))
}
