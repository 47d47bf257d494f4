package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"modelrelay/api/console/inprocess"
)

// mostNames is how many names of tokens a page looks up: as many as the API gives at once.
const mostNames = 100

// tokenNames are the names of tokens by their ids, those that can be read: a page without them has ids.
func tokenNames(v *View, ids []string) map[string]string {
	ids = slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(ids))), func(id string) bool { return id == "" })
	if len(ids) == 0 {
		return nil
	}
	var list struct {
		Data []struct{ ID, Name string } `json:"data"`
	}
	names := make(map[string]string)
	if v.Get("/admin/tokens", url.Values{"id": ids[:min(len(ids), mostNames)]}, &list) == nil {
		for _, token := range list.Data {
			names[token.ID] = token.Name
		}
	}
	return names
}

// tokenCell leads to a token by its name.
func tokenCell(v *View, id string, names map[string]string) Cell {
	return Cell{Text: cmp.Or(names[id], id), Link: linkOf(v, "tokens", id)}
}

// Token is a token as the operator's operations show it.
type Token struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	State string `json:"state"`
	Hint  string `json:"hint"`
	Group string `json:"group"`

	Models     []string    `json:"models"`
	Operations []string    `json:"operations"`
	Networks   []string    `json:"networks"`
	Expires    *time.Time  `json:"expires"`
	Budget     float64     `json:"budget"` // its own; InForce is its own or its group's
	InForce    GroupLimits `json:"in_force"`
	Spent      *float64    `json:"spent"`
	Reserved   *float64    `json:"reserved"`

	TokenLimits
	TokenRest
}

// GroupLimits are all limits of a token, or of a group.
type GroupLimits struct {
	TokenLimits
	Budget float64 `json:"budget"`
}

// TokenLimits are its limits by their names; 0 is none.
type TokenLimits struct {
	RequestsPerMinute int `json:"requests_per_minute"`
	TokensPerMinute   int `json:"tokens_per_minute"`
	Concurrency       int `json:"concurrency"`
	MaxTasks          int `json:"max_tasks"`
	MaxSockets        int `json:"max_sockets"`
	ReadsPerMinute    int `json:"reads_per_minute"`
	MaxWatchers       int `json:"max_watchers"`
}

// TokenRest is what else there is of a token.
type TokenRest struct {
	Weight        int        `json:"weight"`
	Lane          string     `json:"lane"`
	WebhookURL    string     `json:"webhook_url"`
	WebhookSigned bool       `json:"webhook_signed"`
	Disabled      bool       `json:"disabled"`
	Seeded        bool       `json:"seeded"`
	CreatedAt     *time.Time `json:"created_at"`
	LastUsed      *time.Time `json:"last_used"`
	Version       int64      `json:"version"`
	Key           string     `json:"key"`
	WebhookSecret string     `json:"webhook_secret"`
}

type tokensData struct {
	// Ask is what a form would do to the selected ones, nil for nothing.
	Ask *tokensQuestion
	// Outcomes say what became of each of the selected ones.
	Outcomes []Outcome
	Table    *Table
	Groups   []string
}

// tokensQuestion asks whether several tokens shall be changed.
type tokensQuestion struct {
	// Do is the act: enable, disable or change; of the last, Value is what Field is set to, and Word names the field.
	Do, Field, Value, Word string
	Tokens                 []chosenToken
}

// chosenToken is a token that a form is about.
type chosenToken struct{ ID, Name string }

// Count is how many tokens it is about.
func (q tokensQuestion) Count() string { return strconv.Itoa(len(q.Tokens)) }

// tokensPage lists the tokens.
func tokensPage() page {
	return page{
		name: "tokens", path: "/tokens", roles: staff(), nav: "tokens", key: "k",
		show: showTokens,
		csv:  func(_ *View, data any) (*Table, error) { return data.(tokensData).Table, nil }, //nolint:forcetypeassert // of show
		acts: map[string]act{
			"disable": {roles: []Role{Operator}, do: func(v *View) (string, any, error) {
				return bulk(v, tokensQuestion{Do: "disable"}, map[string]any{"disabled": true})
			}},
			"enable": {roles: []Role{Operator}, do: func(v *View) (string, any, error) {
				return bulk(v, tokensQuestion{Do: "enable"}, map[string]any{"disabled": false})
			}},
			"change": {roles: []Role{Operator}, do: bulkChange},
		},
	}
}

func showTokens(v *View) (any, error) {
	q := url.Values{"limit": {"50"}}
	for _, name := range []string{"q", "state", "group", "sort", "after"} {
		if value := v.Query(name); value != "" {
			q.Set(name, value)
		}
	}
	var list struct {
		Data  []Token `json:"data"`
		After *string `json:"after"`
	}
	if err := v.Get("/admin/tokens", q, &list); err != nil {
		return nil, err
	}
	table := &Table{
		ID: "tokens", Caption: "tokens.caption", Empty: "tokens.empty", CSV: true, Select: selectable(v),
		Columns: []Column{
			{Word: "token.name", Sort: "name"},
			{Word: "token.state"},
			{Word: "token.hint"},
			{Word: "token.group"},
			{Word: "token.models"},
			{Word: "token.limits", Number: true},
			{Word: "token.spent", Number: true, Sort: "spent"},
			{Word: "token.last_used", Sort: "last_used"},
			{Word: "token.expires", Sort: "expires"},
		},
	}
	var groups []string
	for _, token := range list.Data {
		table.Rows = append(table.Rows, tokenRow(v, token))
		groups = append(groups, token.Group)
	}
	if list.After != nil && *list.After != "" {
		table.Next = v.With("after", *list.After)
	}
	slices.Sort(groups)
	return tokensData{Table: table, Groups: slices.Compact(groups)}, nil
}

func tokenRow(v *View, t Token) Row {
	name := Cell{Text: t.Name, Link: v.To("tokens", t.ID)}
	if t.Seeded {
		name.Note = v.T("token.seeded")
	}
	limits := Cell{}
	if t.RequestsPerMinute > 0 {
		limits.Text = v.T("token.per_minute", "n", number(t.RequestsPerMinute))
	}
	spent := Cell{}
	if budget := t.InForce.Budget; budget > 0 && t.Spent != nil {
		spent = Cell{Text: v.T("token.of", "spent", money(t.Spent), "budget", v.Money(budget)), Bar: Share(*t.Spent, budget)}
	}
	expires := Cell{}
	if t.Expires != nil {
		expires.Time = *t.Expires
	}
	used := Cell{}
	if t.LastUsed != nil {
		used.Time = *t.LastUsed
	}
	return Row{ID: t.ID, Cells: []Cell{
		name, stateCell(t.State),
		{Text: t.Hint, Code: true},
		{Text: t.Group},
		{Text: strings.Join(t.Models, ", ")},
		limits, spent, used, expires,
	}}
}

// selectable is the name of the boxes of rows, for who may change them.
func selectable(v *View) string {
	if v.May() {
		return "id"
	}
	return ""
}

// bulk changes the selected tokens, once their names are confirmed, and says of each how it went.
func bulk(v *View, ask tokensQuestion, change map[string]any) (string, any, error) {
	ids := slices.Compact(slices.Sorted(slices.Values(v.Form.Values("id"))))
	switch {
	case len(ids) == 0:
		return "", nil, &inprocess.Problem{Status: http.StatusBadRequest, Message: v.T("bulk.none")}
	case len(ids) > mostChosen:
		return "", nil, &inprocess.Problem{Status: http.StatusBadRequest, Message: v.T("bulk.many", "n", mostChosen)}
	}
	var outcomes []Outcome
	if v.Form.Value("sure") != "" {
		for _, id := range ids {
			outcome := Outcome{Name: id}
			var token Token
			if err := v.Do(http.MethodPatch, "/admin/tokens/"+inprocess.Segment(id), change, &token); err != nil {
				problem := inprocess.AsProblem(err)
				if problem == nil {
					return "", nil, err
				}
				outcome.Refused = problem.Message
			} else {
				outcome.Name = token.Name
			}
			outcomes = append(outcomes, outcome)
		}
	}
	data, err := showTokens(v)
	if err != nil && outcomes == nil {
		return "", nil, err
	}
	shown, _ := data.(tokensData)
	if err != nil { // what was done is told all the same, and why the list is not there
		problem := inprocess.AsProblem(err)
		if problem == nil {
			return "", nil, err
		}
		shown.Table = &Table{ID: "tokens", Caption: "tokens.caption", Empty: "tokens.empty"}
		outcomes = append(outcomes, Outcome{Name: v.T("tokens.caption"), Refused: problem.Message})
	}
	shown.Outcomes = outcomes
	if outcomes == nil {
		for _, id := range ids {
			one := chosenToken{ID: id, Name: id}
			for _, row := range shown.Table.Rows {
				if row.ID == id {
					one.Name = row.Cells[0].Text
				}
			}
			ask.Tokens = append(ask.Tokens, one)
		}
		shown.Ask, shown.Table.Chosen = &ask, ids
	}
	return "", shown, nil
}

// bulkChange sets one field of the selected tokens.
func bulkChange(v *View) (string, any, error) {
	field, value := v.Form.Value("field"), v.Form.Value("value")
	ask := tokensQuestion{Do: "change", Field: field, Value: value}
	switch field {
	case "group", "expires":
		ask.Word = "token." + field
		return bulk(v, ask, map[string]any{field: value})
	case "requests_per_minute", "tokens_per_minute", "max_tasks":
		n, err := strconv.Atoi(value)
		if err != nil {
			return "", nil, &inprocess.Problem{Status: http.StatusBadRequest, Param: "value", Message: v.T("bulk.number")}
		}
		ask.Word = "limit." + field
		return bulk(v, ask, map[string]any{field: n})
	default:
		return "", nil, &inprocess.Problem{Status: http.StatusBadRequest, Message: v.T("bulk.none")}
	}
}

// Outcome is what became of one of several things.
type Outcome struct{ Name, Refused string }

// stateCell is a token's state: a mark and a word.
func stateCell(state string) Cell {
	marks := map[string]string{"active": "working", "disabled": "paused", "expired": "waiting", "revoked": "failed"}
	return Cell{Word: "state." + state, Mark: cmp.Or(marks[state], "waiting")}
}

// tokenGroup is a group that a token may have, and in lines what it brings with it.
type tokenGroup struct {
	Name  string
	Lines []string
}

// groupsFor are the configured groups and a token's own, which may be in the file no more. nil: they could not be read.
func groupsFor(v *View, own string) []tokenGroup {
	var list struct {
		Data []struct {
			Name     string      `json:"name"`
			Channels []string    `json:"channels"`
			Defaults GroupLimits `json:"defaults"`
			Ceilings GroupLimits `json:"ceilings"`
			Forbid   []string    `json:"forbid"`
		} `json:"data"`
	}
	if v.Get("/admin/groups", nil, &list) != nil { // a name can be typed
		return nil
	}
	groups := make([]tokenGroup, 0, len(list.Data)+1)
	for _, group := range list.Data {
		shown := tokenGroup{Name: group.Name}
		for _, line := range []struct{ word, said string }{
			{"token.group.channels", strings.Join(group.Channels, ", ")},
			{"token.group.defaults", group.Defaults.say(v)},
			{"token.group.ceilings", group.Ceilings.say(v)},
			{"token.group.forbid", strings.Join(group.Forbid, ", ")},
		} {
			if line.said != "" {
				shown.Lines = append(shown.Lines, v.T(line.word, "what", line.said))
			}
		}
		if len(group.Channels) == 0 {
			shown.Lines = append(shown.Lines, v.T("token.group.nowhere"))
		}
		groups = append(groups, shown)
	}
	if own != "" && !slices.ContainsFunc(groups, func(g tokenGroup) bool { return g.Name == own }) {
		groups = append(groups, tokenGroup{Name: own, Lines: []string{v.T("token.group.unknown")}})
	}
	return groups
}

// say writes the limits that there are in a line, "" for none.
func (l GroupLimits) say(v *View) string {
	var parts []string
	values := l.values()
	for i, field := range limitFields() {
		if values[i] > 0 {
			parts = append(parts, v.T("limit."+field)+" "+number(values[i]))
		}
	}
	if l.Budget > 0 {
		parts = append(parts, v.T("token.budget")+" "+v.Money(l.Budget))
	}
	return strings.Join(parts, " · ")
}
