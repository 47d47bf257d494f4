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
	durationsKept   = 15                  // jobs of the running median
	durationsNeeded = 3                   // fewer jobs have no median
	durationsExpire = 30 * 24 * time.Hour // after the last job
)

// durationKey returns the key of a list: the last durations in ms, newest first. Names are escaped, for colons in them.
func durationKey(channel, model string) string {
	return storage.Prefix + "duration:" + url.QueryEscape(channel) + ":" + url.QueryEscape(model)
}

// Durations stores the usual duration of a model's jobs on a channel. It is safe for concurrent use.
type Durations struct {
	client redis.UniversalClient
}

// NewDurations returns Durations over the client, which the caller closes.
func NewDurations(client redis.UniversalClient) *Durations {
	return &Durations{client: client}
}

// Observe adds one finished job. It ignores a duration that is not positive.
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

// Usual returns the median of the last jobs, at most 15; false while there are fewer than three.
func (d *Durations) Usual(ctx context.Context, channel, model string) (time.Duration, bool, error) {
	timed := Timed{channel, model}
	usual, err := d.UsualOf(ctx, []Timed{timed})
	median, ok := usual[timed]
	return median, ok, err
}

// Timed identifies a usual duration.
type Timed struct{ Channel, Model string }

// UsualOf is Usual for several, in one round trip. It omits unknown ones.
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

// medianOf returns the median of durations in ms; false: there are too few.
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
