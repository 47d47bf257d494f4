package admin

import (
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/api/edge"
	"modelrelay/api/operator"
	"modelrelay/storage/audit"
)

func auditRow(e audit.Entry) []string {
	changes := make([]string, len(e.Changes))
	for i, change := range e.Changes {
		changes[i] = change.String()
	}
	return []string{
		e.Time.Format(time.RFC3339), string(e.By), e.Who, e.From, e.What, e.Subject, strings.Join(changes, "; "), e.Outcome, e.Reason,
		e.RequestID,
	}
}

type auditOperations struct{ *operator.Service }

func (o *auditOperations) add(g *edge.Group) {
	text := &huma.Schema{Type: huma.TypeString}
	filter := func(name, doc string) *huma.Param {
		return &huma.Param{Name: name, In: "query", Schema: text, Description: doc}
	}
	g.Handle(huma.Operation{
		OperationID: "adminAudit", Method: http.MethodGet, Path: Root + "/audit", Summary: "List changes",
		Description: "The last 10,000 changes and refused changes, made by this interface, the command line and the configuration file. " +
			"The archive has finished days as audit/<day>.jsonl for audit.retention.",
		Parameters: []*huma.Param{
			{
				Name: "by", In: "query", Description: "Only changes by this kind of actor",
				Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"operator", "token", "cli", "file", "nobody"}},
			},
			filter("who", "Only changes by this operator name or token id"), filter("what", "Only changes by this operation"),
			filter("subject", "Only changes of the object with this id or name"),
			{
				Name: "outcome", In: "query", Description: "Only changes with this outcome",
				Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{audit.Done, audit.Refused}},
			},
			filter("since", "Only changes since this date or RFC 3339 time"), filter("until", "Only changes before this date or RFC 3339 time"),
			filter("after", "The cursor of the previous page"),
			{
				Name: "limit", In: "query", Description: "Length of the page; 50 by default. Without it, a table has all entries",
				Schema: &huma.Schema{Type: huma.TypeInteger, Minimum: new(1.0), Maximum: new(float64(operator.MostPage))},
			},
			edge.FormatParameter(),
		},
		Responses: body.DeclareTable[operator.AuditList](g.OpenAPI().Components.Schemas, "The entries, newest first"),
	}, o.read)
}

func (o *auditOperations) read(x *edge.Request, r *http.Request) error {
	q := edge.NewQuery(r)
	in := operator.AuditQuery{
		By: q.Text("by"), Who: q.Text("who"), What: q.Text("what"), Subject: q.Text("subject"), Outcome: q.Text("outcome"),
		Since: q.Text("since"), Until: q.Text("until"),
		PageOf: operator.PageOf{After: q.Text("after"), Limit: q.Number("limit", 0, 1, operator.MostPage)},
	}
	read := o.ListAudit
	if q.CSV() {
		read = o.TableAudit
	}
	if err := q.Err(); err != nil {
		return err
	}
	list, err := read(r.Context(), actorOf(r.Context(), x), &in)
	if err != nil {
		return err
	}
	if !q.CSV() {
		return x.JSON(list)
	}
	out := edge.AnswerTable(x, "", []string{"time", "by", "who", "from", "what", "subject", "changes", "outcome", "reason", "request_id"})
	for _, entry := range list.Data {
		out.Write(auditRow(entry))
	}
	return out.End()
}
