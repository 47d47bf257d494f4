package taskindex

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

// repeatsKept is how long an unkeyed create is remembered for its SDK's own retry: the ten minutes that the SDKs wait for
// an answer by default, and a little for the retry to come in.
const repeatsKept = 11 * time.Minute

const (
	// noteLease is how long the create that takes an open note has for its start. Then the note is open again: the create's
	// process may have died.
	noteLease = time.Minute
	// retryLead is how much older a first try is than its retry, at least: SDKs wait half a second, less a quarter of it. It
	// distinguishes a first try from another equal create that is in progress at the time of the retry.
	retryLead = 300 * time.Millisecond
	// notesMost bounds the open notes of one request.
	notesMost = 100
)

// repeatKeys are the keys of the creates of one request, in the order that beginScript wants them.
//
//	retry:<token id>:<hash>       string  task id of the last unkeyed create
//	retry-open:<token id>:<hash>  zset    open notes: task id -> when a create may take it, in ms
//	retry-mark:<token id>:<hash>  hash    id and at of a retry that found nothing
func repeatKeys(tokenID, requestHash string) []string {
	of := tokenID + ":" + requestHash
	return []string{storage.Prefix + "retry:" + of, storage.Prefix + "retry-open:" + of, storage.Prefix + "retry-mark:" + of}
}

// Repeats recognises the repeats of creates that carried no idempotency key: those that an SDK marks, and those of clients
// that had to come again. Safe for concurrent use.
type Repeats struct {
	client redis.UniversalClient
	clock  redisClock
}

// NewRepeats uses the client, which stays the caller's.
func NewRepeats(client redis.UniversalClient) *Repeats {
	return &Repeats{client: client}
}

// beginScript gives a create the id of its task.
//
// The open notes are a sorted set of task ids by the time from which a create may take them. The mark is the id that a
// retry was given which found nothing, and when.
//
//	KEYS   last task, open notes, mark
//	ARGV   new task id, 1 for a retry, when the request came in ms, keep in ms, lease of a note in ms, least lead of a first try in ms
//	answer task id, 1 when it is not the new one, 1 when it was taken from a note, the time in ms
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

// noteScript leaves an open note, unless there are too many.
//
//	KEYS   open notes
//	ARGV   task id, keep in ms, most
const noteScript = `
local time = redis.call('TIME')
redis.call('ZADD', KEYS[1], tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000), ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - tonumber(ARGV[3]))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
`

// Beginning is the id of a create that begins.
type Beginning struct {
	TaskID string
	// Known: an earlier create of the same request may have started the task.
	Known bool
	// Noted: the id was taken from an open note, which is the create's for a minute: Note closes it, or leaves it open again.
	Noted bool
}

// Begin gives a create of this token and request the id of its task, newID where it is a task of its own:
//
//   - A retry, as an SDK marks it, has the task of the last equal create. Where there is none the first try may still be under
//     way in another process, and has the retry's task, if it is older than the retry.
//   - Any other create has the task of an open note, each note once: that of an equal create whose client had to come
//     again, since it was unknown whether its task had started.
//
// age is since when the request is at the gateway. The id is remembered for eleven minutes; of several creates of the same
// request the last one's. With storage.ErrUnavailable the create must not go on: without the note its retry would be paid twice.
func (r *Repeats) Begin(ctx context.Context, tokenID, requestHash, newID string, retry bool, age time.Duration) (Beginning, error) {
	came, err := r.clock.of(ctx, r.client, time.Now().Add(-max(0, age)))
	if err != nil {
		return Beginning{}, storage.RedisError("begin create", err)
	}
	sent := time.Now()
	answer, err := redis.NewScript(beginScript).Run(ctx, r.client, repeatKeys(tokenID, requestHash), newID, retry, came,
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

// Note leaves an open note of a task that may have started, for the next equal create, or closes the task's.
func (r *Repeats) Note(ctx context.Context, tokenID, requestHash, taskID string, open bool) error {
	notes := repeatKeys(tokenID, requestHash)[1]
	if !open {
		return storage.RedisError("close note", r.client.ZRem(ctx, notes, taskID).Err())
	}
	return ran("leave note", redis.NewScript(noteScript).Run(ctx, r.client, []string{notes}, taskID, repeatsKept.Milliseconds(), notesMost))
}

// Recall returns the task that the same token started with the same request within the last eleven minutes, else
// storage.ErrNotFound. The next retry has as long again.
func (r *Repeats) Recall(ctx context.Context, tokenID, requestHash string) (string, error) {
	taskID, err := r.client.GetEx(ctx, repeatKeys(tokenID, requestHash)[0], repeatsKept).Result()
	return taskID, storage.RedisError("recall create", err)
}

// sampleFor is how long a sample of Redis's clock is used without another.
const sampleFor = time.Minute

// redisClock converts times of this process to times of Redis's clock, which several processes share. The result does not depend on how
// long the request that carries it is on its way. The zero value is ready. It is safe for concurrent use.
type redisClock struct {
	mu     sync.Mutex
	sample sample
}

// sample is one reading of Redis's clock.
type sample struct {
	ms       int64         // that Redis returned
	received time.Time     // here
	trip     time.Duration // from the question to the answer, which bounds the error
}

// of is a time in ms of Redis's clock, or up to one round trip earlier. It asks Redis only where there is no sample of the last minute.
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

// take uses a reading, unless a better one is not yet old, and returns what is used.
func (c *redisClock) take(ms int64, sent, received time.Time) sample {
	c.mu.Lock()
	defer c.mu.Unlock()
	if trip := received.Sub(sent); trip <= 2*c.sample.trip || received.Sub(c.sample.received) > sampleFor/2 {
		c.sample = sample{ms: ms, received: received, trip: trip}
	}
	return c.sample
}
