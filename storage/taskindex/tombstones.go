package taskindex

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

// tombstoneKeep is how long a task under removal reads as gone. The removal, which lifts it, outlasts outages of days.
const tombstoneKeep = 7 * 24 * time.Hour

// removal:<task id> is a string, the mark of the task that is being removed.
func tombstoneKey(taskID string) string { return storage.Prefix + "removal:" + taskID }

// buryScript marks a task and takes it off the list.
//
//	KEYS   tasks, unfinished, tombstone
//	ARGV   task id, created in ms, the tombstone's mark, keep in ms
const buryScript = removeTaskScript + `
redis.call('SET', KEYS[3], ARGV[3], 'PX', ARGV[4])
`

// liftScript takes a tombstone away, but not another task's.
//
//	KEYS   tombstone
//	ARGV   its mark
const liftScript = `
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
`

// Bury marks the task that was created then as under removal and forgets it: from now on Buried says so, for a week or until
// Lift. Another task that has its id meanwhile, or gets it later, is not meant.
func (x *Index) Bury(ctx context.Context, tokenID, taskID string, created time.Time) error {
	keys := []string{tasksKey(tokenID), unfinishedKey(tokenID), tombstoneKey(taskID)}
	return ran("bury task", redis.NewScript(buryScript).Run(ctx, x.client, keys,
		taskID, scoreOf(created), mark(created), tombstoneKeep.Milliseconds()))
}

// Buried reports whether the task that was created then is under removal; a zero time: whether any with the id is.
func (x *Index) Buried(ctx context.Context, taskID string, created time.Time) (bool, error) {
	found, err := x.client.Get(ctx, tombstoneKey(taskID)).Result()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil && (created.IsZero() || found == mark(created)), storage.RedisError("look for a removal", err)
}

// Lift ends the removal of the task that was created then: nothing of it is left, and its id may be used again.
func (x *Index) Lift(ctx context.Context, taskID string, created time.Time) error {
	return ran("end a removal", redis.NewScript(liftScript).Run(ctx, x.client, []string{tombstoneKey(taskID)}, mark(created)))
}

// mark distinguishes a task from others with its id.
func mark(created time.Time) string { return strconv.FormatInt(created.UnixNano(), 10) }

// disturbed:<task id> is a string, there while what was read of the task may be stale.
func disturbedKey(taskID string) string { return storage.Prefix + "disturbed:" + taskID }

// disturbedFor is how long a change is marked: twice as long as a process may answer from what it read of a task.
const disturbedFor = 10 * time.Second

// Disturb marks a task that its token changes, or that has ended: Calm denies it for a while.
func (x *Index) Disturb(ctx context.Context, taskID string) error {
	return storage.RedisError("mark a change", x.client.Set(ctx, disturbedKey(taskID), "1", disturbedFor).Err())
}

// Calm reports whether a task was not changed of late, and none with its id is under removal.
func (x *Index) Calm(ctx context.Context, taskID string) (bool, error) {
	calm, err := x.CalmOf(ctx, []string{taskID})
	return len(calm) > 0, err
}

// CalmOf returns the tasks of which Calm is true, in their order, in one round trip.
func (x *Index) CalmOf(ctx context.Context, taskIDs []string) ([]string, error) {
	marks, err := storage.Pipelined(ctx, x.client, "look for a change", taskIDs, func(pipe redis.Pipeliner, id string) *redis.IntCmd {
		return pipe.Exists(ctx, disturbedKey(id), tombstoneKey(id))
	})
	if err != nil {
		return nil, err
	}
	var calm []string
	for i, id := range taskIDs {
		if marks[i].Val() == 0 {
			calm = append(calm, id)
		}
	}
	return calm, nil
}
