package console

import (
	"slices"

	"modelrelay/api/account"
	"modelrelay/api/console/chart"
	"modelrelay/api/console/snippets"
	"modelrelay/api/logs"
)

type homeData struct {
	account.Token

	Recent []recent
	// Snippets call one of its models.
	Snippets []snippets.Program
	// More: the page shows the first ones of its models.
	More bool
	// Left is the bar of the budget, 0 to 600.
	Left string
}

// Try leads to where one of its models is tried, "" for one that no kind of try is for.
func (homeData) Try(v *View, model string) string { return tryLink(v, tryModel{ID: model}) }

func showHome(v *View) (any, error) {
	var d homeData
	token, err := v.holder(1)
	if err != nil {
		return nil, err
	}
	if d.Token, err = v.s.o.Account.Token(v.R.Context(), token); err != nil {
		return nil, err
	}
	if b := d.Budget; b != nil && b.Limit > 0 {
		d.Left = chart.Width(float64(b.Remaining) / float64(b.Limit))
	}
	calls, err := recentCalls(v, "home.calls", logs.Query{})
	if err != nil {
		return nil, err
	}
	last, err := recentOwnTasks(v)
	if err != nil {
		return nil, err
	}
	d.Recent = []recent{calls, last}
	if len(d.Models) > 0 {
		d.Snippets = snippets.For(v.s.base(v.R), snippets.Chat, chatModel(d.Models), "Hello")
	}
	d.More = len(d.Models) > shownNames
	d.Models = d.Models[:min(len(d.Models), shownNames)]
	return d, nil
}

// chatModel is a model for the first call: the usual one where it is there, or where no name is known.
func chatModel(names []string) string {
	if len(names) == 0 || slices.Contains(names, usualChat) {
		return usualChat
	}
	return names[0]
}
