package logs

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/edge"
	"modelrelay/storage/calllog"
)

// The default and the maximum number of calls of a page and of a table.
const (
	defaultLimit, pageMost  = 50, 1000
	defaultTable, tableMost = 1000, 10_000
)

// Query selects calls and a page of their list.
type Query struct {
	calllog.Filter
	calllog.Range
}

// parameters are those of a list of calls; operators have more than a token.
func parameters(operators bool) []*huma.Param {
	text, whole := &huma.Schema{Type: huma.TypeString}, &huma.Schema{Type: huma.TypeInteger, Minimum: new(0.0)}
	limit := &huma.Schema{Type: huma.TypeInteger, Minimum: new(1.0), Maximum: new(float64(tableMost))}
	list := []*huma.Param{
		{Name: "id", Schema: text, Description: "Any of a call's ids. Several calls may have the value that their clients sent as x-request-id"},
		{Name: "model", Schema: text, Description: "Public name"},
		{Name: "operation", Schema: text, Description: "An operation's id in this document"},
		{Name: "status", Schema: text, Description: "An HTTP status, a class such as 5xx, or failed: 400 or higher, or a fault in an answer that had begun"},
		{Name: "fault", Schema: text, Description: "Kind of fault, or any"},
		{Name: "min_ms", Schema: whole, Description: "Only calls that took at least this many milliseconds"},
		{Name: "stream", Schema: &huma.Schema{Type: huma.TypeBoolean}, Description: "true: calls with a stream of events; false: other calls"},
		{Name: "since", Schema: text, Description: "Only calls that arrived at or after this date or RFC 3339 time"},
		{Name: "until", Schema: text, Description: "Only calls that arrived before this date or RFC 3339 time"},
		{Name: "after", Schema: text, Description: "The cursor of an earlier page: the list continues after it"},
		{Name: "newer", Schema: text, Description: "The cursor newest of an earlier page: only newer calls"},
		{Name: "limit", Schema: limit, Description: "Calls of a page: 50 by default, at most 1,000; of a table: 1,000, at most 10,000"},
	}
	if operators {
		list = append([]*huma.Param{
			{Name: "token", Schema: text, Description: "Id or name"},
			{Name: "channel", Schema: text, Description: "Channel that answered, or that failed to answer"},
		}, list...)
	}
	return edge.TableParameters(list...)
}

// ParseQuery parses the query of a request. table: the answer is a table.
func ParseQuery(r *http.Request) (q Query, table bool, err error) {
	in := edge.NewQuery(r)
	q.Model, q.Channel, q.Operation, q.Fault = in.Text("model"), in.Text("channel"), in.Text("operation"), in.Text("fault")
	if q.Fault == "any" {
		q.Fault, q.Failed = "", true
	}
	readStatus(&q.Filter, in)
	q.After, q.Above, table = in.Text("after"), in.Text("newer"), in.CSV()
	q.ID = in.Text("id")
	q.Token, q.Since, q.Until = in.Text("token"), in.Moment("since"), in.Moment("until")
	q.Slower = time.Duration(in.Number("min_ms", 0, 0, math.MaxInt32)) * time.Millisecond
	switch text := in.Text("stream"); text {
	case "":
	case "true", "false":
		q.Stream = new(text == "true")
	default:
		in.Refuse("stream", "must be true or false.")
	}
	if !q.Until.IsZero() && !q.Since.Before(q.Until) {
		in.Refuse("since", "must be before 'until'.")
	}
	standard, most := defaultLimit, pageMost
	if table {
		standard, most = defaultTable, tableMost
	}
	q.Limit = in.Number("limit", standard, 1, most)
	return q, table, in.Err()
}

func readStatus(f *calllog.Filter, in *edge.Query) {
	text := in.Text("status")
	number, class := strings.CutSuffix(text, "xx")
	n, err := strconv.Atoi(number)
	switch {
	case text == "":
	case text == "failed":
		f.Failed = true
	case err == nil && class && 1 <= n && n <= 5, err == nil && !class && 100 <= n && n <= 599:
		f.Status = n
	default:
		in.Refuse("status", "must be an HTTP status, a class such as 5xx, or failed.")
	}
}
