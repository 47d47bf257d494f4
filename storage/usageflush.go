package storage

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	usageTogether = 200                  // keys in one round trip
	usageExpire   = 400 * 24 * time.Hour // a ledger day is kept so long after the last write
)

// usageBatch is a part of the ledger on its way. It keeps its number until Redis has taken it.
type usageBatch struct {
	number int64
	sums   map[usageKey]counters
}

// usageScript adds one batch unless its number was added before.
//
//	KEYS   sequence, then for each key: the day's tokens, the token's day
//	ARGV   number, expiry in s, then for each key: token id, JSON [field, n, field, n, …]
const usageScript = `
if tonumber(redis.call('GET', KEYS[1]) or 0) >= tonumber(ARGV[1]) then return 0 end
for k = 2, #KEYS, 2 do
	redis.call('SADD', KEYS[k], ARGV[k + 1])
	redis.call('EXPIRE', KEYS[k], ARGV[2])
	local add = cjson.decode(ARGV[k + 2])
	for i = 1, #add, 2 do redis.call('HINCRBY', KEYS[k + 1], add[i], add[i + 1]) end
	redis.call('EXPIRE', KEYS[k + 1], ARGV[2])
end
redis.call('SET', KEYS[1], ARGV[1], 'EX', 604800)
return 1
`

// counterNames end the fields of a usage hash, in the order of counters.
const counterNames = "requests failed input cached output"

// Flush adds what was recorded so far to Redis. What Redis did not take is kept for the next time.
func (u *Usage) Flush(ctx context.Context) error {
	u.sending.Lock()
	defer u.sending.Unlock()
	for range 2 { // first what is left of the last time, then what was recorded since
		u.cut()
		for len(u.batches) > 0 {
			if err := u.out.note(ctx, time.Now(), u.send(ctx, u.batches[0])); err != nil {
				return err
			}
			u.batches = slices.Delete(u.batches, 0, 1)
		}
	}
	return nil
}

// cut takes the sums out of the way of Record, into batches. While older batches wait, whose outcome is unknown, the
// sums stay where equal keys meet.
func (u *Usage) cut() {
	if len(u.batches) > 0 {
		return
	}
	u.mu.Lock()
	sums := u.sums
	u.sums = make(map[usageKey]counters, len(sums))
	u.mu.Unlock()
	for keys := range slices.Chunk(slices.Collect(maps.Keys(sums)), usageTogether) {
		u.number++
		part := make(map[usageKey]counters, len(keys))
		for _, key := range keys {
			part[key] = sums[key]
		}
		u.batches = append(u.batches, usageBatch{number: u.number, sums: part})
	}
}

func (u *Usage) send(ctx context.Context, b usageBatch) error {
	names := strings.Fields(counterNames)
	keys := []string{u.keys.usageSequence(u.process)}
	args := []any{b.number, int64(usageExpire / time.Second)}
	for key, sum := range b.sums {
		keys = append(keys, u.keys.usageDay(key.day), u.keys.usage(key.day, key.token))
		var add []any
		for i, n := range sum {
			if n != 0 {
				add = append(add, url.QueryEscape(key.model)+" "+url.QueryEscape(key.channel)+" "+names[i], n)
			}
		}
		if len(add) == 0 {
			add = []any{}
		}
		text, err := json.Marshal(add)
		if err != nil {
			return fmt.Errorf("write usage: %w", err)
		}
		args = append(args, key.token, text)
	}
	return redisError("write usage", u.script.Run(ctx, u.client, keys, args...).Err())
}

// Read returns the rows of the days from and to, both included, of one token id or, when it is empty, of all; sorted
// by day, token, model and channel. What was not flushed yet is not in them.
func (u *Usage) Read(ctx context.Context, from, to time.Time, token string) ([]Row, error) {
	var rows []Row
	from, to = from.UTC().Truncate(24*time.Hour), to.UTC()
	for at := from; !at.After(to); at = at.AddDate(0, 0, 1) {
		day := dayOf(at)
		tokens := []string{token}
		if token == "" {
			var err error
			if tokens, err = u.client.SMembers(ctx, u.keys.usageDay(day)).Result(); err != nil {
				return nil, redisError("read usage", err)
			}
		}
		for _, id := range tokens {
			fields, err := u.client.HGetAll(ctx, u.keys.usage(day, id)).Result()
			if err != nil {
				return nil, redisError("read usage", err)
			}
			rows = append(rows, rowsOf(day, id, fields)...)
		}
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Token, b.Token),
			cmp.Compare(a.Model, b.Model), cmp.Compare(a.Channel, b.Channel))
	})
	return rows, nil
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
		switch parts[2] {
		case "requests":
			row.Requests = n
		case "failed":
			row.Failed = n
		case "input":
			row.InputTokens = n
		case "cached":
			row.CachedTokens = n
		case "output":
			row.OutputTokens = n
		}
	}
	rows := make([]Row, 0, len(found))
	for _, row := range found {
		rows = append(rows, *row)
	}
	return rows
}
