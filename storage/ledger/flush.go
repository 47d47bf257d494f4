package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"modelrelay/storage"
)

const (
	usageTogether = 200                  // keys in one round trip
	usageExpire   = 400 * 24 * time.Hour // a ledger day is kept so long after the last write
)

// refusedTries is how often a batch is sent that Redis refuses as a whole, once with each flush: long enough for what a
// change of its set-up says in passing, and soon enough for the batches behind it.
const refusedTries = 10

// usageBatch is a part of the ledger on its way. It keeps its number until Redis has taken it.
type usageBatch struct {
	number  int64
	rows    []usageRow
	refused int // times
}

// usageRow is what is added to one row.
type usageRow struct {
	usageKey
	tally
}

// usageScript adds one batch unless its number was added before. What Redis refuses of it, since a stranger has written to
// a key, is left out. The number is written first: what may be refused for Redis's own sake, such as a write beyond its
// memory, is refused there, before anything was added.
//
//	KEYS   sequence, then for each key: the day's tokens, the token's day, the token's budget
//	ARGV   number, expiry in s, then for each key: token id, JSON [field, n, field, n, …], cost, JSON [reservation, …]
//	answer for each part that was left out: the place of its key, counted from 0, a blank, and why
const usageScript = BudgetFunctions + ledgerFunctions + `
if tonumber(redis.call('GET', KEYS[1]) or 0) >= tonumber(ARGV[1]) then return {} end
redis.call('SET', KEYS[1], ARGV[1], 'EX', 604800)
local a, row, refused, used = 3, 0, {}, redis.call('TIME')[1]
local function try(row, part, ...) -- what it closes over must not change: gopher-lua loses that in the error of a pcall
	local ok, err = pcall(part, ...)
	if not ok then refused[#refused + 1] = row .. ' ' .. tostring(type(err) == 'table' and err.err or err) end
end
for k = 2, #KEYS, 3 do
	try(row, add, KEYS[k], KEYS[k + 1], ARGV[a], cjson.decode(ARGV[a + 1]), ARGV[2])
	if ARGV[a + 2] ~= '0' then try(row, redis.call, 'HINCRBY', KEYS[k + 2], 'spent', ARGV[a + 2]) end
	redis.pcall('HSET', KEYS[k + 2], 'used', used) -- for people: nothing is lost with it
	for _, lease in ipairs(cjson.decode(ARGV[a + 3])) do try(row, amend, KEYS[k + 2], 'c' .. lease, -1) end
	a, row = a + 4, row + 1
end
return refused
`

// The places of counters.
const (
	inRequests = iota
	inFailed
	inInput
	inCached
	inOutput
	inImages
	inAudio // ms
	inVideo // ms
	inTasks
	inCost
)

// counterNames end the fields of a usage hash, in the order of counters.
const counterNames = "requests failed input cached output images audio_ms video_ms tasks cost"

// Flush adds what was recorded so far to Redis. What Redis did not take is kept for the next time, but for what it refuses:
// that is logged, counted as Refused, and in no one's way.
func (u *Usage) Flush(ctx context.Context) error {
	u.sending.Lock()
	defer u.sending.Unlock()
	for range 2 { // first what is left of the last time, then what was recorded since
		u.cut()
		for len(u.batches) > 0 {
			b := &u.batches[0]
			err := u.out.Note(ctx, time.Now(), u.send(ctx, *b))
			if err != nil {
				u.failures.Add(1)
				if errors.Is(err, storage.ErrUnavailable) || ctx.Err() != nil {
					return err
				}
				if b.refused++; b.refused < refusedTries {
					return err
				}
				for _, row := range b.rows {
					u.refuse(ctx, row, err.Error())
				}
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
	u.sums = make(map[usageKey]tally, len(sums))
	clear(u.rows)
	u.mu.Unlock()
	for keys := range slices.Chunk(slices.Collect(maps.Keys(sums)), usageTogether) {
		u.number++
		rows := make([]usageRow, len(keys))
		for i, key := range keys {
			rows[i] = usageRow{key, sums[key]}
		}
		u.batches = append(u.batches, usageBatch{number: u.number, rows: rows})
	}
}

func (u *Usage) send(ctx context.Context, b usageBatch) error {
	keys := []string{sequenceKey(u.process)}
	args := []any{b.number, int64(usageExpire / time.Second)}
	for _, row := range b.rows {
		keys = append(keys, dayKey(row.day), tokenDayKey(row.day, row.token), BudgetKey(row.token))
		fields, err := usageFields(row.model, row.channel, row.sums)
		if err != nil {
			return err
		}
		reservations := []byte("[]")
		if len(row.reservations) > 0 {
			if reservations, err = json.Marshal(row.reservations); err != nil {
				return fmt.Errorf("write usage: %w", err)
			}
		}
		args = append(args, row.token, fields, row.sums[inCost], reservations)
	}
	refused, err := u.script.Run(ctx, u.client, keys, args...).StringSlice()
	if err != nil {
		return storage.RedisError("write usage", err)
	}
	for _, text := range refused {
		place, why, _ := strings.Cut(text, " ")
		if i, err := strconv.Atoi(place); err == nil && i < len(b.rows) {
			u.refuse(ctx, b.rows[i], why)
		}
	}
	return nil
}

// refuse tells of a row that Redis did not take, or not all of it, so that an operator can make up for it.
func (u *Usage) refuse(ctx context.Context, row usageRow, why string) {
	u.refused.Add(1)
	attrs := []slog.Attr{
		slog.String("day", row.day), slog.String("token", row.token), slog.String("model", row.model), slog.String("channel", row.channel),
	}
	for i, name := range strings.Fields(counterNames) {
		if row.sums[i] != 0 {
			attrs = append(attrs, slog.Int64(name, row.sums[i]))
		}
	}
	attrs = append(attrs, slog.Int("reservations", len(row.reservations)), slog.String("error", why))
	u.log.LogAttrs(ctx, slog.LevelError, "redis refuses a row of the ledger", attrs...)
}

// usageFields writes counters as a usage hash has them: JSON [field, n, field, n, …].
func usageFields(model, channel string, sums counters) ([]byte, error) {
	add := make([]any, 0, 2*len(sums))
	names := strings.Fields(counterNames)
	for i, n := range sums {
		if n != 0 {
			add = append(add, usageField(model, channel)+names[i], n)
		}
	}
	text, err := json.Marshal(add)
	if err != nil {
		return nil, fmt.Errorf("write usage: %w", err)
	}
	return text, nil
}

// usageField begins the fields of a model and channel.
func usageField(model, channel string) string {
	return url.QueryEscape(model) + " " + url.QueryEscape(channel) + " "
}
