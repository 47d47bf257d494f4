package ledger

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	usageTogether = 200                  // keys in one round trip
	usageExpire   = 400 * 24 * time.Hour // lifetime of a ledger day after the last write
)

// usageRow is an addition to one row.
type usageRow struct {
	rowName
	tally
}

// usageScript adds the rows of one batch of an outbox. It skips what Redis refuses because another program has written to a key. The batch
// counts as applied before the first row: if Redis refuses all writes, for lack of memory, it refuses that one, and nothing was added.
//
//	KEYS   the outbox's, then for each row: the token's day, the token's budget, those of dayKeys
//	ARGV   the outbox's, expiry in s, then for each row: token id, JSON [field, n, field, n, …], cost, JSON [reservation, …]
//	answer a line for each part that was skipped: the index of its row from 0, a blank, and the reason
const usageScript = BudgetFunctions + ledgerFunctions + `
applied('')
local a, row, refused, used = 3, 0, {}, redis.call('TIME')[1]
local function try(row, part, ...) -- what it closes over must not change: gopher-lua loses that in the error of a pcall
	local ok, err = pcall(part, ...)
	if not ok then refused[#refused + 1] = row .. ' ' .. tostring(type(err) == 'table' and err.err or err) end
end
for k = 2, #KEYS, 5 do
	local usage, budget, days = KEYS[k], KEYS[k + 1], {KEYS[k + 2], KEYS[k + 3], KEYS[k + 4]}
	try(row, add, days, usage, ARGV[a], cjson.decode(ARGV[a + 1]), ARGV[2])
	if ARGV[a + 2] ~= '0' then try(row, redis.call, 'HINCRBY', budget, 'spent', ARGV[a + 2]) end
	redis.pcall('HSET', budget, 'used', used) -- only for display: its failure loses nothing
	for _, lease in ipairs(cjson.decode(ARGV[a + 3])) do try(row, amend, budget, 'c' .. lease, -1) end
	a, row = a + 4, row + 1
end
return table.concat(refused, '\n')
`

// The indexes of counters.
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

// cut moves the sums into batches. While older batches wait, the sums are not cut, so equal keys are merged.
func (u *Usage) cut() (batches [][]usageRow) {
	u.mu.Lock()
	sums := u.sums
	u.sums = make(map[rowName]tally, len(sums))
	clear(u.rows)
	u.mu.Unlock()
	for keys := range slices.Chunk(slices.Collect(maps.Keys(sums)), usageTogether) {
		rows := make([]usageRow, len(keys))
		for i, key := range keys {
			rows[i] = usageRow{key, sums[key]}
		}
		batches = append(batches, rows)
	}
	return batches
}

func encode(rows []usageRow) (keys []string, args []any) {
	args = append(args, int64(usageExpire/time.Second))
	for _, row := range rows {
		keys = append(append(keys, tokenDayKey(row.day, row.token), BudgetKey(row.token)), dayKeys(row.day)...)
		reservations, _ := json.Marshal(append([]string{}, row.reservations...)) // texts are marshaled without an error
		args = append(args, row.token, usageFields(row.model, row.channel, row.sums), row.sums[inCost], reservations)
	}
	return keys, args
}

// applied reports the rows of which Redis refused a part.
func (u *Usage) applied(ctx context.Context, rows []usageRow, answer string) {
	for line := range strings.Lines(answer) {
		index, reason, _ := strings.Cut(line, " ")
		if i, err := strconv.Atoi(index); err == nil && i < len(rows) {
			u.refuse(ctx, rows[i], strings.TrimSpace(reason))
		}
	}
}

// lost reports the rows of a batch that Redis refused as a whole.
func (u *Usage) lost(ctx context.Context, rows []usageRow, err error) {
	for _, row := range rows {
		u.refuse(ctx, row, err.Error())
	}
}

// refuse logs a row that Redis did not accept completely, so that an operator can correct it.
func (u *Usage) refuse(ctx context.Context, row usageRow, reason string) {
	u.refused.Add(1)
	attrs := []slog.Attr{
		slog.String("day", row.day), slog.String("token", row.token), slog.String("model", row.model), slog.String("channel", row.channel),
	}
	for i, name := range strings.Fields(counterNames) {
		if row.sums[i] != 0 {
			attrs = append(attrs, slog.Int64(name, row.sums[i]))
		}
	}
	attrs = append(attrs, slog.Int("reservations", len(row.reservations)), slog.String("error", reason))
	u.log.LogAttrs(ctx, slog.LevelError, "redis refuses a row of the ledger", attrs...)
}

// usageFields encodes counters for a usage hash: JSON [field, n, field, n, …].
func usageFields(model, channel string, sums counters) []byte {
	add := make([]any, 0, 2*len(sums))
	names := strings.Fields(counterNames)
	for i, n := range sums {
		if n != 0 {
			add = append(add, usageField(model, channel)+names[i], n)
		}
	}
	text, _ := json.Marshal(add) // texts and numbers are marshaled without an error
	return text
}

// usageField returns the beginning of the fields of a model and channel.
func usageField(model, channel string) string {
	return url.QueryEscape(model) + " " + url.QueryEscape(channel) + " "
}
