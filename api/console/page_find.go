package console

import (
	"net/url"
	"slices"
	"strings"

	"modelrelay/api/console/inprocess"
	"modelrelay/api/operator"
)

// found is one thing that a search found.
type found struct{ Kind, Name, Link string }

type findData struct {
	Query string
	Found []found
	// Partly: something could not be searched.
	Partly bool
}

// mostFound bounds what a search shows of one kind.
const mostFound = 20

// findPage leads from a name or an id to what it names.
func findPage() page {
	return page{
		name: "find", path: "/find", roles: everybody(),
		show: func(v *View) (any, error) { return search(v, strings.TrimSpace(cut(v.Query("q"), 200))), nil },
	}
}

// hasPage tells whether there is a page for who has signed in.
func hasPage(v *View, path string) bool {
	return slices.ContainsFunc(v.s.pages, func(p page) bool { return p.path == path && p.admits(v.Who.Role) })
}

// search looks everywhere. An id says by its beginning what it is of.
func search(v *View, q string) findData {
	data := findData{Query: q}
	if q == "" {
		return data
	}
	add := func(kind, path, name string, to ...string) {
		if hasPage(v, path) {
			data.Found = append(data.Found, found{kind, name, v.To(to...)})
		}
	}
	switch {
	case strings.HasPrefix(q, "video_"), strings.HasPrefix(q, "task_"):
		add("find.task", "/tasks/{id}", q, "tasks", q)
		add("find.call", "/calls/{id}", q, "calls", q) // the one that made it
		return data
	case strings.HasPrefix(q, "tok_"):
		add("find.token", "/tokens/{token}", q, "tokens", q)
		return data
	}
	if v.Staff() {
		tokens, err := v.s.o.Operator.ListTokens(v.R.Context(), v.actor(), &operator.TokenQuery{Q: q, PageOf: operator.PageOf{Limit: mostFound}})
		data.Partly = err != nil
		for _, token := range tokens.Data {
			add("find.token", "/tokens/{token}", token.Name, "tokens", token.ID)
		}
		data.names(v, add, "/admin/channels", "find.channel", "/channels/{name}", "channels")
		data.names(v, add, "/admin/models", "find.model", "/models", "models")
	} else {
		data.names(v, add, "/v1/models", "find.model", "/models", "models")
	}
	if strings.HasPrefix(q, "req_") || len(q) >= 16 && !strings.ContainsAny(q, " /") { // ours, a trace's or a vendor's
		add("find.call", "/calls/{id}", q, "calls", q)
	}
	return data
}

// names adds what a list of the API has with the text in its name.
func (d *findData) names(v *View, add func(kind, path, name string, to ...string), list, kind, path, page string) {
	var names struct {
		Data []struct {
			ID   string `json:"id"`
			Name string `json:"name"`
		} `json:"data"`
	}
	if err := v.Get(list, nil, &names); err != nil {
		d.Partly = d.Partly || !missing(err)
		return
	}
	n := 0
	for _, one := range names.Data {
		name := one.ID + one.Name // a list has one of them
		if !strings.Contains(strings.ToLower(name), strings.ToLower(d.Query)) || n == mostFound {
			continue
		}
		n++
		if page == "models" {
			if hasPage(v, path) {
				d.Found = append(d.Found, found{kind, name, v.To(page) + "?" + url.Values{"q": {name}}.Encode()})
			}
			continue
		}
		add(kind, path, name, page, name)
	}
}

func missing(err error) bool {
	problem := inprocess.AsProblem(err)
	return problem != nil && problem.Missing()
}
