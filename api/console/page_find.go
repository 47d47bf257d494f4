package console

import (
	"slices"
	"strings"

	"modelrelay/api/operator"
)

type found struct{ Kind, Name, Link string }

type findData struct {
	Query string
	Found []found
	// More are links to lists that continue the search.
	More []found
	// Partly: a part of the search failed.
	Partly bool
}

// mostFound bounds the shown results of one kind.
const mostFound = 20

// findPage finds things by a name or an id.
func findPage() page {
	return page{
		name: "find", path: "/find", roles: allRoles(),
		show: func(v *View) (any, error) { return search(v, strings.TrimSpace(cut(v.Query("q"), 200))), nil },
	}
}

// search searches everything. The prefix of an id determines its kind.
func search(v *View, q string) findData {
	data := findData{Query: q}
	if q == "" {
		return data
	}
	add := func(kind, path, name string, to ...string) {
		if slices.ContainsFunc(v.s.pages, func(p page) bool { return p.path == path && p.admits(v.User.Role) }) {
			data.Found = append(data.Found, found{kind, name, v.To(to...)})
		}
	}
	switch {
	case strings.HasPrefix(q, "video_"), strings.HasPrefix(q, "task_"):
		add("find.task", "/tasks/{id}", q, "tasks", q)
		add("find.call", "/calls/{id}", q, "calls", q) // the call that created the task
		return data
	case strings.HasPrefix(q, "tok_"):
		add("find.token", "/tokens/{token}", q, "tokens", q)
		return data
	}
	if v.IsOperatorOrViewer() {
		data.staff(v)
	} else {
		data.own(v)
	}
	if strings.HasPrefix(q, "req_") || len(q) >= 16 && !strings.ContainsAny(q, " /") { // an id of this gateway, a trace or a vendor
		add("find.call", "/calls/{id}", q, "calls", q)
	}
	return data
}

// staff finds tokens, channels and models for operators and viewers. It finds an exact name by one lookup.
func (d *findData) staff(v *View) {
	s, by := v.s.o.Operator, v.actor()
	tokens, err := s.ListTokens(v.R.Context(), by, &operator.TokenQuery{Q: d.Query, PageOf: operator.PageOf{Limit: mostFound}})
	for _, token := range tokens.Data {
		d.Found = append(d.Found, found{"find.token", token.Name, v.To("tokens", token.ID)})
	}
	d.end(v, "find.token", "tokens", tokens.After != nil, err)
	in := operator.NamesOf{Q: d.Query, Limit: mostFound}
	names, more, err := s.FindNames(by, &in, s.Router.ChannelNames())
	for _, name := range names {
		d.Found = append(d.Found, found{"find.channel", name, v.To("channels", name)})
	}
	d.end(v, "find.channel", "channels", more, err)
	names, more, err = s.FindNames(by, &in, s.Router.ModelNames())
	for _, name := range names {
		d.Found = append(d.Found, found{"find.model", name, v.List("models", "q", name)})
	}
	d.end(v, "find.model", "models", more, err)
}

func (d *findData) own(v *View) {
	token, err := v.holder(1)
	if err != nil {
		d.Partly = true
		return
	}
	models, next, err := ownModels(v, token, operator.NamesOf{Q: d.Query, Limit: mostFound})
	for _, model := range models {
		d.Found = append(d.Found, found{"find.model", model.ID, v.List("models", "q", model.ID)})
	}
	d.end(v, "find.model", "models", next != nil, err)
}

// end records the end of the search of one kind: its list has more, or it failed.
func (d *findData) end(v *View, kind, page string, more bool, err error) {
	d.Partly = d.Partly || err != nil
	if more {
		d.More = append(d.More, found{kind, d.Query, v.List(page, "q", d.Query)})
	}
}
