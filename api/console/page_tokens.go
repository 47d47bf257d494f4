package console

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"modelrelay/api/edge"
	"modelrelay/api/operator"
	"modelrelay/storage/tokens"
)

// mostNames is the maximum number of tokens' names that a page reads: the maximum of a list by ids.
const mostNames = 100

// tokenNames maps the ids of the rows' tokens to names. Names that cannot be read are absent; the page then shows the ids.
func tokenNames[R any](v *View, rows []R, token func(R) string) map[string]string {
	var ids []string
	for _, row := range rows {
		if id := token(row); id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	names := make(map[string]string)
	list, _ := v.s.o.Operator.ListTokens(v.R.Context(), v.actor(), &operator.TokenQuery{IDs: ids[:min(len(ids), mostNames)]})
	for _, token := range list.Data {
		names[token.ID] = token.Name
	}
	return names
}

func tokenCell(v *View, id string, names map[string]string) Cell {
	return Cell{Text: cmp.Or(names[id], id), Link: linkOf(v, "tokens", id)}
}

type tokensData struct {
	Table  *Table
	Groups []string
	// Fields are the fields that the form may change of several tokens.
	Fields []field
}

// field is a field of a form with the key of its label.
type field struct{ Name, Word string }

// bulkFields are the fields that the form may change of several tokens: the group, the expiry, and each limit.
func bulkFields() []field {
	fields := []field{{"group", "token.group"}, {"expires", "token.expires"}}
	for _, limit := range tokens.ListLimits(tokens.Limits{}) {
		fields = append(fields, field{limit.Key, "limit." + limit.Key})
	}
	return fields
}

func tokensPage() page {
	set := func(do string, disabled bool) act {
		return act{roles: []edge.Role{Operator}, do: func(v *View) (string, any, error) {
			return changeTokens(v, operator.TokenChange{Change: tokens.Change{Disabled: &disabled}}, func(n int) question {
				return question{Text: v.T("tokens.ask."+do, "n", n), Yes: v.T("tokens." + do)}
			})
		}}
	}
	return page{
		name: "tokens", path: "/tokens", roles: staff(), nav: "tokens", key: "k",
		show: func(v *View) (any, error) { return showTokens(v) },
		csv:  func(data any) *Table { return data.(tokensData).Table }, //nolint:forcetypeassert // of show
		acts: map[string]act{
			"disable": set("disable", true), "enable": set("enable", false),
			"change": {roles: []edge.Role{Operator}, do: bulkChange},
		},
	}
}

func showTokens(v *View) (tokensData, error) {
	data := tokensData{Fields: bulkFields(), Table: &Table{
		ID: "tokens", Caption: "tokens.caption", Empty: "tokens.empty", CSV: true, Select: v.boxes("id"),
		Columns: columns("token.name", "token.state", "token.hint", "token.group", "token.models", "#token.limits", "#token.spent",
			"token.last_used", "token.expires"),
	}}
	sorts, err := v.s.o.Operator.SortsTokens(v.R.Context(), v.actor())
	if err != nil {
		return data, err
	}
	for i := range data.Table.Columns {
		column := &data.Table.Columns[i]
		if word := strings.TrimPrefix(column.Word, "token."); sorts && slices.Contains([]string{"name", "spent", "last_used", "expires"}, word) {
			column.Sort = word
		}
	}
	list, err := v.s.o.Operator.ListTokens(v.R.Context(), v.actor(), &operator.TokenQuery{
		Q: v.Query("q"), State: v.Query("state"), Group: v.Query("group"), Sort: v.Query("sort"),
		PageOf: operator.PageOf{After: v.Query("after")},
	})
	if err != nil {
		return data, err
	}
	for _, token := range list.Data {
		addToken(v, data.Table, token)
		data.Groups = append(data.Groups, token.Group)
	}
	slices.Sort(data.Groups)
	data.Groups = slices.Compact(data.Groups)
	data.Table.Next, data.Table.Partly = v.next(list.After), list.After != nil && len(list.Data) < operator.DefaultPage
	return data, nil
}

func addToken(v *View, table *Table, t operator.Token) {
	name := Cell{Text: t.Name, Link: v.To("tokens", t.ID)}
	if t.Seeded {
		name.Note = v.T("token.seeded")
	}
	limits := ""
	if n := *t.RequestsPerMinute; n > 0 {
		limits = v.T("token.per_minute", "n", number(n))
	}
	spent := Cell{}
	if budget := t.InForce.Budget; budget > 0 && t.Spent != nil {
		spent = Cell{Text: v.T("token.of", "spent", money(t.Spent), "budget", v.Money(budget)), Bar: Share(amount(*t.Spent), budget)}
	}
	table.add(t.ID, name, stateCell(t.State), Cell{Text: t.Hint, Code: true}, t.Group, strings.Join(t.Models, ", "), limits, spent, t.LastUsed,
		t.Expires)
}

// changeTokens changes the selected tokens. ask returns the question about their number.
func changeTokens(v *View, change operator.TokenChange, ask func(n int) question) (string, any, error) {
	return v.several(bulk{
		box: "id", column: "token.name", page: "tokens",
		names: func(ids []string) map[string]string { return tokenNames(v, ids, func(id string) string { return id }) },
		ask:   func(ids []string) (question, error) { return ask(len(ids)), nil },
		end: func(id string) error {
			_, err := v.s.o.Operator.UpdateToken(v.R.Context(), v.actor(), &operator.UpdateToken{
				TokenName: operator.TokenName{Token: id}, Body: operator.TokenUpdate{TokenChange: change},
			})
			return err
		},
	})
}

// bulkChange sets one field of the selected tokens.
func bulkChange(v *View) (string, any, error) {
	fields, name, value := bulkFields(), v.Form.Value("field"), v.Form.Value("value")
	at := slices.IndexFunc(fields, func(f field) bool { return f.Name == name })
	if at < 0 {
		return "", nil, invalid("", v.T("bulk.none"))
	}
	var change operator.TokenChange
	switch name {
	case "group":
		change.Group = &value
	case "expires":
		change.Expires = &value
	default:
		n, err := strconv.Atoi(value)
		if err != nil {
			return "", nil, invalid("value", v.T("bulk.number"))
		}
		tokens.SetLimit(&change.LimitChange, name, n)
	}
	return changeTokens(v, change, func(n int) question {
		return question{
			Text: v.T("tokens.ask.change", "field", v.T(fields[at].Word), "value", cmp.Or(value, "–"), "n", n), Yes: v.T("tokens.set.do"),
			Hidden: map[string]string{"field": name, "value": value},
		}
	})
}

func stateCell(state string) Cell {
	marks := map[string]string{"active": "working", "disabled": "paused", "expired": "waiting", "revoked": "failed"}
	return Cell{Word: "state." + state, Mark: cmp.Or(marks[state], "waiting")}
}
