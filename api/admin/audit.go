package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/api/edge"
	"modelrelay/storage/audit"
	"modelrelay/storage/tokens"
)

// Auditor keeps and reads what was changed, as audit.Log does.
type Auditor interface {
	Record(ctx context.Context, entry audit.Entry)
	Page(ctx context.Context, filter audit.Filter, cursor string, limit int) (found []audit.Entry, next string, err error)
}

// Lengths of a page of the audit log. A table has all that there is.
const (
	auditPage     = 50
	auditPageMost = 500
)

type auditList struct {
	Object string       `json:"object" enum:"list"`
	Data   []auditEntry `json:"data" nullable:"false"`
	After  *string      `json:"after" doc:"What to send as after for the next page; null at the end"`
}

// auditEntry is an entry as operators read it.
type auditEntry struct {
	Time      time.Time     `json:"time"`
	By        audit.Kind    `json:"by" enum:"operator,token,cli,file,nobody" doc:"What acted: an operator, a token's holder, the command line, the configuration file when it is read again, or somebody whom no key and no link names"`
	Who       string        `json:"who,omitempty" doc:"The operator's name, the token's id"`
	From      string        `json:"from,omitempty" doc:"Address, or the host of a command or process"`
	What      string        `json:"what" doc:"The operation in a word, such as create_token of adminCreateToken; sign_in, sign_out, view_video, try_as_token, reload"`
	Subject   string        `json:"subject,omitempty" doc:"The id or name that it is about"`
	Changes   []auditChange `json:"changes,omitempty"`
	Outcome   string        `json:"outcome" enum:"done,refused"`
	Reason    string        `json:"reason,omitempty" doc:"Why it was refused"`
	RequestID string        `json:"request_id,omitempty"`
}

// auditChange is a field that has another value now.
type auditChange struct {
	Field string `json:"field"`
	Old   any    `json:"old,omitempty" doc:"Absent: there was none"`
	New   any    `json:"new,omitempty" doc:"Absent: there is none now"`
}

func newAuditEntry(e audit.Entry) auditEntry {
	entry := auditEntry{
		Time: e.Time, By: e.By, Who: e.Who, From: e.From, What: e.What, Subject: e.Subject, Outcome: e.Outcome, Reason: e.Reason, RequestID: e.RequestID,
	}
	for _, change := range e.Changes {
		entry.Changes = append(entry.Changes, auditChange{change.Field, valueOf(change.Old), valueOf(change.New)})
	}
	return entry
}

func valueOf(raw json.RawMessage) any {
	if len(raw) == 0 {
		return nil
	}
	return raw
}

func auditHead() []string {
	return []string{"time", "by", "who", "from", "what", "subject", "changes", "outcome", "reason", "request_id"}
}

// auditRow is an entry as a row of a table.
func auditRow(e audit.Entry) []string {
	changes := make([]string, len(e.Changes))
	for i, change := range e.Changes {
		changes[i] = change.String()
	}
	return []string{
		e.Time.Format(time.RFC3339), string(e.By), e.Who, e.From, e.What, e.Subject, strings.Join(changes, "; "), e.Outcome, e.Reason, e.RequestID,
	}
}

// auditOperations read the audit log.
type auditOperations struct{ log Auditor }

// add adds the audit log.
func (o *auditOperations) add(g *edge.Group) {
	text := &huma.Schema{Type: huma.TypeString}
	responses := body.DeclareAnswer[auditList](g.OpenAPI().Components.Schemas, "The entries, newest first")
	responses["200"].Content["text/csv"] = &huma.MediaType{Schema: text}
	filter := func(name, doc string) *huma.Param {
		return &huma.Param{Name: name, In: "query", Schema: text, Description: doc}
	}
	g.Handle(huma.Operation{
		OperationID: "adminAudit", Method: http.MethodGet, Path: Root + "/audit", Summary: "Who changed what",
		Description: "The last 10,000 changes and tries of changes, by this interface, the command line and the configuration file. " +
			"Finished days stand in the archive as audit/<day>.jsonl for audit.retention.",
		Parameters: []*huma.Param{
			{Name: "by", In: "query", Description: "Those of one kind", Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"operator", "token", "cli", "file", "nobody"}}},
			filter("who", "Those of an operator's name or a token's id"), filter("what", "Those of an operation's word"),
			filter("subject", "Those about an id or a name"),
			{Name: "outcome", In: "query", Description: "Those that ended so", Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{audit.Done, audit.Refused}}},
			filter("since", "Those since a date or a time of RFC 3339"), filter("until", "Those before a date or such a time"),
			filter("after", "The cursor of the page before"),
			{
				Name: "limit", In: "query", Description: "Length of the page; 50 where it is absent. A table without it has everything",
				Schema: &huma.Schema{Type: huma.TypeInteger, Minimum: new(1.0), Maximum: new(float64(auditPageMost))},
			},
			{
				Name: "format", In: "query", Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"json", "csv"}},
				Description: "csv also by the header Accept: text/csv",
			},
		},
		Responses: responses,
	}, o.read)
}

func (o *auditOperations) read(x *edge.Request, r *http.Request) error {
	q := edge.NewQuery(r)
	filter := audit.Filter{
		By: q.Text("by"), Who: q.Text("who"), What: q.Text("what"), Subject: q.Text("subject"), Outcome: q.Text("outcome"),
		Since: q.Moment("since"), Until: q.Moment("until"),
	}
	table, standard, after := q.CSV(), auditPage, q.Text("after")
	if table {
		standard = audit.Recent
	}
	limit := q.Number("limit", standard, 1, auditPageMost)
	if !audit.IsCursor(after) {
		q.Refuse("after", "is no cursor of this list.")
	}
	if err := q.Err(); err != nil {
		return err
	}
	found, next, err := o.log.Page(r.Context(), filter, after, limit)
	if err != nil {
		return storeFault("entry", "", err)
	}
	if table {
		out := edge.AnswerTable(x, "", auditHead())
		for _, entry := range found {
			out.Write(auditRow(entry))
		}
		return out.End()
	}
	list := auditList{Object: "list", Data: make([]auditEntry, len(found))}
	for i, entry := range found {
		list.Data[i] = newAuditEntry(entry)
	}
	if next != "" {
		list.After = &next
	}
	return x.JSON(list)
}

// receiverHost is the scheme and host of a webhook's address, whose other parts may be secret; "" for none.
func receiverHost(address string) string {
	parsed, err := url.Parse(address)
	if err != nil || address == "" {
		return ""
	}
	return (&url.URL{Scheme: parsed.Scheme, Host: parsed.Host}).String()
}

// viewed reports whether a request is of an operator who may change nothing.
func viewed(ctx context.Context) bool {
	by := edge.Of(ctx).Act.By
	return by != nil && by.Role == edge.RoleViewer
}

// TokenChanges are the fields in which a token differs, for the audit log. No secret is among them, and of a webhook's
// address scheme and host alone.
func TokenChanges(before, after tokens.Token) []audit.Change {
	now := time.Now()
	shown := func(t tokens.Token) adminToken {
		t.WebhookURL = receiverHost(t.WebhookURL)
		return newToken(t, now)
	}
	changes := slices.DeleteFunc(audit.Diff(shown(before), shown(after)), func(c audit.Change) bool {
		return c.Field == "version" || c.Field == "created_at" // which the entry's own time says
	})
	if before.WebhookSecret != after.WebhookSecret {
		changes = append(changes, audit.Set("webhook_secret", "changed"))
	}
	return changes
}
