package taskindex

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

// Timed is what a duration is usual for.
type Timed struct{ Channel, Model string }

// UsualOf is Usual of several, in one round trip. What is not known is not among the answers.
func (d *Durations) UsualOf(ctx context.Context, of []Timed) (map[Timed]time.Duration, error) {
	usual := make(map[Timed]time.Duration, len(of))
	if len(of) == 0 {
		return usual, nil
	}
	answers := make([]*redis.StringSliceCmd, len(of))
	_, err := d.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, timed := range of {
			answers[i] = pipe.LRange(ctx, durationKey(timed.Channel, timed.Model), 0, durationsKept-1)
		}
		return nil
	})
	if err != nil {
		return nil, storage.RedisError("read usual durations", err)
	}
	for i, timed := range of {
		if median, ok := medianOf(answers[i].Val()); ok {
			usual[timed] = median
		}
	}
	return usual, nil
}

// medianOf is that of durations as Redis has them; false where they are too few.
func medianOf(values []string) (time.Duration, bool) {
	known := make([]int64, 0, len(values))
	for _, v := range values {
		if ms, err := strconv.ParseInt(v, 10, 64); err == nil {
			known = append(known, ms)
		}
	}
	if len(known) < durationsNeeded {
		return 0, false
	}
	slices.Sort(known)
	return time.Duration(known[len(known)/2]) * time.Millisecond, true
}
