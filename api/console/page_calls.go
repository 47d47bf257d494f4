package console

import (
	"cmp"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"modelrelay/api/account"
	"modelrelay/api/console/chart"
	"modelrelay/api/logs"
	"modelrelay/api/operator"
	"modelrelay/providers"
	"modelrelay/storage/tokens"
)

// callsPage is the log of calls, for a holder with the token's own calls.
func callsPage() page {
	return page{
		name: "calls", path: "/calls", roles: allRoles(), nav: "calls", key: "c", show: showCalls,
		csv: func(data any) *Table { return data.(callsData).Table }, //nolint:forcetypeassert // of show
	}
}

const callsOfPage = 50

type callsData struct {
	Table  *Table
	Looked int
	Back   *time.Time
	// Wrong describes the error in the filter, "" for none.
	Wrong string
	// Live: the page adds new calls as they arrive.
	Live bool
}

// spans are the periods that the filter offers.
func spans() map[string]time.Duration {
	return map[string]time.Duration{"15m": 15 * time.Minute, "1h": time.Hour, "6h": 6 * time.Hour, "24h": 24 * time.Hour}
}

func showCalls(v *View) (any, error) {
	data := callsData{Live: v.Query("live") != "off" && v.Query("after") == ""}
	q, _, err := logs.ParseQuery(v.R)
	var list logs.List
	if err == nil {
		q.Limit = callsOfPage
		if span, ok := spans()[v.Query("last")]; ok {
			q.Since = time.Now().Add(-span)
		}
		list, err = readCalls(v, q)
	}
	if problem := v.problem(err); problem != nil && problem.Status == http.StatusBadRequest {
		data.Wrong, err = problem.Message, nil
	}
	data.Table, data.Looked, data.Back = callsTable(v, list.Data), list.Looked, list.Back
	data.Table.Next, data.Table.Partly = v.next(list.After), list.After != nil && len(list.Data) < callsOfPage
	return data, err
}

func readCalls(v *View, q logs.Query) (logs.List, error) {
	if v.IsOperatorOrViewer() {
		return v.s.o.Operator.ListCalls(v.R.Context(), v.actor(), &q)
	}
	token, err := v.holder(logs.ScanReads)
	if err != nil {
		return logs.List{}, err
	}
	return v.s.o.Account.Logs.Own(token.ID).List(v.R.Context(), q)
}

func callsTable(v *View, calls []logs.Call) *Table {
	table := &Table{
		ID: "calls", Caption: "calls.caption", Empty: "calls.empty", CSV: true,
		Columns: columns("call.at", "call.status", "call.token", "call.model", "call.channel", "#call.first", "#call.took", "#call.tokens",
			"#call.cost"),
	}
	for _, c := range calls {
		status := Cell{Text: strconv.Itoa(c.Status), Mark: callMark(c)}
		if c.Fault != "" {
			status.Note = v.Fault(providers.Kind(c.Fault))
		}
		if c.Skipped > 0 {
			status.Note = strings.TrimSpace(status.Note + " " + v.T("call.skipped", "n", number(c.Skipped)))
		}
		var used, cost, first string
		if c.InputTokens+c.OutputTokens > 0 {
			used = number(c.InputTokens) + " / " + number(c.OutputTokens)
		}
		if c.Cost > 0 {
			cost = money(c.Cost)
		}
		if c.FirstByte != nil {
			first = Lasted(*c.FirstByte)
		}
		at, token := Cell{Time: c.At, Link: v.To("calls", c.ID)}, Cell{Text: c.TokenName, Link: linkOf(v, "tokens", c.Token)}
		table.add(c.ID, at, status, token, Cell{Text: c.Model, Note: c.TaskID}, through(c), first, Lasted(c.MS), used, cost)
	}
	if !v.IsOperatorOrViewer() {
		table.drop("call.token", "call.channel")
	}
	return table
}

// linkOf is To, but returns "" if the id is "".
func linkOf(v *View, page, id string) string {
	if id == "" {
		return ""
	}
	return v.To(page, id)
}

// Fault returns the text of a kind of fault.
func (v *View) Fault(kind providers.Kind) string { return v.T("fault." + knownFault(v, string(kind))) }

// knownFault returns the fault if the language has a text for it, else "other".
func knownFault(v *View, word string) string {
	if v.s.words.Has("fault." + word) {
		return word
	}
	return "other"
}

func callMark(c logs.Call) string {
	switch {
	case c.Fault == "canceled":
		return "paused"
	case c.Fault != "" || c.Status >= http.StatusBadRequest:
		return "failed"
	default:
		return "done"
	}
}

// through lists the channels of a call's attempts.
func through(c logs.Call) string {
	var names []string
	for _, attempt := range c.Attempts {
		if n := len(names); n == 0 || names[n-1] != attempt.Channel {
			names = append(names, attempt.Channel)
		}
	}
	return strings.Join(names, " → ")
}

// Lasted formats a number of milliseconds.
func Lasted(ms float64) string {
	switch {
	case ms < 10:
		return strconv.FormatFloat(math.Round(ms*10)/10, 'f', -1, 64) + " ms"
	case ms < 1000:
		return strconv.FormatFloat(ms, 'f', 0, 64) + " ms"
	case ms < 120_000:
		return strconv.FormatFloat(ms/1000, 'f', 1, 64) + " s"
	default:
		return strconv.FormatFloat(ms/60_000, 'f', 1, 64) + " min"
	}
}

type callData struct {
	logs.Call

	Mark string
	// Kind is the fault's key, "" for none.
	Kind     string
	Parts    []chart.Part
	Bars     []chart.Bar
	Attempts *Table
	// Trace is the address of the call's trace, "" if unknown.
	Trace string
	// Left is what remains of the token's limits now, nil if unknown.
	Left *account.Left
	// Snippets are programs that make a similar call. The log does not have its content.
	Snippets *program
}

// Lasted formats milliseconds for the template.
func (callData) Lasted(ms float64) string { return Lasted(ms) }

func showCall(v *View) (any, error) {
	var data callData
	var token *tokens.Token
	var err error
	id := v.R.PathValue("id")
	if v.IsOperatorOrViewer() {
		if data.Call, err = v.s.o.Operator.Call(v.R.Context(), v.actor(), &operator.CallName{ID: id}); err == nil && data.Token != "" {
			token, _ = v.token(data.Token) // a removed token has no limits
		}
	} else if token, err = v.holder(logs.ScanReads); err == nil {
		data.Call, err = v.s.o.Account.Logs.Own(token.ID).Find(v.R.Context(), id)
	}
	if err != nil {
		return nil, err
	}
	if token != nil {
		if left, err := v.s.o.Account.Left(v.R.Context(), token); err == nil {
			data.Left = &left
		}
	}
	data.Mark = callMark(data.Call)
	if data.Fault != "" {
		data.Kind = knownFault(v, data.Fault)
	}
	if v.IsOperatorOrViewer() && data.TraceID != "" {
		data.Trace = strings.ReplaceAll(v.s.o.TraceURL, "{trace_id}", url.QueryEscape(data.TraceID))
	}
	data.Parts = partsOf(data.Call)
	data.Bars = chart.PartBars(data.Parts)
	data.Attempts = attemptsTable(v, data.Call)
	data.Snippets = programFor(v.s.base(v.R), data.Operation, data.Model, "Hello", data.Stream)
	return data, nil
}

// partsOf divides the time of a call into its parts.
func partsOf(c logs.Call) []chart.Part {
	var parts []chart.Part
	left := c.MS
	add := func(p chart.Part) {
		if p.MS = min(p.MS, left); p.MS > 0 {
			parts = append(parts, p)
			left -= p.MS
		}
	}
	if len(c.Attempts) == 0 {
		add(chart.Part{Word: "call.part.gateway", MS: left})
		return parts
	}
	add(chart.Part{Word: "call.part.before", MS: c.BeforeMS})
	for _, attempt := range c.Attempts {
		add(chart.Part{Word: "call.part.attempt", Name: attempt.Channel, MS: attempt.MS, Failed: attempt.Outcome != "ok"})
	}
	add(chart.Part{Word: "call.part.answer", MS: left})
	return parts
}

// took formats a time in whole milliseconds.
func took(ms float64) string {
	if ms == 0 {
		return "< 1 ms"
	}
	return Lasted(ms)
}

func attemptsTable(v *View, c logs.Call) *Table {
	table := &Table{
		ID: "attempts", Caption: "call.attempts", Empty: "call.attempts.none",
		Columns: columns("call.attempt", "call.outcome", "#call.took", "call.key", "call.vendor"),
	}
	for i, attempt := range c.Attempts {
		outcome := Cell{Word: "call.ok", Mark: "done"}
		if attempt.Outcome != "ok" {
			outcome = Cell{Word: "fault." + knownFault(v, attempt.Outcome), Mark: "failed"}
		}
		table.add("", cmp.Or(attempt.Channel, strconv.Itoa(i+1)), outcome, took(attempt.MS), Cell{Text: attempt.Key, Code: true},
			Cell{Text: attempt.VendorID, Code: true})
	}
	if !v.IsOperatorOrViewer() {
		table.drop("call.key", "call.vendor")
	}
	return table
}
