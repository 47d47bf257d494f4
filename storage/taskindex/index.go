// Package taskindex stores indexes of tasks in Redis: the lists of a token's tasks, the marks of tasks under removal, hints that a task has
// changed, repeats of creates, and usual durations of jobs. Temporal has the state of tasks; the package does not depend on workflows.
package taskindex

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

// ErrTooMany reports that a token has reached its limit of unfinished tasks.
var ErrTooMany = errors.New("too many unfinished tasks")

// taskKeep is the default lifetime of a task in an index: longer than Temporal's usual retention. Readers skip removed tasks.
const taskKeep = 30 * 24 * time.Hour

// Entry is one task of an index.
type Entry struct {
	TaskID string
	// At is the task's creation or, in Unfinished, the time at which it was added; whole milliseconds.
	At time.Time
}

// Index lists the tasks of a token, its unfinished tasks and those under removal. If Redis loses it, it can be restored from Temporal. It
// is safe for concurrent use.
type Index struct {
	client redis.UniversalClient
	keep   time.Duration
}

// New returns an Index over the client, which the caller closes. keep is a task's lifetime in the index; 0: 30 days.
func New(client redis.UniversalClient, keep time.Duration) *Index {
	return &Index{client: client, keep: cmp.Or(keep, taskKeep)}
}

// ExcludedError reports that another task on the list, created then, excludes a new one.
type ExcludedError struct{ Created time.Time }

// Error implements error.
func (e *ExcludedError) Error() string { return "another task excludes this one" }

// addTaskScript adds a new task, unless another one excludes it or the token has too many unfinished tasks.
//
//	KEYS   tasks, unfinished
//	ARGV   task id, created in ms, most unfinished (0: any number), keep in ms, ids that exclude it
//	answer 1: added, 0: already known, -1: too many; above 1: the creation, in ms, of a task that excludes it
const addTaskScript = `
local id, created, most, keep = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
if redis.call('ZSCORE', KEYS[1], id) then return 0 end
for i = 5, #ARGV do
	local other = redis.call('ZSCORE', KEYS[1], ARGV[i])
	if other then return tonumber(other) end
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - keep)
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - keep)
if most > 0 and redis.call('ZCARD', KEYS[2]) >= most then return -1 end
redis.call('ZADD', KEYS[1], created, id)
redis.call('ZADD', KEYS[2], now, id)
redis.call('PEXPIRE', KEYS[1], keep)
redis.call('PEXPIRE', KEYS[2], keep)
return 1
`

// Add adds a task that is about to start, and counts it as unfinished. A known task stays as it is, even beyond the limit, and added is
// false: Add never refuses a repeat of a create. ErrTooMany: the token already has most unfinished tasks; 0: no limit. *ExcludedError: one
// of the others is on the list.
func (x *Index) Add(ctx context.Context, tokenID, taskID string, created time.Time, most int, others ...string) (added bool, err error) {
	args := []any{taskID, created.UnixMilli(), most, x.keep.Milliseconds()}
	for _, other := range others {
		args = append(args, other)
	}
	answer, err := redis.NewScript(addTaskScript).Run(ctx, x.client, []string{tasksKey(tokenID), unfinishedKey(tokenID)}, args...).Int64()
	switch {
	case err != nil:
		return false, storage.RedisError("add task", err)
	case answer < 0:
		return false, fmt.Errorf("add task: %w", ErrTooMany)
	case answer > 1:
		return false, &ExcludedError{Created: time.UnixMilli(answer).UTC()}
	}
	return answer > 0, nil
}

// removeTaskScript removes a task from the lists, but not another one with its id.
//
//	KEYS   tasks, unfinished
//	ARGV   task id, created in ms ("": any)
const removeTaskScript = `
local created = redis.call('ZSCORE', KEYS[1], ARGV[1])
if ARGV[2] == '' or not created or tonumber(created) == tonumber(ARGV[2]) then
	redis.call('ZREM', KEYS[1], ARGV[1])
	redis.call('ZREM', KEYS[2], ARGV[1])
end
`

// Remove removes the task that was created then; the zero time: any task with the id. It returns nil for an unknown task.
func (x *Index) Remove(ctx context.Context, tokenID, taskID string, created time.Time) error {
	keys := []string{tasksKey(tokenID), unfinishedKey(tokenID)}
	return scriptError("remove task", redis.NewScript(removeTaskScript).Run(ctx, x.client, keys, taskID, scoreOf(created)))
}

// restoreScript puts a task into the index, unless it is under removal.
//
//	KEYS   tasks, unfinished, tombstone
//	ARGV   task id, created in ms, 1 for an unfinished one, keep in ms, the tombstone's mark
const restoreScript = `
local removed = redis.call('GET', KEYS[3]) == ARGV[5]
if removed or ARGV[3] ~= '1' then
	redis.call('ZREM', KEYS[2], ARGV[1])
else
	redis.call('ZADD', KEYS[2], 'NX', ARGV[2], ARGV[1])
	redis.call('PEXPIRE', KEYS[2], ARGV[4])
end
if removed then return end
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
`

// Restore puts a task into the index, finished or not. It is idempotent. A task under removal is not listed and not counted.
func (x *Index) Restore(ctx context.Context, tokenID, taskID string, created time.Time, unfinished bool) error {
	keys := []string{tasksKey(tokenID), unfinishedKey(tokenID), tombstoneKey(taskID)}
	return scriptError("restore task", redis.NewScript(restoreScript).Run(ctx, x.client, keys,
		taskID, created.UnixMilli(), unfinished, x.keep.Milliseconds(), mark(created)))
}

// pageScript reads the entries after a task.
//
//	KEYS   tasks
//	ARGV   id of the task ("": from the beginning), most, 1 for oldest first
//	answer members and scores in turn; nil: the task is unknown
const pageScript = `
local command, rank, from = 'ZREVRANGE', 'ZREVRANK', 0
if ARGV[3] == '1' then command, rank = 'ZRANGE', 'ZRANK' end
if ARGV[1] ~= '' then
	local at = redis.call(rank, KEYS[1], ARGV[1])
	if not at then return nil end
	from = at + 1
end
return redis.call(command, KEYS[1], from, from + tonumber(ARGV[2]) - 1, 'WITHSCORES')
`

// Page returns up to limit tasks of a token by creation, newest first or, ascending, oldest first. They follow the task with the id after;
// "": from the beginning. storage.ErrNotFound: the index does not have that task.
func (x *Index) Page(ctx context.Context, tokenID, after string, limit int, ascending bool) ([]Entry, error) {
	if limit <= 0 {
		return nil, nil
	}
	answer, err := redis.NewScript(pageScript).Run(ctx, x.client, []string{tasksKey(tokenID)}, after, limit, ascending).Slice()
	if err != nil {
		return nil, storage.RedisError("list tasks", err)
	}
	entries := make([]Entry, 0, len(answer)/2)
	for i := 0; i+1 < len(answer); i += 2 {
		id, _ := answer[i].(string)
		score, err := redis.NewCmdResult(answer[i+1], nil).Float64()
		if err != nil {
			return nil, fmt.Errorf("list tasks: score of %s: %w", id, err)
		}
		entries = append(entries, Entry{TaskID: id, At: time.UnixMilli(int64(score)).UTC()})
	}
	return entries, nil
}

// Unfinished returns up to limit unfinished tasks of a token after the first `from`, the oldest first, and the number of all of them.
func (x *Index) Unfinished(ctx context.Context, tokenID string, from, limit int) (entries []Entry, all int, err error) {
	if limit <= 0 {
		return nil, 0, nil
	}
	var page *redis.ZSliceCmd
	var count *redis.IntCmd
	_, err = x.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		page = p.ZRangeWithScores(ctx, unfinishedKey(tokenID), int64(from), int64(from+limit)-1)
		count = p.ZCard(ctx, unfinishedKey(tokenID))
		return nil
	})
	if err != nil {
		return nil, 0, storage.RedisError("list unfinished tasks", err)
	}
	answer := page.Val()
	entries = make([]Entry, 0, len(answer))
	for _, z := range answer {
		id, _ := z.Member.(string)
		entries = append(entries, Entry{TaskID: id, At: time.UnixMilli(int64(z.Score)).UTC()})
	}
	return entries, int(count.Val()), nil
}

// scoreOf returns a time as a score, "" for zero.
func scoreOf(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return strconv.FormatInt(at.UnixMilli(), 10)
}

// scriptError returns the error of a script that answers nothing.
func scriptError(doing string, answer *redis.Cmd) error {
	if err := answer.Err(); !errors.Is(err, redis.Nil) {
		return storage.RedisError(doing, err)
	}
	return nil
}

// The keys of a token's lists:
//
//	tasks:<token id>       zset  task id -> creation in ms
//	unfinished:<token id>  zset  task id -> time at which it was added, in ms
func tasksKey(tokenID string) string      { return storage.Prefix + "tasks:" + tokenID }
func unfinishedKey(tokenID string) string { return storage.Prefix + "unfinished:" + tokenID }
