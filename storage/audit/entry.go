package audit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"log/slog"
	"strings"
	"time"
)

// Kind is what somebody who acted is.
type Kind string

// Kinds of those who act.
const (
	Operator Kind = "operator" // who is its name
	Token    Kind = "token"    // who is the token's id
	CLI      Kind = "cli"      // the command line, which works on the stores directly
	File     Kind = "file"     // the configuration file, when it is read again
	Nobody   Kind = "nobody"   // somebody whom no key and no link names: a sign-in that was refused
)

// Outcomes.
const (
	Done    = "done"
	Refused = "refused"
)

// What is done beside the operator's operations, whose words are their names in the OpenAPI document.
const (
	SignIn     = "sign_in"
	SignOut    = "sign_out"
	ViewVideo  = "view_video"   // of a token, by an operator
	TryAsToken = "try_as_token" // a call that an operator made as a token
	Reload     = "reload"
)

// Bounds of an entry, in bytes, so that nobody fills the store with one.
const (
	mostText    = 1_000
	mostValue   = 500
	mostChanges = 50
)

// Entry is one thing that somebody did or tried, as it is kept and as operators read it. It holds no secret.
type Entry struct {
	// Time is when, in UTC; Record sets it where it is zero.
	Time time.Time `json:"time"`
	By   Kind      `json:"by" enum:"operator,token,cli,file,nobody" doc:"What acted: an operator, a token's holder, the command line, the configuration file when it is read again, or somebody whom no key and no link names"`
	Who  string    `json:"who,omitempty" doc:"The operator's name, the token's id"`
	// From is the address that it came from, or the host of a command.
	From    string   `json:"from,omitempty" doc:"Address, or the host of a command or process"`
	What    string   `json:"what" doc:"The operation in a word, such as create_token of adminCreateToken; sign_in, sign_out, view_video, try_as_token, reload"`
	Subject string   `json:"subject,omitempty" doc:"The id or name that it is about"`
	Changes []Change `json:"changes,omitempty"`
	Outcome string   `json:"outcome" enum:"done,refused"`
	// Reason is why it was refused.
	Reason    string `json:"reason,omitempty" doc:"Why it was refused"`
	RequestID string `json:"request_id,omitempty"`
}

// Change is a field that has another value now. Both are JSON; an absent one is nil.
type Change struct {
	Field string          `json:"field"`
	Old   json.RawMessage `json:"old,omitempty" doc:"Absent: there was none"`
	New   json.RawMessage `json:"new,omitempty" doc:"Absent: there is none now"`
}

// String is the change for people: field: old → new, the values as JSON.
func (c Change) String() string {
	value := func(raw json.RawMessage) string { return cmp.Or(string(raw), "–") }
	return c.Field + ": " + value(c.Old) + " → " + value(c.New)
}

// changes are those of one entry. A log whose lines are no JSON has them as text.
type changes []Change

func (all changes) String() string {
	lines := make([]string, len(all))
	for i, change := range all {
		lines[i] = change.String()
	}
	return strings.Join(lines, "; ")
}

// Set is a Change to a value from none.
func Set(field string, value any) Change { return Change{Field: field, New: text(value)} }

// Diff are the fields of two documents that differ, in the order of their names; nil is a document without fields. They must
// encode as JSON objects, and hold no secret that shows itself.
func Diff(before, after any) []Change {
	old, now := members(before), members(after)
	var changes []Change
	for _, field := range union(old, now) {
		if !bytes.Equal(old[field], now[field]) {
			changes = append(changes, Change{Field: field, Old: old[field], New: now[field]})
		}
	}
	return changes
}

func members(document any) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	if raw, err := json.Marshal(document); err == nil {
		_ = json.Unmarshal(raw, &fields) // what is no object has no fields
	}
	return fields
}

func text(value any) json.RawMessage {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	return raw
}

// bounded is the entry as it is kept.
func (e Entry) bounded(now time.Time) Entry {
	if e.Time.IsZero() {
		e.Time = now
	}
	e.Time = e.Time.UTC().Truncate(time.Millisecond)
	if e.Outcome == "" {
		e.Outcome = Done
		if e.Reason != "" {
			e.Outcome = Refused
		}
	}
	for _, field := range []*string{&e.Who, &e.From, &e.What, &e.Subject, &e.Reason, &e.RequestID} {
		*field = cut(*field, mostText)
	}
	changes := e.Changes[:min(len(e.Changes), mostChanges)]
	e.Changes = make([]Change, len(changes))
	for i, change := range changes {
		e.Changes[i] = Change{Field: cut(change.Field, mostValue), Old: cutJSON(change.Old), New: cutJSON(change.New)}
	}
	return e
}

func cut(text string, most int) string {
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.ToValidUTF8(text, "�")
}

// cutJSON shows the beginning of a long value as a text.
func cutJSON(value json.RawMessage) json.RawMessage {
	if len(value) <= mostValue {
		return value
	}
	return text(cut(string(value), mostValue))
}

// attrs are the entry's in the log.
func (e Entry) attrs() []slog.Attr {
	list := []slog.Attr{slog.String("by", string(e.By))}
	for _, field := range [][2]string{{"who", e.Who}, {"from", e.From}, {"what", e.What}, {"subject", e.Subject}, {"outcome", e.Outcome}, {"reason", e.Reason}, {"request_id", e.RequestID}} {
		if field[1] != "" {
			list = append(list, slog.String(field[0], field[1]))
		}
	}
	if len(e.Changes) > 0 {
		list = append(list, slog.Any("changes", changes(e.Changes)))
	}
	return list
}
