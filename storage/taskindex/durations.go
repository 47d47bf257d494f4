package taskindex

import (
	"context"
	"net/url"
	"slices"
	"strconv"
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
	timed := Timed{channel, model}
	usual, err := d.UsualOf(ctx, []Timed{timed})
	median, ok := usual[timed]
	return median, ok, err
}

// Timed is what a duration is usual for.
type Timed struct{ Channel, Model string }

// UsualOf is Usual of several, in one round trip. What is not known is not among the answers.
func (d *Durations) UsualOf(ctx context.Context, of []Timed) (map[Timed]time.Duration, error) {
	usual := make(map[Timed]time.Duration, len(of))
	answers, err := storage.Pipelined(ctx, d.client, "read usual durations", of, func(to redis.Pipeliner, timed Timed) *redis.StringSliceCmd {
		return to.LRange(ctx, durationKey(timed.Channel, timed.Model), 0, durationsKept-1)
	})
	if err != nil {
		return nil, err
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
