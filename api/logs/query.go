package logs

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/storage/calllog"
)

// How many calls a page has, and a table.
const (
	defaultLimit, pageMost  = 50, 1000
	defaultTable, tableMost = 1000, 10_000
)

// query is what a list of calls is asked for.
type query struct {
	filter calllog.Filter
	within calllog.Range
	csv    bool
}

// parameters are those of a list of calls; those of a token alone are without the words that only operators have.
func parameters(operators bool) []*huma.Param {
	text, whole := &huma.Schema{Type: huma.TypeString}, &huma.Schema{Type: huma.TypeInteger, Minimum: new(0.0)}
	limit := &huma.Schema{Type: huma.TypeInteger, Minimum: new(1.0), Maximum: new(float64(tableMost))}
	list := []*huma.Param{
		{Name: "model", Schema: text, Description: "Public name"},
		{Name: "operation", Schema: text, Description: "An operation's id in this document"},
		{Name: "status", Schema: text, Description: "An HTTP status, or a class such as 4xx or 5xx, or failed: 400 and more, or a fault in an answer that had begun"},
		{Name: "fault", Schema: text, Description: "Kind of fault, or any"},
		{Name: "min_ms", Schema: whole, Description: "Calls that took so long at least"},
		{Name: "stream", Schema: &huma.Schema{Type: huma.TypeBoolean}, Description: "Calls that were answered with a stream of events, or not"},
		{Name: "since", Schema: text, Description: "Calls that came at this date or time of RFC 3339 or later"},
		{Name: "until", Schema: text, Description: "Calls that came before"},
		{Name: "after", Schema: text, Description: "The cursor of a page before: goes on behind it"},
		{Name: "newer", Schema: text, Description: "The cursor newest of a page before: calls above it alone"},
		{Name: "limit", Schema: limit, Description: "Calls of a page: 50, at most 1,000; of a table: 1,000, at most 10,000"},
		{Name: "format", Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"json", "csv"}}, Description: "csv also by the header Accept: text/csv"},
	}
	if operators {
		list = append([]*huma.Param{
			{Name: "token", Schema: text, Description: "Id or name"}, {Name: "channel", Schema: text, Description: "Channel that answered, or was asked and did not"},
		}, list...)
	}
	for _, p := range list {
		p.In = "query"
	}
	return list
}

// parse reads a request's query.
func parse(r *http.Request) (query, error) {
	values := r.URL.Query()
	q := query{
		within: calllog.Range{After: values.Get("after"), Above: values.Get("newer")},
		csv:    edge.HeaderLists(r.Header, "Accept", "text/csv"),
	}
	var err error
	if q.filter, err = ParseFilter(values); err != nil {
		return q, err
	}
	q.filter.Token = values.Get("token")
	if text := values.Get("min_ms"); text != "" {
		ms, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return q, providers.InvalidField("min_ms", "Invalid request: 'min_ms' must be a whole number of milliseconds.")
		}
		q.filter.Slower = time.Duration(ms) * time.Millisecond
	}
	switch text := values.Get("stream"); text {
	case "":
	case "true", "false":
		q.filter.Stream = new(text == "true")
	default:
		return q, providers.InvalidField("stream", "Invalid request: 'stream' takes true or false.")
	}
	if q.filter.Since, err = moment("since", values.Get("since")); err != nil {
		return q, err
	}
	if q.filter.Until, err = moment("until", values.Get("until")); err != nil {
		return q, err
	}
	if !q.filter.Until.IsZero() && !q.filter.Since.Before(q.filter.Until) {
		return q, providers.InvalidField("since", "Invalid request: 'since' does not lie before 'until'.")
	}
	switch values.Get("format") {
	case "":
	case "json":
		q.csv = false
	case "csv":
		q.csv = true
	default:
		return q, providers.InvalidField("format", "Invalid request: 'format' takes json or csv.")
	}
	return q, q.readLimit(values.Get("limit"))
}

// ParseFilter reads the words of a filter that name things: model, channel, operation, fault and status.
func ParseFilter(values url.Values) (calllog.Filter, error) {
	f := calllog.Filter{
		Model: values.Get("model"), Channel: values.Get("channel"), Operation: values.Get("operation"), Fault: values.Get("fault"),
	}
	if f.Fault == "any" {
		f.Fault, f.Failed = "", true
	}
	return f, readStatus(&f, values.Get("status"))
}

func readStatus(f *calllog.Filter, text string) error {
	if text == "failed" {
		f.Failed = true
		return nil
	}
	number, class := strings.CutSuffix(text, "xx")
	n, err := strconv.Atoi(number)
	switch {
	case text == "":
		return nil
	case err == nil && class && 1 <= n && n <= 5, err == nil && !class && 100 <= n && n <= 599:
		f.Status = n
		return nil
	}
	return providers.InvalidField("status", "Invalid request: 'status' takes an HTTP status, a class such as 5xx, or failed.")
}

func (q *query) readLimit(text string) error {
	standard, most := defaultLimit, pageMost
	if q.csv {
		standard, most = defaultTable, tableMost
	}
	q.within.Limit = standard
	if text == "" {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return providers.InvalidField("limit", "Invalid request: 'limit' must be a whole number from 1 to %d.", most)
	}
	q.within.Limit = n
	return nil
}

// moment reads a date or a time; "" is the zero time.
func moment(param, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil && !t.IsZero() {
			return t.UTC(), nil
		}
	}
	return time.Time{}, providers.InvalidField(param, "Invalid request: '%s' is neither a date such as 2026-01-31 nor a time of RFC 3339.", param)
}
