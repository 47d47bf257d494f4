package console

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"modelrelay/api/operator"
	"modelrelay/storage/audit"
)

func auditPage() page {
	return page{
		name: "audit", path: "/audit", roles: staff(), nav: "audit", key: "a",
		show: showAudit,
		csv:  func(data any) *Table { return data.(*Table) }, //nolint:forcetypeassert // of show
	}
}

func showAudit(v *View) (any, error) {
	list, err := v.s.o.Operator.ListAudit(v.R.Context(), v.actor(), &operator.AuditQuery{
		By: v.Query("by"), Who: v.Query("who"), What: v.Query("what"), Subject: v.Query("subject"), Outcome: v.Query("outcome"),
		Since: v.Query("since"), Until: v.Query("until"), PageOf: operator.PageOf{After: v.Query("after")},
	})
	if err != nil {
		return nil, err
	}
	table := auditTable(v, list.Data)
	table.Next = v.next(list.After)
	return table, nil
}

func auditTable(v *View, entries []audit.Entry) *Table {
	table := &Table{
		ID: "audit", Caption: "audit.caption", Empty: "audit.empty", CSV: true,
		Columns: columns("audit.time", "audit.who", "audit.what", "audit.subject", "audit.changes", "audit.from", "audit.outcome"),
	}
	for _, entry := range entries {
		outcome := Cell{Word: "audit.done", Mark: "done"}
		if entry.Outcome != audit.Done {
			outcome = Cell{Word: "audit.refused", Mark: "failed", Note: entry.Reason}
		}
		by := string(entry.By)
		who := Cell{Text: entry.Who, Link: auditLink(v, "who", entry.Who)}
		if by != entry.Who {
			who.Note = v.T("audit.by." + by)
		}
		if entry.Who == "" {
			who = Cell{Text: who.Note}
		}
		what := Cell{Text: entry.What, Code: true, Link: auditLink(v, "what", entry.What)}
		subject := Cell{Text: entry.Subject, Code: true, Link: auditLink(v, "subject", entry.Subject)}
		table.add("", entry.Time, who, what, subject, changesOf(entry), entry.From, outcome)
	}
	return table
}

// auditLink returns the address of the audit log with a filter, "" without a value.
func auditLink(v *View, name, value string) string {
	switch {
	case value == "":
		return ""
	case v.Page == "audit":
		return v.With(name, value)
	}
	return v.List("audit", name, value)
}

func changesOf(entry audit.Entry) string {
	lines := make([]string, 0, len(entry.Changes))
	for _, change := range entry.Changes {
		old, now := readable(change.Old), readable(change.New)
		if old == now { // the value was added or removed, and is empty
			old, now = cmp.Or(string(change.Old), "–"), cmp.Or(string(change.New), "–")
		}
		lines = append(lines, change.Field+": "+old+" → "+now)
	}
	return strings.Join(lines, "\n")
}

// readable formats a JSON value without the escapes for HTML, which templates add. An empty value is a dash.
func readable(raw json.RawMessage) string {
	switch string(raw) {
	case "", "null", `""`, "[]":
		return "–"
	}
	value := jsontext.Value(raw).Clone()
	_ = value.Format() // text that is not JSON stays as it is
	return string(value)
}
