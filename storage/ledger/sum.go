package ledger

import (
	"cmp"
	"slices"
	"strings"
	"time"
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

// summer sums counters one by one, so that the rows need not be in memory together.
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

// add adds n to a counter of the row's sum, by the counter's name in a usage hash. Other names are ignored.
func (s *summer) add(row rowName, counter string, n int64) {
	i := slices.Index(strings.Fields(counterNames), counter)
	if i < 0 {
		return
	}
	if i == inAudio || i == inVideo {
		n *= int64(time.Millisecond)
	}
	var name rowName
	for _, group := range s.by {
		switch group {
		case ByDay:
			name.day = row.day
		case ByToken:
			name.token = row.token
		case ByModel:
			name.model = row.model
		case ByChannel:
			name.channel = row.channel
		}
	}
	sum := s.sums[name]
	if sum == nil {
		sum = &Row{Day: name.day, Token: name.token, Model: name.model, Channel: name.channel}
		s.sums[name] = sum
	}
	*sum.counters()[i] += n
}

func (s *summer) rows() []Row {
	list := make([]Row, 0, len(s.sums))
	for _, sum := range s.sums {
		list = append(list, *sum)
	}
	slices.SortFunc(list, func(a, b Row) int { return a.name().compare(b.name()) })
	return list
}

// counters returns the sums of a row in the order of counterNames. Durations are in nanoseconds.
func (r *Row) counters() [10]*int64 {
	return [...]*int64{
		inRequests: &r.Requests, inFailed: &r.Failed, inInput: &r.InputTokens, inCached: &r.CachedTokens, inOutput: &r.OutputTokens,
		inImages: &r.Images, inAudio: (*int64)(&r.Audio), inVideo: (*int64)(&r.Video), inTasks: &r.Tasks, inCost: &r.Cost,
	}
}
