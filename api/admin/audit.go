package admin

import (
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/api/edge"
	"modelrelay/api/operator"
	"modelrelay/storage/audit"
)

func addAudit(g *edge.Group, s *operator.Service) {
	text := &huma.Schema{Type: huma.TypeString}
	words := func(list ...any) *huma.Schema { return &huma.Schema{Type: huma.TypeString, Enum: list} }
	limit := &huma.Schema{Type: huma.TypeInteger, Minimum: new(1.0), Maximum: new(float64(operator.MostPage))}
	g.Handle(huma.Operation{
		OperationID: "adminAudit", Method: http.MethodGet, Path: Root + "/audit", Summary: "List changes",
		Description: "The last 10,000 changes and refused changes, made by this interface, the command line and the configuration file. " +
			"The archive has finished days as audit/<day>.jsonl for audit.retention.",
		Parameters: edge.TableParameters([]*huma.Param{
			{Name: "by", Schema: words("operator", "token", "cli", "file", "nobody"), Description: "Only changes by this kind of actor"},
			{Name: "who", Schema: text, Description: "Only changes by this operator name or token id"},
			{Name: "what", Schema: text, Description: "Only changes by this operation"},
			{Name: "subject", Schema: text, Description: "Only changes of the object with this id or name"},
			{Name: "outcome", Schema: words(audit.Done, audit.Refused), Description: "Only changes with this outcome"},
			{Name: "since", Schema: text, Description: "Only changes since this date or RFC 3339 time"},
			{Name: "until", Schema: text, Description: "Only changes before this date or RFC 3339 time"},
			{Name: "after", Schema: text, Description: "The cursor of the previous page"},
			{Name: "limit", Schema: limit, Description: "Length of the page; 50 by default. Without it, a table has all entries"},
		}...),
		Responses: body.DeclareTable[operator.AuditList](g.OpenAPI().Components.Schemas, "The entries, newest first"),
	}, func(x *edge.Request, r *http.Request) error { return serveAudit(x, r, s) })
}

func serveAudit(x *edge.Request, r *http.Request, s *operator.Service) error {
	q := edge.NewQuery(r)
	in := operator.AuditQuery{
		By: q.Text("by"), Who: q.Text("who"), What: q.Text("what"), Subject: q.Text("subject"), Outcome: q.Text("outcome"),
		Since: q.Text("since"), Until: q.Text("until"),
		PageOf: operator.PageOf{After: q.Text("after"), Limit: q.Number("limit", 0, 1, operator.MostPage)},
	}
	read := s.ListAudit
	if q.CSV() {
		read = s.TableAudit
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
		out.Write([]string{
			entry.Time.Format(time.RFC3339), string(entry.By), entry.Who, entry.From, entry.What, entry.Subject, entry.Changes.String(),
			entry.Outcome, entry.Reason, entry.RequestID,
		})
	}
	return out.End()
}
