package config

import (
	"net/url"
	"strings"

	"modelrelay/cmd/gateway/internal/certs"
	"modelrelay/providers"
	"modelrelay/storage"
)

// Redis configures the connection to Redis.
type Redis struct {
	// URL may contain a password, so it is a secret.
	URL providers.Secret `yaml:"url" doc:"redis://[user:password@]host:port/db, or rediss:// for TLS, which redis.tls requires; for a slow Redis add ?read_timeout=5s (default 1s; after that Redis counts as unavailable)"`
	storage.RedisOptions
	// TLS is for a Redis with the operator's own certificates.
	TLS certs.Files `yaml:"tls"`
}

// Options returns the options of a client, other than the URL.
func (r Redis) Options() *storage.RedisOptions {
	opts := r.RedisOptions
	if r.TLS != (certs.Files{}) {
		opts.TLS = certs.NewSource(r.TLS).Config
	}
	return &opts
}

const encrypted = "rediss://"

// maxPrefix bounds the prefix of keys, in bytes: Redis stores it with each key.
const maxPrefix = 64

func redisPath(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Path
}

func checkRedis(v *validator, r Redis) {
	if _, err := storage.OpenRedis(r.URL.Reveal(), nil); err != nil {
		v.add("redis.url", "must be redis://[user:password@]host:port/db")
	}
	if r.Username != "" && r.Password == "" {
		v.add("redis.password", "is required with username")
	}
	switch {
	case r.Prefix == "" || len(r.Prefix) > maxPrefix || strings.ContainsFunc(r.Prefix, func(c rune) bool { return c <= ' ' || c > '~' }):
		v.add("redis.prefix", "must be 1 to %d visible ASCII characters", maxPrefix)
	case strings.Contains(r.Prefix, "budget:"):
		v.add("redis.prefix", "contains budget:, which marks the keys of budgets")
	case r.Cluster && strings.HasPrefix(r.Prefix, "}"):
		v.add("redis.prefix", "begins with }: a Redis Cluster finds no hash tag after it")
	}
	if database := strings.Trim(redisPath(r.URL.Reveal()), "/"); r.Cluster && database != "" && database != "0" {
		v.add("redis.cluster", "does not accept a database in redis.url: a Redis Cluster has only database 0")
	}
	if r.Cluster && r.Sentinel.Master != "" {
		v.add("redis.cluster", "is not accepted together with redis.sentinel: a Redis Cluster replaces its primaries itself")
	}
	if r.TLS != (certs.Files{}) {
		if !strings.HasPrefix(r.URL.Reveal(), encrypted) {
			v.add("redis.tls", "requires a redis.url that begins with "+encrypted)
		}
		if problem := r.TLS.Check(); problem != nil {
			v.add("redis.tls."+problem.Part, "%v", problem.Err)
		}
	}
	s := r.Sentinel
	switch {
	case s.Master != "" && len(s.Addresses) == 0:
		v.add("redis.sentinel.addresses", "is required with master")
	case s.Master == "" && (len(s.Addresses) > 0 || s.Username != "" || s.Password != ""):
		v.add("redis.sentinel.master", "is required with the other keys of redis.sentinel")
	case s.Username != "" && s.Password == "":
		v.add("redis.sentinel.password", "is required with username")
	}
	for i, address := range s.Addresses {
		v.address(key("redis.sentinel.addresses", i), address)
	}
}
