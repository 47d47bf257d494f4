package storage

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// RedisOptions are how Redis is reached other than by its URL, and tune the client. Nil, and zero in a field, mean the default.
type RedisOptions struct {
	Timeout  time.Duration // to dial, to write, to read one answer; default 1 s
	PoolSize int           // connections kept; default 64, more are opened when callers need them
	// Username and Password are those of Redis's access list, in place of the URL's.
	Username, Password string
	// TLS is asked at every new connection, so that files may change; only for rediss://. Nil: the roots of the system. An
	// empty ServerName stands for the host that is dialed.
	TLS func() (*tls.Config, error)
	// Sentinel finds the primary, in place of the URL's host and port.
	Sentinel RedisSentinel
	// Prefix stands before every key and channel; default Prefix.
	Prefix string
	// Cluster says that the URL leads to a node of a Redis Cluster. Scripts touch many keys at once, so all of them are in one
	// slot: a prefix without a hash tag, as mr:, becomes one itself, as {mr:}.
	Cluster bool
}

// RedisSentinel says which sentinels know the primary. The zero value: none do.
type RedisSentinel struct {
	Master             string   // name of the primary among the sentinels
	Addresses          []string // host:port; one that answers names the others
	Username, Password string   // of the sentinels themselves
}

const (
	defaultTimeout = time.Second // above it Redis counts as away
	defaultPool    = 64          // connections kept
	// idleFor ends connections that a busy moment opened, and that are not needed any more.
	idleFor = 5 * time.Minute
	// The one repeat of a command comes soon: its caller waits.
	minBackoff, maxBackoff = 5 * time.Millisecond, 20 * time.Millisecond
)

// OpenRedis makes a client that fails fast: a call to a Redis that is away ends within about two timeouts, one
// try and one more. A URL may name its own timeouts: dial_timeout, read_timeout, write_timeout and pool_timeout, as in
// redis://host/0?read_timeout=5s, for a Redis that is far away or slow. It does not connect. The caller closes the client,
// after everything that uses it.
func OpenRedis(url string, opts *RedisOptions) (redis.UniversalClient, error) {
	opts = cmp.Or(opts, new(RedisOptions))
	ro, err := clientOptions(url, opts)
	if err != nil {
		return nil, err
	}
	var client redis.UniversalClient
	prefix := cmp.Or(opts.Prefix, Prefix)
	switch {
	case opts.Cluster:
		client = redis.NewClusterClient(clusterOptions(ro))
		if !hashTag(prefix) {
			prefix = "{" + prefix + "}"
		}
	case opts.Sentinel.Master != "":
		client = redis.NewFailoverClient(failoverOptions(ro, opts.Sentinel))
		client.AddHook(unknownPrimary{opts.Sentinel.Master})
	default:
		client = redis.NewClient(ro)
	}
	if prefix == Prefix {
		return client, nil
	}
	keys := keyNames{prefix}
	client.AddHook(keys)
	return renamed{client, keys}, nil
}

// clientOptions are those of a client of one server.
func clientOptions(url string, opts *RedisOptions) (*redis.Options, error) {
	ro, err := redis.ParseURL(url)
	if err != nil {
		// The library's error may repeat the URL, which may hold a password.
		return nil, errors.New("redis url: want redis://[user:password@]host:port/db")
	}
	if opts.Username != "" {
		ro.Username = opts.Username
	}
	if opts.Password != "" {
		ro.Password = opts.Password
	}
	timeout := cmp.Or(opts.Timeout, defaultTimeout)
	for _, of := range []*time.Duration{&ro.DialTimeout, &ro.ReadTimeout, &ro.WriteTimeout, &ro.PoolTimeout} {
		if *of == 0 {
			*of = timeout
		}
	}
	ro.Dialer = dialer(ro, opts.TLS)
	ro.ContextTimeoutEnabled = true
	ro.DialerRetries = 1
	ro.MaxRetries = 1
	ro.MinRetryBackoff, ro.MaxRetryBackoff = minBackoff, maxBackoff
	ro.PoolSize = cmp.Or(opts.PoolSize, defaultPool)
	ro.MaxIdleConns = ro.PoolSize
	ro.ConnMaxIdleTime = idleFor
	ro.DisableIdentity = true
	ro.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return ro, nil
}

// pingKey holds a sign that Redis takes writes.
const pingKey = Prefix + "ping"

// pingTTL is how long the sign that PingRedis writes stays.
const pingTTL = time.Minute

// PingRedis asks Redis to write a sign of life: one that only reads, as a primary that was demoted, is of no use here. The
// error is ErrUnavailable when it does not.
func PingRedis(ctx context.Context, client redis.UniversalClient) error {
	return RedisError("ping redis", client.Set(ctx, pingKey, "", pingTTL).Err())
}

// Pipelined asks about several things in one round trip, and returns what ask returned for each. The answers can be read if the error is
// nil or ErrNotFound, which is that of one of them.
func Pipelined[T any, A redis.Cmder](
	ctx context.Context, client redis.UniversalClient, doing string, of []T, ask func(pipe redis.Pipeliner, one T) A,
) ([]A, error) {
	answers := make([]A, len(of))
	_, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, one := range of {
			answers[i] = ask(pipe, one)
		}
		return nil
	})
	return answers, RedisError(doing, err)
}

// Follow calls hear for what is published on a channel of Redis, one after the other, until ctx ends or the client is closed;
// hear must not block. While Redis is away nothing is heard, and what was said meanwhile is lost. subscribed, where it is not nil,
// is called whenever the line to Redis stands anew.
func Follow(ctx context.Context, client redis.UniversalClient, channel string, subscribed func(), hear func(payload string)) {
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
