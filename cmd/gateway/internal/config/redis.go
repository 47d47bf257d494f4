package config

import (
	"net/url"
	"path/filepath"
	"strings"

	"modelrelay/cmd/gateway/internal/certs"
	"modelrelay/providers"
	"modelrelay/storage"
)

// Redis configures the connection to Redis.
type Redis struct {
	// URL may contain a password, so it is a secret.
	URL      providers.Secret `yaml:"url" doc:"redis://[user:password@]host:port/db, or rediss:// for TLS; a slow one takes ?read_timeout=5s (default 1s, then it counts as away)"`
	Username string           `yaml:"username" doc:"user of Redis's access list, in place of the one in url"`
	Password providers.Secret `yaml:"password" doc:"password, in place of the one in url"`
	Prefix   string           `yaml:"prefix" doc:"what every key and channel begins with, so that several gateways share one Redis"`
	Cluster  bool             `yaml:"cluster" doc:"url leads to a Redis Cluster: all keys are in one slot, and their prefix is a hash tag, as {mr:} or one of its own"`
	TLS      RedisTLS         `yaml:"tls"`
	Sentinel RedisSentinel    `yaml:"sentinel"`
}

// RedisTLS is for a Redis with the operator's own certificates.
type RedisTLS struct {
	CA         string `yaml:"ca" doc:"file of PEM certificates that may sign those of Redis and of the sentinels, where url begins with rediss://; empty: the system's. Read again when it changes"`
	Cert       string `yaml:"cert" doc:"file of the PEM certificate that the gateway shows; empty: none. Read again when it changes"`
	Key        string `yaml:"key" doc:"file of its PEM key"`
	ServerName string `yaml:"server_name" doc:"name in the certificates of Redis and of the sentinels; empty: the host that is dialed"`
}

// RedisSentinel finds the primary of a Redis with failover.
type RedisSentinel struct {
	Master    string           `yaml:"master" doc:"name of the primary among the sentinels; they say where it is, in place of the host and port of redis.url, whose scheme, user, password, database and timeouts count; empty: no sentinels"`
	Addresses []string         `yaml:"addresses" doc:"host:port of sentinels; one that answers names the others"`
	Username  string           `yaml:"username" doc:"user of the sentinels' own access list"`
	Password  providers.Secret `yaml:"password" doc:"password of the sentinels"`
}

func (t RedisTLS) files() certs.Files {
	return certs.Files{CA: t.CA, Cert: t.Cert, Key: t.Key, ServerName: t.ServerName}
}

// Options returns the options of a client, other than the URL.
func (r Redis) Options() *storage.RedisOptions {
	opts := &storage.RedisOptions{
		Username: r.Username, Password: r.Password.Reveal(), Prefix: r.Prefix, Cluster: r.Cluster,
		Sentinel: storage.RedisSentinel{
			Master: r.Sentinel.Master, Addresses: r.Sentinel.Addresses,
			Username: r.Sentinel.Username, Password: r.Sentinel.Password.Reveal(),
		},
	}
	if r.TLS != (RedisTLS{}) {
		opts.TLS = certs.NewSource(r.TLS.files()).Config
	}
	return opts
}

// inFolder makes relative paths start from the configuration's folder.
func inFolder(folder string, paths ...*string) {
	for _, path := range paths {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(folder, *path)
		}
	}
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
		v.add("redis.url", "wants redis://[user:password@]host:port/db")
	}
	if r.Username != "" && r.Password == "" {
		v.add("redis.password", "is missing beside username")
	}
	switch {
	case r.Prefix == "" || len(r.Prefix) > maxPrefix || strings.ContainsFunc(r.Prefix, func(c rune) bool { return c <= ' ' || c > '~' }):
		v.add("redis.prefix", "wants 1 to %d visible ASCII characters", maxPrefix)
	case strings.Contains(r.Prefix, "budget:"):
		v.add("redis.prefix", "holds budget:, which marks keys of money")
	case r.Cluster && strings.HasPrefix(r.Prefix, "}"):
		v.add("redis.prefix", "begins with }, behind which a Redis Cluster looks for no hash tag")
	}
	if database := strings.Trim(redisPath(r.URL.Reveal()), "/"); r.Cluster && database != "" && database != "0" {
		v.add("redis.cluster", "wants no database in redis.url: a Redis Cluster has database 0 alone")
	}
	if r.Cluster && r.Sentinel.Master != "" {
		v.add("redis.cluster", "stands beside redis.sentinel: a Redis Cluster replaces its primaries itself")
	}
	if r.TLS != (RedisTLS{}) {
		if !strings.HasPrefix(r.URL.Reveal(), encrypted) {
			v.add("redis.tls", "wants redis.url to begin with "+encrypted)
		}
		if problem := r.TLS.files().Check(); problem != nil {
			v.add("redis.tls."+problem.Part, "%v", problem.Err)
		}
	}
	s := r.Sentinel
	switch {
	case s.Master != "" && len(s.Addresses) == 0:
		v.add("redis.sentinel.addresses", "is missing beside master")
	case s.Master == "" && (len(s.Addresses) > 0 || s.Username != "" || s.Password != ""):
		v.add("redis.sentinel.master", "is missing; without it no sentinel is asked")
	case s.Username != "" && s.Password == "":
		v.add("redis.sentinel.password", "is missing beside username")
	}
	for i, address := range s.Addresses {
		v.address(key("redis.sentinel.addresses", i), address)
	}
}
