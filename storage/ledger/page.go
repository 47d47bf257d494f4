package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	// By lists what to group by, as in Sum.
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
	if p.Token != "" {
		return p.sum(func(s *summer) error { return p.tokens(ctx, s, pairs(days, []string{p.Token})) })
	}
	models, channels := p.by(ByModel) || p.Model != "", p.by(ByChannel)
	if !p.by(ByToken) && (!models || !channels) {
		return p.sum(func(s *summer) error { return p.sums(ctx, s, days, channels) })
	}
	list := &tokenList{client: p.reader.client, days: days, most: tokensTogether}
	if p.by(ByToken) && p.Limit > 0 {
		list.most = min(list.most, p.Limit+1)
	}
	if p.by(ByToken) && p.after != nil && (!p.by(ByDay) || days[0] == p.after.day) {
		list.from = "[" + p.after.token
	}
	if !p.by(ByToken) {
		return p.sum(func(s *summer) error {
			for {
				part, err := list.next(ctx)
				if err != nil || len(part) == 0 {
					return err
				}
				if err := p.tokens(ctx, s, part); err != nil {
					return err
				}
			}
		})
	}
	for !p.full() {
		part, err := list.next(ctx)
		if err != nil || len(part) == 0 {
			return err
		}
		if err := p.sum(func(s *summer) error { return p.tokens(ctx, s, part) }); err != nil {
			return err
		}
	}
	return nil
}

// sum adds the sums of what add reads to the page, except those up to the cursor.
func (p *paging) sum(add func(*summer) error) error {
	s := newSummer(p.By)
	if err := add(s); err != nil {
		return err
	}
	for _, row := range s.rows() {
		if p.full() {
			return nil
		}
		if p.after == nil || row.name().compare(*p.after) > 0 {
			p.rows = append(p.rows, row)
		}
	}
	return nil
}

type dayToken struct{ day, token string }

func pairs(days, tokens []string) []dayToken {
	all := make([]dayToken, 0, len(days)*len(tokens))
	for _, day := range days {
		for _, token := range tokens {
			all = append(all, dayToken{day, token})
		}
	}
	return all
}

func (p *paging) tokens(ctx context.Context, s *summer, of []dayToken) error {
	for part := range slices.Chunk(of, readTogether) {
		keys := make([]string, len(part))
		for i, one := range part {
			keys[i] = tokenDayKey(one.day, one.token)
		}
		err := p.hashes(ctx, keys, func(i int, fields map[string]string) {
			p.add(s, rowsOf(Row{Day: part[i].day, Token: part[i].token}, fields, modelOf, channelOf))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *paging) add(s *summer, rows []Row) {
	for _, row := range rows {
		if p.Model == "" || row.Model == p.Model {
			s.add(row)
		}
	}
}

func (p *paging) sums(ctx context.Context, s *summer, days []string, channels bool) error {
	for _, day := range days { // one day at a time: it may have many models
		key, name := dayModelsKey(day), modelOf
		if channels {
			key, name = dayChannelsKey(day), channelOf
		}
		add := func(_ int, fields map[string]string) { p.add(s, rowsOf(Row{Day: day}, fields, name)) }
		if err := p.hashes(ctx, []string{key}, add); err != nil {
			return err
		}
	}
	return nil
}

// hashes reads hashes in one round trip.
func (p *paging) hashes(ctx context.Context, keys []string, each func(i int, fields map[string]string)) error {
	answers, err := storage.Pipelined(ctx, p.reader.client, "read usage", keys, func(to redis.Pipeliner, key string) *redis.MapStringStringCmd {
		return to.HGetAll(ctx, key)
	})
	if err != nil {
		return err
	}
	for i, answer := range answers {
		each(i, answer.Val())
	}
	return nil
}

// tokenList lists the days of tokens with usage, by token.
type tokenList struct {
	client redis.UniversalClient
	days   []string
	most   int // tokens of one part
	// from is the start of the next part, in the syntax of ZRANGE BYLEX; "": the beginning.
	from  string
	ended bool
}

// next returns the days of the next tokens, none at the end.
func (l *tokenList) next(ctx context.Context) ([]dayToken, error) {
	if l.ended {
		return nil, nil
	}
	answers, err := storage.Pipelined(ctx, l.client, "read usage", l.days, func(pipe redis.Pipeliner, day string) *redis.StringSliceCmd {
		return pipe.ZRangeArgs(ctx, redis.ZRangeArgs{
			Key: dayTokensKey(day), Start: cmp.Or(l.from, "-"), Stop: "+", ByLex: true, Count: int64(l.most),
		})
	})
	if err != nil {
		return nil, err
	}
	found := make(map[string][]dayToken)
	for i, day := range l.days {
		for _, token := range answers[i].Val() {
			found[token] = append(found[token], dayToken{day, token})
		}
	}
	tokens := slices.Sorted(maps.Keys(found))
	if l.ended = len(tokens) < l.most; !l.ended {
		tokens = tokens[:l.most]
		l.from = "(" + tokens[l.most-1]
	}
	var part []dayToken
	for _, token := range tokens {
		part = append(part, found[token]...)
	}
	return part, nil
}
