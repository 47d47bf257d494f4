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
	URL      providers.Secret `yaml:"url" doc:"redis://[user:password@]host:port/db, or rediss:// for TLS; for a slow Redis add ?read_timeout=5s (default 1s; after that Redis counts as unavailable)"`
	Username string           `yaml:"username" doc:"user of the ACL of Redis; replaces the user in url"`
	Password providers.Secret `yaml:"password" doc:"password of Redis; replaces the password in url"`
	Prefix   string           `yaml:"prefix" doc:"prefix of every key and channel, so that several gateways can share one Redis"`
	Cluster  bool             `yaml:"cluster" doc:"url leads to a Redis Cluster. All keys are in one slot: their prefix is a hash tag, either {mr:} or the hash tag in prefix"`
	TLS      RedisTLS         `yaml:"tls"`
	Sentinel RedisSentinel    `yaml:"sentinel"`
}

// RedisTLS is for a Redis with the operator's own certificates.
type RedisTLS struct {
	CA         string `yaml:"ca" doc:"PEM file of the CAs that sign the certificates of Redis and of the sentinels; requires a url that begins with rediss://. Empty: the system's CAs. The gateway reads a changed file again"`
	Cert       string `yaml:"cert" doc:"PEM file of the gateway's client certificate; empty: none. The gateway reads a changed file again"`
	Key        string `yaml:"key" doc:"PEM file of the private key of cert"`
	ServerName string `yaml:"server_name" doc:"name in the certificates of Redis and of the sentinels; empty: the host of the connection"`
}

// RedisSentinel finds the primary of a Redis with failover.
type RedisSentinel struct {
	Master    string           `yaml:"master" doc:"name of the primary at the sentinels. They report its host and port, which replace the host and port of redis.url; the scheme, user, password, database and timeouts of redis.url apply. Empty: no sentinels"`
	Addresses []string         `yaml:"addresses" doc:"host:port of sentinels; the first sentinel that answers reports the others"`
	Username  string           `yaml:"username" doc:"user of the ACL of the sentinels"`
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
	if r.TLS != (RedisTLS{}) {
		if !strings.HasPrefix(r.URL.Reveal(), encrypted) {
			v.add("redis.tls", "requires a redis.url that begins with "+encrypted)
		}
		if problem := r.TLS.files().Check(); problem != nil {
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
