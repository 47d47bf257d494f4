package storage

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// SlotState is how full a channel is.
type SlotState struct {
	// Held are slots that are taken, Waiting the tasks in line.
	Held, Waiting int64
}

// States tells how full the channels are, in their order. Slots of tasks that died count until their time is over. The
// error is ErrUnavailable, or the caller's cancellation.
func (s *Slots) States(ctx context.Context, channels []string) ([]SlotState, error) {
	held, waiting := make([]*redis.IntCmd, len(channels)), make([]*redis.IntCmd, len(channels))
	_, err := s.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, channel := range channels {
			keys := channelKeys(channel)
			held[i], waiting[i] = pipe.ZCard(ctx, keys[0]), pipe.ZCard(ctx, keys[1])
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look at the slots: %w", RedisError("count", err))
	}
	states := make([]SlotState, len(channels))
	for i := range channels {
		states[i] = SlotState{Held: held[i].Val(), Waiting: waiting[i].Val()}
	}
	return states, nil
}
