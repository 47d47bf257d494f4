package console

import (
	"net/http"
	"net/url"
	"slices"
	"time"

	"modelrelay/api/console/chart"
	"modelrelay/api/console/snippets"
)

// ownToken is a token as it sees itself.
type ownToken struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	Hint       string     `json:"hint"`
	Group      string     `json:"group"`
	Expires    *time.Time `json:"expires"`
	Models     []string   `json:"models"`
	Operations []string   `json:"operations"`
	whatIsLeft
}

// whatIsLeft is what is left of a token's limits and money.
type whatIsLeft struct {
	Limits struct {
		Requests    ownWindow `json:"requests_per_minute"`
		Tokens      ownWindow `json:"tokens_per_minute"`
		Concurrency int       `json:"concurrency"`
		MaxTasks    int       `json:"max_tasks"`
	} `json:"limits"`
	Budget *struct {
		Limit     float64 `json:"limit"`
		Spent     float64 `json:"spent"`
		Reserved  float64 `json:"reserved"`
		Remaining float64 `json:"remaining"`
	} `json:"budget"`
}

// leftOf reads what is left of a token, for who may see the token; nil where it cannot be told, such as of one that is revoked.
func leftOf(v *View, token string) *whatIsLeft {
	if token == "" {
		return nil
	}
	left := new(whatIsLeft)
	if v.DoAs(v.LookingAt(token), http.MethodGet, "/v1/token", nil, left) != nil {
		return nil
	}
	return left
}

type ownWindow struct {
	Limit     int `json:"limit"`
	Remaining int `json:"remaining"`
}

type homeData struct {
	ownToken

	Recent []recent
	// Snippets call one of its models.
	Snippets []snippets.Program
	// Left is the bar of the budget, 0 to 600.
	Left string
}

// Try leads to where one of its models is tried, "" for one that no kind of try is for.
func (homeData) Try(v *View, model string) string { return tryLink(v, tryModel{ID: model}) }

// showHome is a token's own first page.
func showHome(v *View) (any, error) {
	var d homeData
	if err := v.Get("/v1/token", nil, &d.ownToken); err != nil {
		return nil, err
	}
	if b := d.Budget; b != nil && b.Limit > 0 {
		d.Left = chart.Width(b.Remaining / b.Limit)
	}
	calls, err := recentCalls(v, "home.calls", url.Values{})
	if err != nil {
		return nil, err
	}
	tasks, err := recentOwnTasks(v)
	if err != nil {
		return nil, err
	}
	d.Recent = []recent{calls, tasks}
	if len(d.Models) > 0 {
		d.Snippets = snippets.For(v.s.base(v.R), snippets.Chat, chatModel(d.Models), "Hello")
	}
	return d, nil
}

// chatModel is a model for the first call: the usual one where it is there.
func chatModel(names []string) string {
	const usual = "gpt-4o-mini"
	if slices.Contains(names, usual) {
		return usual
	}
	return names[0]
}
