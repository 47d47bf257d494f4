package storage

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/redis/go-redis/v9"
)

// RedisError wraps err with the operation in progress and classifies it. redis.Nil becomes ErrNotFound. A cancellation, and an error
// answer of a Redis that can serve, stay as they are. Everything else (dial, timeout, a closed connection, no free connection) becomes
// ErrUnavailable. If the configuration causes it, the error names the key.
func RedisError(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, redis.Nil):
		return fmt.Errorf("%s: %w", doing, ErrNotFound)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: %w", doing, err)
	}
	if answer, ok := errors.AsType[redis.Error](err); ok && !cannotServe(answer.Error()) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if remedy := remedyOf(err); remedy != "" {
		return fmt.Errorf("%s: %w: %s: %w", doing, ErrUnavailable, remedy, err)
	}
	return fmt.Errorf("%s: %w: %w", doing, ErrUnavailable, err)
}

// cannotServe recognises the error answers of a Redis that is up but cannot serve now. It loads its file, for example, has lost its
// primary, is out of memory, or refuses our credentials.
func cannotServe(answer string) bool {
	for _, prefix := range []string{
		"LOADING", "MASTERDOWN", "CLUSTERDOWN", "READONLY", "BUSY", "TRYAGAIN", "MISCONF", "OOM", "NOREPLICAS",
		"NOAUTH", "WRONGPASS", "NOPERM", "ERR max number of clients", "MOVED", "ASK", "CROSSSLOT", noCluster,
	} {
		if strings.HasPrefix(answer, prefix) {
			return true
		}
	}
	return false
}

// noCluster begins the answer to a query for the slots of a Redis that is not a cluster node.
const noCluster = "ERR This instance has cluster support disabled"

// errPrimary: the sentinels answer, but do not know the primary.
var errPrimary = errors.New("unknown to the sentinels")

// errSentinel: the sentinels refuse our credentials.
var errSentinel = errors.New("the sentinels reject the credentials")

// remedyOf returns what an operator should check; "" if the configuration does not cause the error.
func remedyOf(err error) string {
	var (
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
	)
	text := err.Error()
	switch {
	case errors.Is(err, errPrimary):
		return "see redis.sentinel.master"
	case errors.Is(err, errSentinel):
		return "see redis.sentinel.username and redis.sentinel.password"
	case errors.As(err, &authority):
		return "the server's certificate is not signed by an authority in redis.tls.ca"
	case errors.As(err, &name):
		return "the server's certificate is for another name: see redis.tls.server_name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the server's certificate is not valid at this time"
	case strings.Contains(text, "remote error: tls:"):
		return "the server rejects the gateway's certificate: see redis.tls.cert and redis.tls.key"
	case errors.Is(err, io.EOF): // Redis closed the connection without an error
		return "the server closed the connection without an error; a server with TLS requires a redis.url that begins with rediss://"
	// a server without TLS waits for the end of a line
	case errors.Is(err, context.DeadlineExceeded) && strings.Contains(text, "handshake with"):
		return "the server does not answer a TLS handshake in time: redis.url begins with rediss://"
	case strings.Contains(text, "does not look like a TLS handshake"):
		return "the server does not use TLS: redis.url begins with rediss://"
	}
	answer, ok := errors.AsType[redis.Error](err)
	if !ok {
		return ""
	}
	code, _, _ := strings.Cut(answer.Error(), " ")
	switch {
	case code == "NOAUTH" || code == "WRONGPASS" || code == "NOPERM" || strings.HasPrefix(answer.Error(), "ERR AUTH"):
		return "the server rejects the credentials: see redis.username, redis.password, and the user and password in redis.url"
	case code == "MOVED" || code == "ASK" || code == "CROSSSLOT":
		return "redis.url leads to a Redis Cluster, which requires redis.cluster: true"
	case strings.HasPrefix(answer.Error(), noCluster):
		return "redis.url leads to a Redis that is not a cluster, but redis.cluster is true"
	}
	return ""
}
