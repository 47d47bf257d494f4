package taskindex

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

// repeatsKept is how long an unkeyed create is stored for its SDK's retry: SDKs wait ten minutes for an answer by default, and the retry
// needs some time to arrive.
const repeatsKept = 11 * time.Minute

const (
	// noteLease is the time in which the create that takes an open note must start its task. Then the note is open again, in case of a crash.
	noteLease = time.Minute
	// retryLead is the least time between a first try and its retry: SDKs wait half a second, less a quarter of it. It distinguishes a
	// first try from another equal create that is in progress at the time of the retry.
	retryLead = 300 * time.Millisecond
	// notesMost bounds the open notes of one request.
	notesMost = 100
)

// repeatKeys returns the keys of the creates of one request, in the order of beginScript.
//
//	retry:<token id>:<hash>       string  task id of the last unkeyed create
//	retry-open:<token id>:<hash>  zset    open notes: task id -> time from which a create may take it, in ms
//	retry-mark:<token id>:<hash>  hash    id and at: the task id and time of a retry that found nothing
func repeatKeys(tokenID, requestHash string) []string {
	of := tokenID + ":" + requestHash
	return []string{storage.Prefix + "retry:" + of, storage.Prefix + "retry-open:" + of, storage.Prefix + "retry-mark:" + of}
}

// Repeats recognises repeats of creates without an idempotency key: an SDK's marked retries, and repeats by clients whose first create had
// an unknown result. It is safe for concurrent use.
type Repeats struct {
	client redis.UniversalClient
	clock  redisClock
}

// NewRepeats returns Repeats over the client, which the caller closes.
func NewRepeats(client redis.UniversalClient) *Repeats {
	return &Repeats{client: client}
}

// beginScript gives a create the id of its task.
//
//	KEYS   those of repeatKeys
//	ARGV   new task id, 1 for a retry, arrival of the request in ms, keep in ms, noteLease in ms, retryLead in ms
//	answer task id, 1 if it is not the new one, 1 if it is of a note, the time in ms
const beginScript = `
local id, keep, lease = ARGV[1], tonumber(ARGV[4]), tonumber(ARGV[5])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local function take(found)
	redis.call('SET', KEYS[1], found, 'PX', keep)
	local noted = redis.call('ZSCORE', KEYS[2], found)
	if noted then redis.call('ZADD', KEYS[2], now + lease, found) end
	return {found, 1, noted and 1 or 0, now}
end
local last = redis.call('GET', KEYS[1])
if ARGV[2] == '1' then
	if last then return take(last) end
else
	local mark = redis.call('HMGET', KEYS[3], 'id', 'at')
	if mark[1] and tonumber(ARGV[3]) <= tonumber(mark[2]) - tonumber(ARGV[6]) then
		redis.call('DEL', KEYS[3])
		return take(mark[1])
	end
end
local open = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, 1)
if open[1] then return take(open[1]) end
redis.call('SET', KEYS[1], id, 'PX', keep)
if ARGV[2] == '1' then
	redis.call('HSET', KEYS[3], 'id', id, 'at', now)
	redis.call('PEXPIRE', KEYS[3], keep)
end
return {id, 0, 0, now}
`

// noteScript opens a note, and removes the oldest of too many.
//
//	KEYS   open notes
//	ARGV   task id, keep in ms, most
const noteScript = `
local time = redis.call('TIME')
redis.call('ZADD', KEYS[1], tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000), ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - tonumber(ARGV[3]))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
`

// Beginning is the result of Begin.
type Beginning struct {
	TaskID string
	// Known: an earlier create of the same request may have started the task.
	Known bool
	// Noted: the id is of an open note, which is reserved for this create for a minute: Note closes it, or opens it again.
	Noted bool
}

// Begin gives a create of this token and request the id of its task, newID for a new task:
//
//   - A retry that an SDK marks gets the task of the last equal create. Without one, the first try may still be in progress in another
//     process: it then gets the retry's task if it is older than the retry.
//   - Any other create gets the task of an open note, each note once. A note is of an equal create that may or may not have started its
//     task.
//
// age is the time since the request arrived. The id is stored for eleven minutes, of several creates of the same request the last one.
// storage.ErrUnavailable: the create must end, because its retry could not be recognised and would be paid twice.
func (r *Repeats) Begin(ctx context.Context, tokenID, requestHash, newID string, retry bool, age time.Duration) (Beginning, error) {
	arrived, err := r.clock.of(ctx, r.client, time.Now().Add(-max(0, age)))
	if err != nil {
		return Beginning{}, storage.RedisError("begin create", err)
	}
	sent := time.Now()
	answer, err := redis.NewScript(beginScript).Run(ctx, r.client, repeatKeys(tokenID, requestHash), newID, retry, arrived,
		repeatsKept.Milliseconds(), noteLease.Milliseconds(), retryLead.Milliseconds()).Slice()
	if err != nil {
		return Beginning{}, storage.RedisError("begin create", err)
	}
	if len(answer) != 4 {
		return Beginning{}, fmt.Errorf("begin create: answer of %d parts", len(answer))
	}
	id, _ := answer[0].(string)
	known, _ := answer[1].(int64)
	noted, _ := answer[2].(int64)
	if now, ok := answer[3].(int64); ok {
		r.clock.take(now, sent, time.Now())
	}
	return Beginning{TaskID: id, Known: known == 1, Noted: noted == 1}, nil
}

// Note opens a note of a task that may have started, for the next equal create, or closes it.
func (r *Repeats) Note(ctx context.Context, tokenID, requestHash, taskID string, open bool) error {
	notes := repeatKeys(tokenID, requestHash)[1]
	if !open {
		return storage.RedisError("close note", r.client.ZRem(ctx, notes, taskID).Err())
	}
	return scriptError("leave note", redis.NewScript(noteScript).Run(ctx, r.client, []string{notes}, taskID, repeatsKept.Milliseconds(), notesMost))
}

// Last returns the last task of the same token and request within eleven minutes, else storage.ErrNotFound. It extends the entry.
func (r *Repeats) Last(ctx context.Context, tokenID, requestHash string) (string, error) {
	taskID, err := r.client.GetEx(ctx, repeatKeys(tokenID, requestHash)[0], repeatsKept).Result()
	return taskID, storage.RedisError("recall create", err)
}

// sampleFor is the lifetime of a sample of Redis's clock.
const sampleFor = time.Minute

// redisClock converts times of this process to times of Redis's clock, which all processes share. The time in transit of the request that
// carries the result does not matter. The zero value is ready. It is safe for concurrent use.
type redisClock struct {
	mu     sync.Mutex
	sample sample
}

type sample struct {
	ms       int64         // Redis's time
	received time.Time     // by this process's clock
	trip     time.Duration // the round trip, which bounds the error
}

// of returns a time in ms of Redis's clock, or up to one round trip less. It reads Redis's clock only without a sample of the last minute.
func (c *redisClock) of(ctx context.Context, client redis.UniversalClient, at time.Time) (int64, error) {
	c.mu.Lock()
	s := c.sample
	c.mu.Unlock()
	if time.Since(s.received) > sampleFor {
		sent := time.Now()
		now, err := client.Time(ctx).Result()
		if err != nil {
			return 0, err
		}
		s = c.take(now.UnixMilli(), sent, time.Now())
	}
	return s.ms - s.received.Sub(at).Milliseconds(), nil
}

// take stores a reading, unless the present sample is more precise and not old, and returns the sample.
func (c *redisClock) take(ms int64, sent, received time.Time) sample {
	c.mu.Lock()
	defer c.mu.Unlock()
	if trip := received.Sub(sent); trip <= 2*c.sample.trip || received.Sub(c.sample.received) > sampleFor/2 {
		c.sample = sample{ms: ms, received: received, trip: trip}
	}
	return c.sample
}
