package console

import (
	"slices"

	"modelrelay/api/account"
	"modelrelay/api/console/chart"
	"modelrelay/api/logs"
	"modelrelay/api/operator"
)

type homeData struct {
	account.Token

	Recent []recent
	// Snippets are programs that call one of its models.
	Snippets *program
	// More: the token has more models than the page shows.
	More bool
	// Left is the length of the budget's bar, 0 to 600.
	Left string
}

// Try returns the address at which one of its models can be tried, "" if no kind of try supports it.
func (homeData) Try(v *View, model string) string { return tryLink(v, operator.Model{ID: model}) }

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
		d.Snippets = programFor(v.s.base(v.R), createChat, chatModel(d.Models), "Hello", false)
	}
	d.More = len(d.Models) > shownNames
	d.Models = d.Models[:min(len(d.Models), shownNames)]
	return d, nil
}

// chatModel returns a model for the first call: the usual one if it is among the names, or if there are no names.
func chatModel(names []string) string {
	if len(names) == 0 || slices.Contains(names, usualChat) {
		return usualChat
	}
	return names[0]
}
