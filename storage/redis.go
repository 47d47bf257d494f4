package storage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// RedisOptions tunes the client. Nil, and zero in a field, mean the default.
type RedisOptions struct {
	Timeout  time.Duration // to dial, to write, to read one answer; default 1 s
	PoolSize int           // connections kept; default 64, more are opened when callers need them
}

// OpenRedis makes a client that fails fast: a call to a Redis that is away ends within about two timeouts, one
// try and one more. A URL may name its own timeouts: dial_timeout, read_timeout, write_timeout and pool_timeout, as in
// redis://host/0?read_timeout=5s, for a Redis that is far away or slow. It does not connect. The caller closes the client,
// after everything that uses it.
func OpenRedis(url string, opts *RedisOptions) (*redis.Client, error) {
	ro, err := redis.ParseURL(url)
	if err != nil {
		// The library's error may repeat the URL, which may hold a password.
		return nil, errors.New("redis url: want redis://[user:password@]host:port/db")
	}
	timeout, pool := time.Second, 64
	if opts != nil && opts.Timeout > 0 {
		timeout = opts.Timeout
	}
	if opts != nil && opts.PoolSize > 0 {
		pool = opts.PoolSize
	}
	for _, of := range []*time.Duration{&ro.DialTimeout, &ro.ReadTimeout, &ro.WriteTimeout, &ro.PoolTimeout} {
		if *of == 0 {
			*of = timeout
		}
	}
	ro.ContextTimeoutEnabled = true
	ro.DialerRetries = 1
	ro.MaxRetries = 1
	ro.MinRetryBackoff, ro.MaxRetryBackoff = 5*time.Millisecond, 20*time.Millisecond
	ro.PoolSize = pool
	ro.MaxIdleConns = pool
	ro.ConnMaxIdleTime = 5 * time.Minute
	ro.DisableIdentity = true
	ro.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(ro), nil
}

// pingTTL is how long the sign that PingRedis writes stays.
const pingTTL = time.Minute

// PingRedis asks Redis to write a sign of life: one that only reads, as a primary that was demoted, is of no use here. The
// error is ErrUnavailable when it does not.
func PingRedis(ctx context.Context, client *redis.Client) error {
	return redisError("ping redis", client.Set(ctx, newKeys("").ping(), "", pingTTL).Err())
}

// redisError adds what was being done and sorts the error: redis.Nil is ErrNotFound, an answer of Redis stays
// what it is unless Redis says that it cannot serve now, a caller's cancellation stays a cancellation, and
// everything else (dial, timeout, a closed connection, no free connection) is ErrUnavailable.
func redisError(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, redis.Nil):
		return fmt.Errorf("%s: %w", doing, ErrNotFound)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: %w", doing, err)
	}
	if answer, ok := errors.AsType[redis.Error](err); ok && !servesNot(answer.Error()) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return fmt.Errorf("%s: %w: %w", doing, ErrUnavailable, err)
}

// servesNot tells the answers of a Redis that is up but cannot do its work now: loading its file, a replica cut
// off, out of memory, refusing our credentials.
func servesNot(answer string) bool {
	for _, prefix := range []string{
		"LOADING", "MASTERDOWN", "CLUSTERDOWN", "READONLY", "BUSY", "TRYAGAIN", "MISCONF", "OOM", "NOREPLICAS",
		"NOAUTH", "WRONGPASS", "NOPERM", "ERR max number of clients",
	} {
		if strings.HasPrefix(answer, prefix) {
			return true
		}
	}
	return false
}

// outage remembers that Redis is away, so that callers do not each wait for a timeout: after a failure nobody
// asks for a short rest, then one caller tries, and the others follow when it succeeded. It logs once when Redis
// goes and once when it is back. The zero value needs its log set and is ready to use.
type outage struct {
	log  *slog.Logger
	what string // what goes on without Redis, for the log

	since atomic.Int64 // unix nanoseconds of the first failure, 0: Redis answers
	next  atomic.Int64 // unix nanoseconds from which the next caller may try
}

// rest is how long after a failure nobody asks again. It must stay below a second, within which a revocation is seen.
const rest = 300 * time.Millisecond

// resting tells that asking is pointless at this moment.
func (o *outage) resting(now time.Time) bool {
	return o.since.Load() != 0 && now.UnixNano() < o.next.Load()
}

// try tells whether this caller should ask Redis. Who gets true must tell note how it went.
func (o *outage) try(now time.Time) bool {
	if o.since.Load() == 0 {
		return true
	}
	next := o.next.Load()
	// The one who asks moves the time on, so that the others rest while it waits for its answer.
	return now.UnixNano() >= next && o.next.CompareAndSwap(next, now.Add(time.Second).UnixNano())
}

// note takes the outcome of a call and returns err as it came. Only ErrUnavailable counts as an outage, and a
// cancellation says nothing either way.
func (o *outage) note(ctx context.Context, now time.Time, err error) error {
	switch {
	case errors.Is(err, ErrUnavailable):
		o.next.Store(now.Add(rest).UnixNano())
		if o.since.CompareAndSwap(0, now.UnixNano()) {
			o.log.LogAttrs(ctx, slog.LevelWarn, "redis is away", slog.String("part", o.what), slog.Any("error", err))
		}
	case errors.Is(err, context.Canceled):
	default:
		if since := o.since.Load(); since != 0 && o.since.CompareAndSwap(since, 0) {
			o.log.LogAttrs(ctx, slog.LevelInfo, "redis is back",
				slog.String("part", o.what), slog.String("away", now.Sub(time.Unix(0, since)).Round(time.Millisecond).String()))
		}
	}
	return err
}

func orDiscard(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}
