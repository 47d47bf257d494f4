package storage

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"modelrelay/providers/secret"
)

// RedisOptions configure the client where the URL does not. Nil, and zero in a field, mean the default.
type RedisOptions struct {
	Username string      `yaml:"username" doc:"user of the ACL of Redis; replaces the user in url"`
	Password secret.Text `yaml:"password" doc:"password of Redis; replaces the password in url"`
	Prefix   string      `yaml:"prefix" doc:"prefix of every key and channel, so that several gateways can share one Redis"`
	// Cluster reports that the URL is of a node of a Redis Cluster. Scripts use many keys at once, so all keys are in one slot: a prefix
	// without a hash tag, such as mr:, becomes one: {mr:}.
	Cluster  bool          `yaml:"cluster" doc:"url leads to a Redis Cluster. All keys are in one slot: their prefix is a hash tag, either {mr:} or the hash tag in prefix"`
	Sentinel RedisSentinel `yaml:"sentinel"`

	Timeout time.Duration // to dial, to write, to read one answer; default 1 s
	// TLS returns the configuration of each new connection, so that its files may change; only for rediss://. Nil: the system's roots.
	// An empty ServerName means the dialed host.
	TLS func() (*tls.Config, error)
}

// RedisSentinel finds the primary of a Redis with failover. The zero value: no sentinels.
type RedisSentinel struct {
	Master    string      `yaml:"master" doc:"name of the primary at the sentinels. They report its host and port, which replace the host and port of redis.url; the scheme, user, password, database and timeouts of redis.url apply. Empty: no sentinels"`
	Addresses []string    `yaml:"addresses" doc:"host:port of sentinels, with the TLS of redis.tls; the first sentinel that answers reports the others"`
	Username  string      `yaml:"username" doc:"user of the ACL of the sentinels"`
	Password  secret.Text `yaml:"password" doc:"password of the sentinels"`
}

const (
	defaultTimeout = time.Second // above it Redis counts as unavailable
	poolSize       = 64          // idle connections; more are opened when callers need them
	// idleFor closes connections that a peak opened.
	idleFor = 5 * time.Minute
	// The single retry of a command follows soon, because its caller waits.
	minBackoff, maxBackoff = 5 * time.Millisecond, 20 * time.Millisecond
)

// OpenRedis makes a client that fails fast: without an answer, a command ends after one retry, within about two timeouts. For a slow
// Redis, a URL may set its own timeouts: dial_timeout, read_timeout, write_timeout and pool_timeout, as in
// redis://host/0?read_timeout=5s. OpenRedis does not connect. The caller closes the client after everything that uses it.
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

// clientOptions returns the options of a client of one server.
func clientOptions(url string, opts *RedisOptions) (*redis.Options, error) {
	ro, err := redis.ParseURL(url)
	if err != nil {
		// The library's error may contain the URL, and so a password.
		return nil, errors.New("redis url: must be redis://[user:password@]host:port/db")
	}
	ro.Username = cmp.Or(opts.Username, ro.Username)
	ro.Password = cmp.Or(opts.Password.Reveal(), ro.Password)
	timeout := cmp.Or(opts.Timeout, defaultTimeout)
	for _, of := range []*time.Duration{&ro.DialTimeout, &ro.ReadTimeout, &ro.WriteTimeout, &ro.PoolTimeout} {
		*of = cmp.Or(*of, timeout)
	}
	ro.Dialer = dialer(ro, opts.TLS)
	ro.ContextTimeoutEnabled = true
	ro.DialerRetries = 1
	ro.MaxRetries = 1
	ro.MinRetryBackoff, ro.MaxRetryBackoff = minBackoff, maxBackoff
	ro.PoolSize, ro.MaxIdleConns = poolSize, poolSize
	ro.ConnMaxIdleTime = idleFor
	ro.DisableIdentity = true
	ro.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return ro, nil
}

// PingRedis writes a key. A Redis that only reads, such as a demoted primary, does not suffice. ErrUnavailable: Redis did not write.
func PingRedis(ctx context.Context, client redis.UniversalClient) error {
	return RedisError("ping redis", client.Set(ctx, Prefix+"ping", "", time.Minute).Err())
}

// Pipelined sends the commands that ask makes, one per element, in one round trip, and returns them. Their answers can be read if the error
// is nil, or ErrNotFound of one of them.
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

// Follow calls hear for each message of a channel of Redis, one after the other, until ctx ends or the client is closed; hear must not
// block. Messages during an outage are lost. subscribed, unless nil, is called after each subscription, also after a reconnection.
func Follow(ctx context.Context, client redis.UniversalClient, channel string, subscribed func(), hear func(payload string)) {
	sub := client.Subscribe(ctx, channel) // reconnects by itself
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
