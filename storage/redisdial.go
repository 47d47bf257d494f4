package storage

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// keepAlive detects that the machine of an idle connection is gone.
const keepAlive = 15 * time.Second

// Dial opens a connection, as net.Dialer.DialContext does.
type Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// dialer opens connections to Redis and to sentinels, with TLS for a rediss:// URL.
func dialer(ro *redis.Options, secure func() (*tls.Config, error)) Dial {
	dial, timeout := (&net.Dialer{KeepAlive: keepAlive}).DialContext, ro.DialTimeout
	if ofURL := ro.TLSConfig; ofURL != nil {
		ofURL.ServerName = "" // other hosts are dialed as well
		if secure == nil {
			secure = func() (*tls.Config, error) { return ofURL, nil }
		}
		dial = DialTLS(dial, secure, timeout)
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, timeout) // for the connection and the handshake together
		defer cancel()
		return dial(ctx, network, address)
	}
}

// DialTLS encrypts the connections of dial. It calls secure for each connection, so that files may change. An empty ServerName means the
// dialed host. timeout bounds the handshake.
func DialTLS(dial Dial, secure func() (*tls.Config, error), timeout time.Duration) Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		config, err := secure()
		if err != nil {
			return nil, err
		}
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if config.ServerName == "" {
			config = config.Clone()
			config.ServerName, _, _ = net.SplitHostPort(address) // it was dialed, so it is well formed
		}
		secured := tls.Client(conn, config)
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		if err := secured.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, fmt.Errorf("handshake with %s: %w", address, err)
		}
		return secured, nil
	}
}

// failoverOptions returns the options of a client that queries sentinels for the primary at each new connection, and closes the old
// connections when the primary changes.
func failoverOptions(ro *redis.Options, of RedisSentinel) *redis.FailoverOptions {
	return &redis.FailoverOptions{
		MasterName: of.Master, SentinelAddrs: of.Addresses, SentinelUsername: of.Username, SentinelPassword: of.Password.Reveal(),
		Dialer: ro.Dialer, Protocol: ro.Protocol, Username: ro.Username, Password: ro.Password, DB: ro.DB,
		DialTimeout: ro.DialTimeout, ReadTimeout: ro.ReadTimeout, WriteTimeout: ro.WriteTimeout, PoolTimeout: ro.PoolTimeout,
		ContextTimeoutEnabled: ro.ContextTimeoutEnabled, DialerRetries: ro.DialerRetries,
		MaxRetries: ro.MaxRetries, MinRetryBackoff: ro.MinRetryBackoff, MaxRetryBackoff: ro.MaxRetryBackoff,
		PoolSize: ro.PoolSize, MaxIdleConns: ro.MaxIdleConns, ConnMaxIdleTime: ro.ConnMaxIdleTime,
		DisableIdentity: ro.DisableIdentity,
	}
}

// clusterReload is the maximal age of the slot map of a Redis Cluster. The library does not reload the map when a node is gone, so a
// promoted replica is used after this time at the latest. A reload costs one command.
const clusterReload = time.Second

// clusterRedirects is how often a command follows a moved slot. Each time, a node that is gone costs one timeout.
const clusterRedirects = 2

// clusterOptions returns the options of a client of a Redis Cluster.
func clusterOptions(ro *redis.Options) *redis.ClusterOptions {
	return &redis.ClusterOptions{
		Addrs: []string{ro.Addr}, Dialer: ro.Dialer, Protocol: ro.Protocol, Username: ro.Username, Password: ro.Password,
		DialTimeout: ro.DialTimeout, ReadTimeout: ro.ReadTimeout, WriteTimeout: ro.WriteTimeout, PoolTimeout: ro.PoolTimeout,
		ContextTimeoutEnabled: ro.ContextTimeoutEnabled, DialerRetries: ro.DialerRetries,
		MaxRedirects: clusterRedirects, ClusterStateReloadInterval: clusterReload, MinRetryBackoff: ro.MinRetryBackoff,
		MaxRetryBackoff: ro.MaxRetryBackoff,
		PoolSize:        ro.PoolSize, MaxIdleConns: ro.MaxIdleConns, ConnMaxIdleTime: ro.ConnMaxIdleTime,
		DisableIdentity: ro.DisableIdentity, MaintNotificationsConfig: ro.MaintNotificationsConfig,
	}
}

// unknownPrimary is a hook that distinguishes the answers of sentinels from those of Redis: an unknown primary is no missing key.
type unknownPrimary struct{ master string }

// DialHook implements redis.Hook.
func (u unknownPrimary) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := next(ctx, network, address)
		answer, answered := errors.AsType[redis.Error](err)
		switch {
		case err == nil:
			return conn, nil
		case errors.Is(err, redis.Nil):
			return nil, fmt.Errorf("primary %q: %w", u.master, errPrimary)
		case answered && !strings.HasPrefix(answer.Error(), "LOADING"):
			return nil, fmt.Errorf("primary %q: %w: %v", u.master, errSentinel, err) //nolint:errorlint // as an answer of Redis it would mean something else
		}
		return nil, err
	}
}

// ProcessHook implements redis.Hook.
func (unknownPrimary) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (unknownPrimary) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
