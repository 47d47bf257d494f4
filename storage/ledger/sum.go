package ledger

import (
	"cmp"
	"slices"
)

// The groups of sums.
const (
	ByDay     = "day"
	ByToken   = "token"
	ByModel   = "model"
	ByChannel = "channel"
)

// Groups returns the groups in the order in which sums are sorted.
func Groups() []string { return []string{ByDay, ByToken, ByModel, ByChannel} }

// Sum sums the rows that agree in all groups of by, and leaves the other fields empty. Without groups there is one sum of all, even without
// rows. The sums are sorted by day, token, model and channel.
func Sum(rows []Row, by []string) []Row {
	s := newSummer(by)
	for _, row := range rows {
		s.add(row)
	}
	return s.rows()
}

// summer sums rows one by one, so that they need not be in memory together.
type summer struct {
	by   []string
	sums map[rowName]*Row
}

// rowName identifies a row.
type rowName struct{ day, token, model, channel string }

func (r *Row) name() rowName { return rowName{r.Day, r.Token, r.Model, r.Channel} }

func (n rowName) compare(other rowName) int {
	return cmp.Or(cmp.Compare(n.day, other.day), cmp.Compare(n.token, other.token),
		cmp.Compare(n.model, other.model), cmp.Compare(n.channel, other.channel))
}

func newSummer(by []string) *summer {
	s := &summer{by: by, sums: make(map[rowName]*Row)}
	if len(by) == 0 {
		s.sums[rowName{}] = &Row{}
	}
	return s
}

func (s *summer) add(row Row) {
	var name rowName
	for _, group := range s.by {
		switch group {
		case ByDay:
			name.day = row.Day
		case ByToken:
			name.token = row.Token
		case ByModel:
			name.model = row.Model
		case ByChannel:
			name.channel = row.Channel
		}
	}
	sum := s.sums[name]
	if sum == nil {
		sum = &Row{Day: name.day, Token: name.token, Model: name.model, Channel: name.channel}
		s.sums[name] = sum
	}
	sum.Add(row)
}

func (s *summer) rows() []Row {
	list := make([]Row, 0, len(s.sums))
	for _, sum := range s.sums {
		list = append(list, *sum)
	}
	slices.SortFunc(list, func(a, b Row) int { return a.name().compare(b.name()) })
	return list
}
