package ledger

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
	"modelrelay/storage/fair"
)

// ErrCursor reports that a Query.After is not a cursor.
var ErrCursor = errors.New("not a cursor of sums")

// Query selects sums of the ledger.
type Query struct {
	// From and To are times of the first and the last day. Of a longer range, Sums takes the last 400 days.
	From, To time.Time
	// Token is an id, Model a public name; "": all.
	Token, Model string
	// By lists groups: rows that agree in all of them are summed. Without groups there is one sum of all, even without rows.
	By []string
	// After is the cursor of the previous page, "" for the first page. Limit is the maximal number of rows; 0: all rows.
	After string
	Limit int
}

// tokensTogether is the number of tokens whose rows are in memory at a time.
const tokensTogether = 100

// Sums returns a page of sums, sorted by day, token, model and channel, and the cursor of the next page; "": the end. A page by token
// reads only the rows of its tokens. Redis has the sums of all tokens by day, model or channel; those by model and channel together are
// read token by token. The error is ErrCursor or storage.ErrUnavailable. The latter also reports that too many reads of all tokens wait.
func (r *Reader) Sums(ctx context.Context, q Query) (rows []Row, next string, err error) {
	after, err := parseCursor(q.After)
	if err != nil {
		return nil, "", err
	}
	if q.Token == "" {
		if _, err := fair.Wait(ctx, fair.Ask[struct{}]{Limit: readerWait}, r.all); err != nil {
			if errors.Is(err, fair.ErrFull) {
				err = fmt.Errorf("%w: too many reads of the ledger wait", storage.ErrUnavailable)
			}
			return nil, "", fmt.Errorf("read usage: %w", err)
		}
		defer r.all.Release(struct{}{}, 1)
	}
	p := &paging{Query: q, reader: r, after: after}
	if err := p.read(ctx); err != nil {
		return nil, "", err
	}
	if q.Limit > 0 && len(p.rows) > q.Limit {
		p.rows = p.rows[:q.Limit]
		next = cursor(p.rows[q.Limit-1].name())
	}
	return p.rows, next, nil
}

// cursor encodes a row's name.
func cursor(n rowName) string {
	parts := []string{n.day, n.token, n.model, n.channel}
	for i, part := range parts {
		parts[i] = url.QueryEscape(part)
	}
	return strings.Join(parts, ",")
}

func parseCursor(text string) (n *rowName, err error) {
	if text == "" {
		return nil, nil
	}
	parts := strings.Split(text, ",")
	if len(parts) != 4 {
		return nil, ErrCursor
	}
	for i := range parts {
		if parts[i], err = url.QueryUnescape(parts[i]); err != nil {
			return nil, ErrCursor
		}
	}
	return &rowName{parts[0], parts[1], parts[2], parts[3]}, nil
}

type paging struct {
	Query

	reader *Reader
	after  *rowName
	rows   []Row
}

func (p *paging) by(group string) bool { return slices.Contains(p.By, group) }

// full reports whether the page has one row more than its limit, so that another page follows.
func (p *paging) full() bool { return p.Limit > 0 && len(p.rows) > p.Limit }

// read reads the days one by one if the sums are by day, else together.
func (p *paging) read(ctx context.Context) error {
	days := daysOf(p.From, p.To)
	if !p.by(ByDay) {
		return p.readDays(ctx, days)
	}
	for _, day := range days {
		if p.after != nil && day < p.after.day {
			continue
		}
		if err := p.readDays(ctx, []string{day}); err != nil || p.full() {
			return err
		}
	}
	return nil
}

func (p *paging) readDays(ctx context.Context, days []string) error {
	s := newSummer(p.By)
	models, channels := p.by(ByModel) || p.Model != "", p.by(ByChannel)
	switch {
	case p.Token != "":
		rows := make([]rowName, len(days))
		for i, day := range days {
			rows[i] = rowName{day: day, token: p.Token}
		}
		if err := p.tokens(ctx, s, rows); err != nil {
			return err
		}
	case !p.by(ByToken) && (!models || !channels):
		if err := p.allTokens(ctx, s, days, channels); err != nil {
			return err
		}
	default:
		for part, err := range p.tokenDays(ctx, days) {
			if err == nil {
				err = p.tokens(ctx, s, part)
			}
			if err != nil {
				return err
			}
			if p.by(ByToken) { // the sums of these tokens are complete
				p.take(s)
				if p.full() {
					return nil
				}
				s = newSummer(p.By)
			}
		}
	}
	p.take(s)
	return nil
}

// take adds sums to the page, except those up to the cursor.
func (p *paging) take(s *summer) {
	for _, row := range s.rows() {
		if p.full() {
			return
		}
		if p.after == nil || row.name().compare(*p.after) > 0 {
			p.rows = append(p.rows, row)
		}
	}
}

// tokens sums the days of tokens.
func (p *paging) tokens(ctx context.Context, s *summer, of []rowName) error {
	for part := range slices.Chunk(of, readTogether) {
		keys := make([]string, len(part))
		for i, row := range part {
			keys[i] = tokenDayKey(row.day, row.token)
		}
		if err := p.hashes(ctx, s, keys, part, modelOf, channelOf); err != nil {
			return err
		}
	}
	return nil
}

// allTokens sums the sums of all tokens by model or by channel.
func (p *paging) allTokens(ctx context.Context, s *summer, days []string, channels bool) error {
	for _, day := range days { // one day at a time: it may have many models
		key, name := dayModelsKey(day), modelOf
		if channels {
			key, name = dayChannelsKey(day), channelOf
		}
		if err := p.hashes(ctx, s, []string{key}, []rowName{{day: day}}, name); err != nil {
			return err
		}
	}
	return nil
}

func modelOf(r *rowName) *string   { return &r.model }
func channelOf(r *rowName) *string { return &r.channel }

// hashes sums hashes, which it reads in one round trip: those of rows, whose fields are one escaped name for each of names, and a counter.
func (p *paging) hashes(ctx context.Context, s *summer, keys []string, rows []rowName, names ...func(*rowName) *string) error {
	answers, err := storage.Pipelined(ctx, p.reader.client, "read usage", keys, func(to redis.Pipeliner, key string) *redis.MapStringStringCmd {
		return to.HGetAll(ctx, key)
	})
	if err != nil {
		return err
	}
	for i, answer := range answers {
		storage.EachCounter(answer.Val(), len(names), func(of []string, counter string, n int64) {
			row := rows[i]
			for j, name := range names {
				*name(&row) = of[j]
			}
			if p.Model == "" || row.model == p.Model {
				s.add(row, counter, n)
			}
		})
	}
	return nil
}

// tokenDays yields the days of tokens with usage, tokensTogether tokens at a time, ordered by token.
func (p *paging) tokenDays(ctx context.Context, days []string) iter.Seq2[[]rowName, error] {
	most, from := tokensTogether, "-"
	if p.by(ByToken) && p.Limit > 0 {
		most = min(most, p.Limit+1)
	}
	if p.by(ByToken) && p.after != nil && (!p.by(ByDay) || days[0] == p.after.day) {
		from = "[" + p.after.token
	}
	return func(yield func([]rowName, error) bool) {
		for {
			answers, err := storage.Pipelined(ctx, p.reader.client, "read usage", days, func(pipe redis.Pipeliner, day string) *redis.StringSliceCmd {
				return pipe.ZRangeArgs(ctx, redis.ZRangeArgs{Key: dayTokensKey(day), Start: from, Stop: "+", ByLex: true, Count: int64(most)})
			})
			if err != nil {
				yield(nil, err)
				return
			}
			found := make(map[string][]rowName)
			for i, day := range days {
				for _, token := range answers[i].Val() {
					found[token] = append(found[token], rowName{day: day, token: token})
				}
			}
			tokens := slices.Sorted(maps.Keys(found))
			last := len(tokens) < most
			tokens = tokens[:min(len(tokens), most)]
			var part []rowName
			for _, token := range tokens {
				part = append(part, found[token]...)
			}
			if !yield(part, nil) || last {
				return
			}
			from = "(" + tokens[most-1]
		}
	}
}
