package taskindex

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

// tombstoneKeep is the lifetime of a tombstone. A removal retries through outages of days, and then deletes it.
const tombstoneKeep = 7 * 24 * time.Hour

// tombstoneKey returns the key of a string: the mark of the task under removal.
func tombstoneKey(taskID string) string { return storage.Prefix + "removal:" + taskID }

// markRemovalScript marks a task as under removal and removes it from the lists.
//
//	KEYS   tasks, unfinished, tombstone
//	ARGV   task id, created in ms, the tombstone's mark, keep in ms
const markRemovalScript = removeTaskScript + `
redis.call('SET', KEYS[3], ARGV[3], 'PX', ARGV[4])
`

// endRemovalScript deletes a tombstone, but not that of another task with its id.
//
//	KEYS   tombstone
//	ARGV   its mark
const endRemovalScript = `
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
`

// MarkRemoval marks the task that was created then as under removal, for a week or until EndRemoval, and removes it from the lists. It does
// not affect another task with its id.
func (x *Index) MarkRemoval(ctx context.Context, tokenID, taskID string, created time.Time) error {
	keys := []string{tasksKey(tokenID), unfinishedKey(tokenID), tombstoneKey(taskID)}
	return scriptError("bury task", redis.NewScript(markRemovalScript).Run(ctx, x.client, keys,
		taskID, scoreOf(created), mark(created), tombstoneKeep.Milliseconds()))
}

// UnderRemoval reports whether the task that was created then is under removal; the zero time: whether any task with the id is.
func (x *Index) UnderRemoval(ctx context.Context, taskID string, created time.Time) (bool, error) {
	found, err := x.client.Get(ctx, tombstoneKey(taskID)).Result()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil && (created.IsZero() || found == mark(created)), storage.RedisError("look for a removal", err)
}

// EndRemoval ends the removal of the task that was created then, after all of it is deleted. Its id may then be used again.
func (x *Index) EndRemoval(ctx context.Context, taskID string, created time.Time) error {
	return scriptError("end a removal", redis.NewScript(endRemovalScript).Run(ctx, x.client, []string{tombstoneKey(taskID)}, mark(created)))
}

// mark distinguishes a task from others with its id.
func mark(created time.Time) string { return strconv.FormatInt(created.UnixNano(), 10) }

// changedKey returns the key of a string, which exists while earlier reads of the task may be stale.
func changedKey(taskID string) string { return storage.Prefix + "disturbed:" + taskID }

// changedFor is the lifetime of the mark of a change: twice the lifetime of a process's cached read of a task.
const changedFor = 10 * time.Second

// MarkChanged marks a task that its token changes, or that has ended, so that Unchanged returns false for changedFor.
func (x *Index) MarkChanged(ctx context.Context, taskID string) error {
	return storage.RedisError("mark a change", x.client.Set(ctx, changedKey(taskID), "1", changedFor).Err())
}

// Unchanged reports whether a task is not marked by MarkChanged, and no task with its id is under removal.
func (x *Index) Unchanged(ctx context.Context, taskID string) (bool, error) {
	unchanged, err := x.UnchangedOf(ctx, []string{taskID})
	return len(unchanged) > 0, err
}

// UnchangedOf returns the tasks for which Unchanged is true, in their order, in one round trip.
func (x *Index) UnchangedOf(ctx context.Context, taskIDs []string) ([]string, error) {
	marks, err := storage.Pipelined(ctx, x.client, "look for a change", taskIDs, func(pipe redis.Pipeliner, id string) *redis.IntCmd {
		return pipe.Exists(ctx, changedKey(id), tombstoneKey(id))
	})
	if err != nil {
		return nil, err
	}
	var unchanged []string
	for i, id := range taskIDs {
		if marks[i].Val() == 0 {
			unchanged = append(unchanged, id)
		}
	}
	return unchanged, nil
}
