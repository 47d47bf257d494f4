package console

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/url"
	"strings"
	"time"
)

// auditEntry is an entry of the audit log as the operator's operations show it.
type auditEntry struct {
	Time    time.Time `json:"time"`
	By      string    `json:"by"`
	Who     string    `json:"who"`
	From    string    `json:"from"`
	What    string    `json:"what"`
	Subject string    `json:"subject"`
	Outcome string    `json:"outcome"`
	Reason  string    `json:"reason"`
	Changes []struct {
		Field string          `json:"field"`
		Old   json.RawMessage `json:"old"`
		New   json.RawMessage `json:"new"`
	} `json:"changes"`
}

func auditPage() page {
	return page{
		name: "audit", path: "/audit", roles: staff(), nav: "audit", key: "a",
		show: showAudit,
		csv:  func(_ *View, data any) (*Table, error) { return data.(*Table), nil }, //nolint:forcetypeassert // of show
	}
}

func showAudit(v *View) (any, error) {
	q := url.Values{"limit": {"50"}}
	for _, name := range []string{"by", "who", "what", "subject", "outcome", "since", "until", "after"} {
		if value := v.Query(name); value != "" {
			q.Set(name, value)
		}
	}
	var list auditList
	if err := v.Get("/admin/audit", q, &list); err != nil {
		return nil, err
	}
	table := auditTable(v, list.Data)
	if list.After != nil && *list.After != "" {
		table.Next = v.With("after", *list.After)
	}
	return table, nil
}

// auditList is a page of the audit log.
type auditList struct {
	Data  []auditEntry `json:"data"`
	After *string      `json:"after"`
}

func auditTable(v *View, entries []auditEntry) *Table {
	table := &Table{
		ID: "audit", Caption: "audit.caption", Empty: "audit.empty", CSV: true,
		Columns: []Column{
			{Word: "audit.time"}, {Word: "audit.who"}, {Word: "audit.what"}, {Word: "audit.subject"}, {Word: "audit.changes"}, {Word: "audit.from"}, {Word: "audit.outcome"},
		},
	}
	for _, entry := range entries {
		outcome := Cell{Text: entry.Outcome, Mark: "failed", Note: entry.Reason}
		switch entry.Outcome {
		case "done":
			outcome = Cell{Word: "audit.done", Mark: "done"}
		case "refused":
			outcome.Text, outcome.Word = "", "audit.refused"
		}
		who := Cell{Text: entry.Who, Link: auditLink(v, "who", entry.Who)}
		by := entry.By
		if v.s.words.Has("audit.by." + by) {
			by = v.T("audit.by." + by)
		}
		if entry.Who == "" {
			who = Text(by)
		} else if entry.By != entry.Who {
			who.Note = by
		}
		table.Rows = append(table.Rows, Row{Cells: []Cell{
			When(entry.Time), who,
			{Text: entry.What, Code: true, Link: auditLink(v, "what", entry.What)},
			{Text: entry.Subject, Code: true, Link: auditLink(v, "subject", entry.Subject)},
			Text(changesOf(entry)), Text(entry.From), outcome,
		}})
	}
	return table
}

// auditLink is the audit log with a filter, "" for one without a value.
func auditLink(v *View, name, value string) string {
	switch {
	case value == "":
		return ""
	case v.Page == "audit":
		return v.With(name, value)
	}
	return v.To("audit") + "?" + url.Values{name: {value}}.Encode()
}

// changesOf are the changes of an entry, a line each.
func changesOf(entry auditEntry) string {
	lines := make([]string, 0, len(entry.Changes))
	for _, change := range entry.Changes {
		old, now := readable(change.Old), readable(change.New)
		if old == now { // it is there by now, or not any more, and says nothing
			old, now = cmp.Or(string(change.Old), "–"), cmp.Or(string(change.New), "–")
		}
		lines = append(lines, change.Field+": "+old+" → "+now)
	}
	return strings.Join(lines, "\n")
}

// readable writes a value of JSON without the escapes that are for HTML: templates have their own. What says nothing is a dash.
func readable(raw json.RawMessage) string {
	switch string(raw) {
	case "", "null", `""`, "[]":
		return "–"
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if decoder.Decode(&value) != nil || encoder.Encode(value) != nil {
		return string(raw)
	}
	return strings.TrimSpace(out.String())
}
