package ledger

import (
	"cmp"
	"slices"
)

// The words that a sum of the ledger may be asked for by.
const (
	ByDay     = "day"
	ByToken   = "token"
	ByModel   = "model"
	ByChannel = "channel"
)

// Groups lists them, in the order in which sums are sorted.
func Groups() []string { return []string{ByDay, ByToken, ByModel, ByChannel} }

// Sum sums the rows that agree in all of the words by; what the others name is left empty. Without words there is one
// sum of all, even where there are no rows. The sums are sorted by day, token, model and channel.
func Sum(rows []Row, by []string) []Row {
	sums := make(map[Row]*Row)
	if len(by) == 0 {
		sums[Row{}] = &Row{}
	}
	for _, row := range rows {
		var name Row
		if slices.Contains(by, ByDay) {
			name.Day = row.Day
		}
		if slices.Contains(by, ByToken) {
			name.Token = row.Token
		}
		if slices.Contains(by, ByModel) {
			name.Model = row.Model
		}
		if slices.Contains(by, ByChannel) {
			name.Channel = row.Channel
		}
		sum := sums[name]
		if sum == nil {
			sum = &Row{Day: name.Day, Token: name.Token, Model: name.Model, Channel: name.Channel}
			sums[name] = sum
		}
		sum.Add(row)
	}
	list := make([]Row, 0, len(sums))
	for _, sum := range sums {
		list = append(list, *sum)
	}
	slices.SortFunc(list, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Token, b.Token), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Channel, b.Channel))
	})
	return list
}
