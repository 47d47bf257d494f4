package ledger

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
	"modelrelay/storage/fair"
)

// ErrCursor is the error of a Query.After that is no cursor.
var ErrCursor = errors.New("no cursor of sums")

// Query selects sums of the ledger.
type Query struct {
	// From and To are within the first and the last day. Of a longer range Sums takes the last 400 days.
	From, To time.Time
	// Token is an id, Model a public name; "": all.
	Token, Model string
	// By are the words that the sums are by, as Sum takes them.
	By []string
	// After is the cursor that the page before returned, "" for the first page. Limit is the most rows of a page; 0: all rows.
	After string
	Limit int
}

// tokensTogether is how many tokens are read before their rows are summed, so that a page has no more in memory.
const tokensTogether = 100

// Sums returns a page of sums, sorted by day, token, model and channel, and the cursor of the next page, "" at the end. A page by token reads
// the rows of its own tokens alone. Sums of all tokens by day, model or channel are in Redis; those by model and channel together are
// read token by token. The error is ErrCursor, or storage.ErrUnavailable, also where too many such reads wait.
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
		return nil, "", storage.RedisError("read usage", err)
	}
	if q.Limit > 0 && len(p.rows) > q.Limit {
		p.rows = p.rows[:q.Limit]
		next = cursor(p.rows[q.Limit-1].name())
	}
	return p.rows, next, nil
}

// cursor is a row's name as text.
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

// paging is one page in progress.
type paging struct {
	Query

	reader *Reader
	after  *rowName
	rows   []Row
}

func (p *paging) by(word string) bool { return slices.Contains(p.By, word) }

// full reports whether the page has one row more than it may, which shows that another page follows.
func (p *paging) full() bool { return p.Limit > 0 && len(p.rows) > p.Limit }

// read reads the days one by one where the sums are by day, else together.
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

// readDays adds the sums of days.
func (p *paging) readDays(ctx context.Context, days []string) error {
	if p.Token != "" {
		return p.sum(func(s *summer) error { return p.tokens(ctx, s, days, []string{p.Token}) })
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
				if err := p.tokens(ctx, s, days, part); err != nil {
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
		if err := p.sum(func(s *summer) error { return p.tokens(ctx, s, days, part) }); err != nil {
			return err
		}
	}
	return nil
}

// sum adds the sums of what add reads to the page, but for those up to its beginning.
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

// tokens adds the rows of tokens.
func (p *paging) tokens(ctx context.Context, s *summer, days, tokens []string) error {
	for part := range slices.Chunk(tokens, max(1, readTogether/len(days))) {
		var of []Row
		var keys []string
		for _, token := range part {
			for _, day := range days {
				of, keys = append(of, Row{Day: day, Token: token}), append(keys, tokenDayKey(day, token))
			}
		}
		err := p.hashes(ctx, keys, func(i int, fields map[string]string) { p.add(s, rowsOf(of[i], fields, modelOf, channelOf)) })
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

// sums adds the sums of all tokens that Redis has, and the rows of the tokens that are not yet in them.
func (p *paging) sums(ctx context.Context, s *summer, days []string, channels bool) error {
	for _, day := range days { // one day at a time: it may have many models
		key, name := dayModelsKey(day), modelOf
		if channels {
			key, name = dayChannelsKey(day), channelOf
		}
		if err := p.hashes(ctx, []string{key}, func(_ int, fields map[string]string) { p.add(s, rowsOf(Row{Day: day}, fields, name)) }); err != nil {
			return err
		}
		others, err := unsummed(ctx, p.reader.client, day)
		if err != nil {
			return err
		}
		if err := p.tokens(ctx, s, []string{day}, others); err != nil {
			return err
		}
	}
	return nil
}

// hashes reads hashes in one round trip.
func (p *paging) hashes(ctx context.Context, keys []string, each func(i int, fields map[string]string)) error {
	answers := make([]*redis.MapStringStringCmd, len(keys))
	_, err := p.reader.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, key := range keys {
			answers[i] = pipe.HGetAll(ctx, key)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, answer := range answers {
		each(i, answer.Val())
	}
	return nil
}

// unsummed are the tokens of a day that only an earlier version has written, in order.
func unsummed(ctx context.Context, client redis.UniversalClient, day string) ([]string, error) {
	tokens, err := client.SMembers(ctx, unsummedKey(day)).Result()
	slices.Sort(tokens)
	return tokens, err
}

// tokenList lists the tokens with usage on some days, in order.
type tokenList struct {
	client redis.UniversalClient
	days   []string
	most   int // of one part
	// from is where the next part begins, as ZRANGE's BYLEX has it; "": at the beginning.
	from string

	read   bool
	others []string // unsummed tokens of all the days
	ended  bool
}

// next returns the next tokens, none at the end.
func (l *tokenList) next(ctx context.Context) ([]string, error) {
	if l.ended {
		return nil, nil
	}
	if !l.read {
		for _, day := range l.days {
			others, err := unsummed(ctx, l.client, day)
			if err != nil {
				return nil, err
			}
			l.others = append(l.others, others...)
		}
		slices.Sort(l.others)
		l.others, l.read = slices.Compact(l.others), true
	}
	from := l.from
	if from == "" {
		from = "-"
	}
	answers := make([]*redis.StringSliceCmd, len(l.days))
	_, err := l.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, day := range l.days {
			answers[i] = pipe.ZRangeArgs(ctx, redis.ZRangeArgs{Key: dayTokensKey(day), Start: from, Stop: "+", ByLex: true, Count: int64(l.most)})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	at := 0
	if l.from != "" {
		known := false
		if at, known = slices.BinarySearch(l.others, l.from[1:]); known && l.from[0] == '(' {
			at++
		}
	}
	tokens := slices.Clone(l.others[at:min(len(l.others), at+l.most)])
	for _, answer := range answers {
		tokens = append(tokens, answer.Val()...)
	}
	slices.Sort(tokens)
	tokens = slices.Compact(tokens)
	if len(tokens) > l.most {
		tokens = tokens[:l.most]
	} else if len(tokens) < l.most {
		l.ended = true
	}
	if len(tokens) > 0 {
		l.from = "(" + tokens[len(tokens)-1]
	}
	return tokens, nil
}
