package taskindex

import (
	"context"
	"net/url"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

const (
	durationsKept   = 15                  // the running median is of this many jobs
	durationsNeeded = 3                   // fewer say nothing about the next one
	durationsExpire = 30 * 24 * time.Hour // after the last job
)

// durationKey names a list, the last durations in ms, newest first. Names are escaped, so that a colon in one never makes two
// meet.
func durationKey(channel, model string) string {
	return storage.Prefix + "duration:" + url.QueryEscape(channel) + ":" + url.QueryEscape(model)
}

// Durations remembers how long a model's jobs usually take on a channel. Safe for concurrent use.
type Durations struct {
	client redis.UniversalClient
}

// NewDurations uses the client, which stays the caller's.
func NewDurations(client redis.UniversalClient) *Durations {
	return &Durations{client: client}
}

// Observe adds one finished job. A duration that is not positive is left out.
func (d *Durations) Observe(ctx context.Context, channel, model string, took time.Duration) error {
	if took <= 0 {
		return nil
	}
	key := durationKey(channel, model)
	_, err := d.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.LPush(ctx, key, took.Milliseconds())
		p.LTrim(ctx, key, 0, durationsKept-1)
		p.Expire(ctx, key, durationsExpire)
		return nil
	})
	return storage.RedisError("observe duration", err)
}

// Usual is the median of the last jobs, at most 15; false while fewer than three are known.
func (d *Durations) Usual(ctx context.Context, channel, model string) (time.Duration, bool, error) {
	values, err := d.client.LRange(ctx, durationKey(channel, model), 0, durationsKept-1).Result()
	if err != nil {
		return 0, false, storage.RedisError("read usual duration", err)
	}
	median, ok := medianOf(values)
	return median, ok, nil
}
