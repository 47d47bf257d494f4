package ledger

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

// daysMost is how many days one Read takes: all that Redis keeps.
const daysMost = int(usageExpire / (24 * time.Hour))

// Reader reads the ledger that Usage writes. Safe for concurrent use.
type Reader struct {
	client redis.UniversalClient
}

// NewReader reads what Usage has written. The client stays the caller's.
func NewReader(client redis.UniversalClient) *Reader {
	return &Reader{client: client}
}

// Read is Reader's. What was not flushed yet is not in the rows.
func (u *Usage) Read(ctx context.Context, from, to time.Time, token string) ([]Row, error) {
	return (&Reader{client: u.client}).Read(ctx, from, to, token)
}

// Read returns the rows of the days from and to, both included, of one token id or, when it is empty, of all; sorted
// by day, token, model and channel. Of a longer range it takes the last 400 days, which is all that Redis keeps.
func (r *Reader) Read(ctx context.Context, from, to time.Time, token string) ([]Row, error) {
	days := daysOf(from, to)
	tokens, err := r.tokens(ctx, days, token)
	if err != nil {
		return nil, err
	}
	type dayToken struct{ day, token string }
	var asked []dayToken
	for i, day := range days {
		for _, id := range tokens[i] {
			asked = append(asked, dayToken{day, id})
		}
	}
	var rows []Row
	for part := range slices.Chunk(asked, readTogether) {
		answers := make([]*redis.MapStringStringCmd, len(part))
		_, err := r.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, of := range part {
				answers[i] = p.HGetAll(ctx, tokenDayKey(of.day, of.token))
			}
			return nil
		})
		if err != nil {
			return nil, storage.RedisError("read usage", err)
		}
		for i, of := range part {
			rows = append(rows, rowsOf(of.day, of.token, answers[i].Val())...)
		}
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Token, b.Token),
			cmp.Compare(a.Model, b.Model), cmp.Compare(a.Channel, b.Channel))
	})
	return rows, nil
}

// Days is how many days Read takes of those from and to.
func Days(from, to time.Time) int { return len(daysOf(from, to)) }

func daysOf(from, to time.Time) []string {
	from, to = from.UTC().Truncate(24*time.Hour), to.UTC()
	if first := to.Truncate(24*time.Hour).AddDate(0, 0, 1-daysMost); from.Before(first) {
		from = first
	}
	var days []string
	for at := from; !at.After(to); at = at.AddDate(0, 0, 1) {
		days = append(days, dayOf(at))
	}
	return days
}

// tokens finds the tokens with usage on each day.
func (r *Reader) tokens(ctx context.Context, days []string, token string) ([][]string, error) {
	found := make([][]string, len(days))
	if token != "" {
		for i := range found {
			found[i] = []string{token}
		}
		return found, nil
	}
	if len(days) == 0 {
		return found, nil
	}
	answers := make([]*redis.StringSliceCmd, len(days))
	_, err := r.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, day := range days {
			answers[i] = p.SMembers(ctx, dayKey(day))
		}
		return nil
	})
	for i, answer := range answers {
		found[i] = answer.Val()
	}
	return found, storage.RedisError("read usage", err)
}

// rowsOf puts the fields of one usage hash together. A field it does not know is left out.
func rowsOf(day, token string, fields map[string]string) []Row {
	found := make(map[[2]string]*Row)
	for field, text := range fields {
		parts := strings.Split(field, " ")
		n, err := strconv.ParseInt(text, 10, 64)
		if len(parts) != 3 || err != nil {
			continue
		}
		model, err := url.QueryUnescape(parts[0])
		if err != nil {
			continue
		}
		channel, err := url.QueryUnescape(parts[1])
		if err != nil {
			continue
		}
		row := found[[2]string{model, channel}]
		if row == nil {
			row = &Row{Day: day, Token: token, Model: model, Channel: channel}
			found[[2]string{model, channel}] = row
		}
		row.set(parts[2], n)
	}
	rows := make([]Row, 0, len(found))
	for _, row := range found {
		rows = append(rows, *row)
	}
	return rows
}

// set takes one counter by its name in a usage hash.
func (r *Row) set(name string, n int64) {
	switch slices.Index(strings.Fields(counterNames), name) {
	case inRequests:
		r.Requests = n
	case inFailed:
		r.Failed = n
	case inInput:
		r.InputTokens = n
	case inCached:
		r.CachedTokens = n
	case inOutput:
		r.OutputTokens = n
	case inImages:
		r.Images = n
	case inAudio:
		r.Audio = time.Duration(n) * time.Millisecond
	case inVideo:
		r.Video = time.Duration(n) * time.Millisecond
	case inTasks:
		r.Tasks = n
	case inCost:
		r.Cost = n
	}
}

// Add sums the counters of two rows; what names them stays r's.
func (r *Row) Add(other Row) {
	r.Requests += other.Requests
	r.Tasks += other.Tasks
	r.Failed += other.Failed
	r.InputTokens += other.InputTokens
	r.CachedTokens += other.CachedTokens
	r.OutputTokens += other.OutputTokens
	r.Images += other.Images
	r.Audio += other.Audio
	r.Video += other.Video
	r.Cost += other.Cost
}
