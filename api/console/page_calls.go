package console

import (
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"modelrelay/api/console/chart"
	"modelrelay/api/console/inprocess"
	"modelrelay/api/console/snippets"
)

// Call is a call as the log's operations show it.
type Call struct {
	ID        string    `json:"id"`
	ClientID  string    `json:"client_request_id"`
	Others    []string  `json:"other_ids"`
	At        time.Time `json:"at"`
	TraceID   string    `json:"trace_id"`
	VendorID  string    `json:"vendor_request_id"`
	TaskID    string    `json:"task_id"`
	Token     string    `json:"token"`
	TokenName string    `json:"token_name"`
	UserAgent string    `json:"user_agent"`

	CallAsked
	CallOutcome
	CallUsed

	Attempts []CallAttempt `json:"attempts"`
	Skipped  int64         `json:"skipped"`
}

// CallAsked is what was asked for.
type CallAsked struct {
	Operation string `json:"operation"`
	Format    string `json:"format"`
	Model     string `json:"model"`
	Stream    bool   `json:"stream"`
}

// CallOutcome is how it ended, and how long it took.
type CallOutcome struct {
	Channel   string   `json:"channel"`
	Status    int      `json:"status"`
	Fault     string   `json:"fault"`
	Message   string   `json:"message"`
	Code      string   `json:"code"`
	BeforeMS  float64  `json:"before_ms"`
	FirstByte *float64 `json:"first_byte_ms"`
	MS        float64  `json:"ms"`
	Bytes     int64    `json:"bytes"`
}

// CallUsed is what it used and cost.
type CallUsed struct {
	Input     int64   `json:"input_tokens"`
	Cached    int64   `json:"cached_tokens"`
	Output    int64   `json:"output_tokens"`
	Images    int64   `json:"images"`
	Seconds   float64 `json:"audio_seconds"`
	Cost      float64 `json:"cost"`
	Priced    bool    `json:"priced"`
	Estimated bool    `json:"estimated"`
}

// CallAttempt is one request to an upstream.
type CallAttempt struct {
	Channel  string  `json:"channel"`
	Key      string  `json:"key"`
	Outcome  string  `json:"outcome"`
	MS       float64 `json:"ms"`
	VendorID string  `json:"vendor_request_id"`
}

// callsList is a page of the log.
type callsList struct {
	Data   []Call     `json:"data"`
	Looked int        `json:"looked_at"`
	Back   *time.Time `json:"looked_back_to"`
	After  *string    `json:"after"`
}

// callsPage is the log of calls, the caller's own for a holder.
func callsPage() page {
	return page{
		name: "calls", path: "/calls", roles: everybody(), nav: "calls", key: "c", show: showCalls,
		csv: func(_ *View, data any) (*Table, error) { return data.(callsData).Table, nil }, //nolint:forcetypeassert // of show
	}
}

// callPage is one of them, by any of its ids.
func callPage() page {
	return page{name: "call", path: "/calls/{id}", roles: everybody(), under: "calls", show: showCall}
}

type callsData struct {
	Table  *Table
	Looked int
	Back   *time.Time
	// Wrong is what is wrong with the filter, "" for nothing.
	Wrong string
	// Live: the page goes on with the calls that come.
	Live bool
}

// callsRoot is where the API has the calls of who has signed in.
func callsRoot(v *View) string {
	if v.Staff() {
		return "/admin/calls"
	}
	return "/v1/token/calls"
}

// lasts are the spans of time that the filter offers.
func lasts() map[string]time.Duration {
	return map[string]time.Duration{"15m": 15 * time.Minute, "1h": time.Hour, "6h": 6 * time.Hour, "24h": 24 * time.Hour}
}

func showCalls(v *View) (any, error) {
	q := url.Values{"limit": {"50"}}
	for _, name := range []string{"token", "channel", "model", "operation", "status", "fault", "min_ms", "after"} {
		if value := v.Query(name); value != "" && (v.Staff() || name != "token" && name != "channel") {
			q.Set(name, value)
		}
	}
	if span, ok := lasts()[v.Query("last")]; ok {
		q.Set("since", time.Now().Add(-span).UTC().Format(time.RFC3339))
	}
	data := callsData{Live: v.Query("live") != "off" && v.Query("after") == ""}
	var list callsList
	if err := v.Get(callsRoot(v), q, &list); err != nil {
		problem := inprocess.AsProblem(err)
		if problem == nil || problem.Status != http.StatusBadRequest {
			return nil, err
		}
		data.Wrong = problem.Message
	}
	data.Table, data.Looked, data.Back = callsTable(v, list.Data), list.Looked, list.Back
	if list.After != nil {
		data.Table.Next = v.With("after", *list.After)
	}
	return data, nil
}

// callsTable is calls as rows.
func callsTable(v *View, calls []Call) *Table {
	table := &Table{ID: "calls", Caption: "calls.caption", Empty: "calls.empty", CSV: true}
	table.Columns = []Column{{Word: "call.at"}, {Word: "call.status"}}
	if v.Staff() {
		table.Columns = append(table.Columns, Column{Word: "call.token"})
	}
	table.Columns = append(table.Columns, Column{Word: "call.model"})
	if v.Staff() {
		table.Columns = append(table.Columns, Column{Word: "call.channel"})
	}
	table.Columns = append(table.Columns, Column{Word: "call.first", Number: true}, Column{Word: "call.took", Number: true},
		Column{Word: "call.tokens", Number: true}, Column{Word: "call.cost", Number: true})
	for _, call := range calls {
		table.Rows = append(table.Rows, callRow(v, call))
	}
	return table
}

func callRow(v *View, c Call) Row {
	status := Cell{Text: strconv.Itoa(c.Status), Mark: callMark(c)}
	if c.Fault != "" {
		status.Note = v.T("fault." + knownFault(v, c.Fault))
	}
	if c.Skipped > 0 {
		status.Note = strings.TrimSpace(status.Note + " " + v.T("call.skipped", "n", number(c.Skipped)))
	}
	model := Cell{Text: c.Model}
	if c.TaskID != "" {
		model.Note = c.TaskID
	}
	cells := []Cell{{Time: c.At, Link: v.To("calls", c.ID)}, status}
	if v.Staff() {
		cells = append(cells, Cell{Text: c.TokenName, Link: linkOf(v, "tokens", c.Token)})
	}
	cells = append(cells, model)
	if v.Staff() {
		cells = append(cells, Cell{Text: c.Through()})
	}
	tokens, cost := Cell{}, Cell{}
	if c.Input+c.Output > 0 {
		tokens.Text = number(c.Input) + " / " + number(c.Output)
	}
	if c.Cost > 0 {
		cost.Text = money(c.Cost)
	}
	first := Cell{}
	if c.FirstByte != nil {
		first.Text = Lasted(*c.FirstByte)
	}
	return Row{ID: c.ID, Cells: append(cells, first, Cell{Text: Lasted(c.MS)}, tokens, cost)}
}

// linkOf is To with a part that may be "", which leads nowhere.
func linkOf(v *View, page, id string) string {
	if id == "" {
		return ""
	}
	return v.To(page, id)
}

// knownFault is the fault where the language has words for it, else "other".
func knownFault(v *View, word string) string {
	if v.s.words.Has("fault." + word) {
		return word
	}
	return "other"
}

// callMark is the mark of how a call ended.
func callMark(c Call) string {
	switch {
	case c.Fault == "canceled":
		return "paused"
	case c.Fault != "" || c.Status >= http.StatusBadRequest:
		return "failed"
	default:
		return "done"
	}
}

// Through is the way of a call through its channels.
func (c Call) Through() string {
	var names []string
	for _, attempt := range c.Attempts {
		if n := len(names); n == 0 || names[n-1] != attempt.Channel {
			names = append(names, attempt.Channel)
		}
	}
	return strings.Join(names, " → ")
}

// Lasted writes a number of milliseconds.
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
	Call

	Mark string
	// Kind is the word of the fault, "" where there is none.
	Kind     string
	Parts    []chart.Part
	Bars     []chart.Bar
	Attempts *Table
	// Trace is the call's page in the operator's tracing, "" where there is none.
	Trace string
	// Left is what its token has left now, nil where that cannot be told.
	Left *whatIsLeft
	// Snippets make a call like this one; what was said in it nobody knows.
	Snippets []snippets.Program
}

// Lasted writes milliseconds for the template.
func (callData) Lasted(ms float64) string { return Lasted(ms) }

// showCall shows one call, by any of its ids.
func showCall(v *View) (any, error) {
	var data callData
	if err := v.Get(callsRoot(v)+"/"+inprocess.Segment(v.R.PathValue("id")), nil, &data.Call); err != nil {
		return nil, err
	}
	data.Mark = callMark(data.Call)
	if data.Fault != "" {
		data.Kind = knownFault(v, data.Fault)
	}
	if v.Staff() && data.TraceID != "" {
		data.Trace = strings.ReplaceAll(v.s.o.TraceURL, "{trace_id}", url.QueryEscape(data.TraceID))
	}
	data.Parts = partsOf(data.Call)
	data.Bars = chart.PartBars(data.Parts)
	data.Attempts = attemptsTable(v, data.Call)
	if v.Staff() {
		data.Left = leftOf(v, data.Token)
	} else {
		data.Left = leftOf(v, v.Who.Owner)
	}
	data.Snippets = snippets.ForCall(v.s.base(v.R), data.Operation, data.Model, data.Stream)
	return data, nil
}

// partsOf is where the time of a call went.
func partsOf(c Call) []chart.Part {
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

// took is a time that is told in whole milliseconds.
func took(ms float64) string {
	if ms == 0 {
		return "< 1 ms"
	}
	return Lasted(ms)
}

func attemptsTable(v *View, c Call) *Table {
	table := &Table{
		ID: "attempts", Caption: "call.attempts", Empty: "call.attempts.none",
		Columns: []Column{{Word: "call.attempt"}, {Word: "call.outcome"}, {Word: "call.took", Number: true}},
	}
	if v.Staff() {
		table.Columns = append(table.Columns, Column{Word: "call.key"}, Column{Word: "call.vendor"})
	}
	for i, attempt := range c.Attempts {
		outcome := Cell{Word: "call.ok", Mark: "done"}
		if attempt.Outcome != "ok" {
			outcome = Cell{Word: "fault." + knownFault(v, attempt.Outcome), Mark: "failed"}
		}
		name := attempt.Channel
		if name == "" {
			name = strconv.Itoa(i + 1)
		}
		cells := []Cell{{Text: name}, outcome, {Text: took(attempt.MS)}}
		if v.Staff() {
			cells = append(cells, Cell{Text: attempt.Key, Code: true}, Cell{Text: attempt.VendorID, Code: true})
		}
		table.Rows = append(table.Rows, Row{Cells: cells})
	}
	return table
}
