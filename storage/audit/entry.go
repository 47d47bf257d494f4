package audit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"
)

// Kind is the kind of an actor.
type Kind string

// The kinds of actors.
const (
	Operator Kind = "operator" // the operator's name is in Entry.Who
	Token    Kind = "token"    // the token's id is in Entry.Who
	CLI      Kind = "cli"      // the command line, which accesses the stores directly
	File     Kind = "file"     // the configuration file, when it is reloaded
	// Unauthenticated is a client without a credential: a refused sign-in.
	Unauthenticated Kind = "nobody"
)

// The outcomes.
const (
	Done    = "done"
	Refused = "refused"
)

// The actions that are not operations of operators. Those are named as in the OpenAPI document.
const (
	SignIn     = "sign_in"
	SignOut    = "sign_out"
	TryAsToken = "try_as_token" // a call by an operator as a token
	Reload     = "reload"
)

// The bounds of an entry, in bytes.
const (
	mostText    = 1_000
	mostValue   = 500
	mostChanges = 50
)

// Entry is one completed or refused action, as it is stored and shown. It holds no secret.
type Entry struct {
	// Time is in UTC; Record sets it if it is zero.
	Time time.Time `json:"time"`
	By   Kind      `json:"by" enum:"operator,token,cli,file,nobody" doc:"Kind of actor: an operator, the holder of a token, the command line, the configuration file when the gateway reads it again, or an unauthenticated client"`
	Who  string    `json:"who,omitempty" doc:"The operator's name or the token's id"`
	// From is the client's address, or the host of a command.
	From    string  `json:"from,omitempty" doc:"Client address, or the host of a command or process"`
	What    string  `json:"what" doc:"The operation, such as create_token for adminCreateToken; also sign_in, sign_out, view_video, try_as_token, reload"`
	Subject string  `json:"subject,omitempty" doc:"The id or name of the changed object"`
	Changes Changes `json:"changes,omitempty"`
	Outcome string  `json:"outcome" enum:"done,refused"`
	// Reason is why the action was refused.
	Reason    string `json:"reason,omitempty" doc:"Reason of the refusal"`
	RequestID string `json:"request_id,omitempty"`
}

// Change is a changed field. Both values are JSON; an absent one is nil.
type Change struct {
	Field string          `json:"field"`
	Old   json.RawMessage `json:"old,omitempty" doc:"Value before the change; absent: none"`
	New   json.RawMessage `json:"new,omitempty" doc:"Value after the change; absent: none"`
}

// String returns "field: old → new" with the values as JSON.
func (c Change) String() string {
	value := func(raw json.RawMessage) string { return cmp.Or(string(raw), "–") }
	return c.Field + ": " + value(c.Old) + " → " + value(c.New)
}

// Changes are the changes of one entry.
type Changes []Change

// String returns all changes in one line.
func (all Changes) String() string {
	lines := make([]string, len(all))
	for i, change := range all {
		lines[i] = change.String()
	}
	return strings.Join(lines, "; ")
}

// Set returns the Change of a field that had no value.
func Set(field string, value any) Change { return Change{Field: field, New: text(value)} }

// Diff returns the fields of two documents that differ, by name; nil has none. They encode as JSON objects without secrets.
func Diff(before, after any) []Change {
	old, now := members(before), members(after)
	all := make(map[string]json.RawMessage)
	maps.Copy(all, old)
	maps.Copy(all, now)
	var changes []Change
	for _, field := range slices.Sorted(maps.Keys(all)) {
		if !bytes.Equal(old[field], now[field]) {
			changes = append(changes, Change{Field: field, Old: old[field], New: now[field]})
		}
	}
	return changes
}

func members(document any) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	if raw, err := json.Marshal(document); err == nil {
		_ = json.Unmarshal(raw, &fields) // a document that is not an object has no fields
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

// cutJSON replaces a long value by its beginning, as a JSON string.
func cutJSON(value json.RawMessage) json.RawMessage {
	if len(value) <= mostValue {
		return value
	}
	return text(cut(string(value), mostValue))
}

func (e Entry) attrs() []slog.Attr {
	list := []slog.Attr{slog.String("by", string(e.By))}
	for _, field := range [][2]string{
		{"who", e.Who},
		{"from", e.From},
		{"what", e.What},
		{"subject", e.Subject},
		{"outcome", e.Outcome},
		{"reason", e.Reason},
		{"request_id", e.RequestID},
	} {
		if field[1] != "" {
			list = append(list, slog.String(field[0], field[1]))
		}
	}
	if len(e.Changes) > 0 {
		list = append(list, slog.Any("changes", e.Changes))
	}
	return list
}
