package storage

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// pingKey holds a sign that Redis takes writes.
const pingKey = Prefix + "ping"

// pingTTL is how long the sign that PingRedis writes stays.
const pingTTL = time.Minute

// PingRedis asks Redis to write a sign of life: one that only reads, as a primary that was demoted, is of no use here. The
// error is ErrUnavailable when it does not.
func PingRedis(ctx context.Context, client *redis.Client) error {
	return RedisError("ping redis", client.Set(ctx, pingKey, "", pingTTL).Err())
}

// RedisError adds what was being done and sorts the error: redis.Nil is ErrNotFound, an answer of Redis stays
// what it is unless Redis says that it cannot serve now, a caller's cancellation stays a cancellation, and
// everything else (dial, timeout, a closed connection, no free connection) is ErrUnavailable.
func RedisError(doing string, err error) error {
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

// Follow calls hear for what is published on a channel of Redis, one after the other, until ctx ends or the client is closed;
// hear must not block. While Redis is away nothing is heard, and what was said meanwhile is lost. subscribed, where it is not nil,
// is called whenever the line to Redis stands anew.
func Follow(ctx context.Context, client *redis.Client, channel string, subscribed func(), hear func(payload string)) {
	sub := client.Subscribe(ctx, channel) // looks after its connection by itself
	defer sub.Close()                     //nolint:errcheck // nothing is lost with it
	messages := sub.ChannelWithSubscriptions()
	for {
		select {
		case <-ctx.Done():
			return
		case message, open := <-messages:
			if !open { // the client was closed
				return
			}
			switch m := message.(type) {
			case *redis.Subscription:
				if subscribed != nil {
					subscribed()
				}
			case *redis.Message:
				hear(m.Payload)
			}
		}
	}
}
