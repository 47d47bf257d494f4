package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
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
	sums   map[usageKey]tally
}

// usageScript adds one batch unless its number was added before.
//
//	KEYS   sequence, then for each key: the day's tokens, the token's day, the token's budget
//	ARGV   number, expiry in s, then for each key: token id, JSON [field, n, field, n, …], cost, JSON [reservation, …]
const usageScript = budgetFunctions + ledgerFunctions + `
if tonumber(redis.call('GET', KEYS[1]) or 0) >= tonumber(ARGV[1]) then return 0 end
local a = 3
for k = 2, #KEYS, 3 do
	add(KEYS[k], KEYS[k + 1], ARGV[a], cjson.decode(ARGV[a + 1]), ARGV[2])
	if ARGV[a + 2] ~= '0' then redis.call('HINCRBY', KEYS[k + 2], 'spent', ARGV[a + 2]) end
	for _, lease in ipairs(cjson.decode(ARGV[a + 3])) do amend(KEYS[k + 2], 'c' .. lease, -1) end
	a = a + 4
end
redis.call('SET', KEYS[1], ARGV[1], 'EX', 604800)
return 1
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

// Flush adds what was recorded so far to Redis. What Redis did not take is kept for the next time.
func (u *Usage) Flush(ctx context.Context) error {
	u.sending.Lock()
	defer u.sending.Unlock()
	for range 2 { // first what is left of the last time, then what was recorded since
		u.cut()
		for len(u.batches) > 0 {
			if err := u.out.note(ctx, time.Now(), u.send(ctx, u.batches[0])); err != nil {
				u.failures.Add(1)
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
	u.sums = make(map[usageKey]tally, len(sums))
	u.mu.Unlock()
	for keys := range slices.Chunk(slices.Collect(maps.Keys(sums)), usageTogether) {
		u.number++
		part := make(map[usageKey]tally, len(keys))
		for _, key := range keys {
			part[key] = sums[key]
		}
		u.batches = append(u.batches, usageBatch{number: u.number, sums: part})
	}
}

func (u *Usage) send(ctx context.Context, b usageBatch) error {
	keys := []string{u.keys.usageSequence(u.process)}
	args := []any{b.number, int64(usageExpire / time.Second)}
	for key, t := range b.sums {
		keys = append(keys, u.keys.usageDay(key.day), u.keys.usage(key.day, key.token), u.keys.budget(key.token))
		fields, err := usageFields(key.model, key.channel, t.sums)
		if err != nil {
			return err
		}
		reservations := []byte("[]")
		if len(t.reservations) > 0 {
			if reservations, err = json.Marshal(t.reservations); err != nil {
				return fmt.Errorf("write usage: %w", err)
			}
		}
		args = append(args, key.token, fields, t.sums[inCost], reservations)
	}
	return redisError("write usage", u.script.Run(ctx, u.client, keys, args...).Err())
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
