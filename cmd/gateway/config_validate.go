package main

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/storage"
)

// What the token store takes; said here so that the problem has a line and a column.
const (
	maxTokenName   = 128
	maxTokenKey    = 512
	randomIDPrefix = "tok_"
)

// judge collects what is wrong with a configuration.
type judge struct{ problems []Problem }

func (j *judge) add(key, format string, args ...any) {
	j.problems = append(j.problems, Problem{Key: key, Message: fmt.Sprintf(format, args...)})
}

// Validate checks values that have the right type: what may not be empty, negative, twice there or contradictory. The
// problems name keys and have no place in a file. No problem means that the gateway can start with it.
func (c Config) Validate(vendors providers.Catalog) []Problem {
	j := &judge{}
	j.address("listen", c.Listen)
	if c.Metrics.Listen != "" {
		j.address("metrics.listen", c.Metrics.Listen)
		if _, port, _ := net.SplitHostPort(c.Listen); c.Metrics.Listen == c.Listen && port != "0" {
			j.add("metrics.listen", "is the address of listen; metrics never share it")
		}
	}
	j.front(c)
	j.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	j.oneOf("log.format", c.Log.Format, "json", "text")
	j.services(c)
	j.video(c.Video)
	j.relay(c.Relay)
	for i, token := range c.Tokens {
		j.token(key("tokens", i), token, c.Webhooks)
	}
	j.unique("tokens", "name", len(c.Tokens), func(i int) string { return c.Tokens[i].Name })
	j.unique("tokens", "key", len(c.Tokens), func(i int) string { return c.Tokens[i].Key.Reveal() })
	for _, model := range slices.Sorted(maps.Keys(c.Prices)) {
		j.price("prices."+model, c.Prices[model])
	}
	for i, channel := range c.Channels {
		j.channel(key("channels", i), channel, vendors)
	}
	j.unique("channels", "name", len(c.Channels), func(i int) string { return c.Channels[i].Name })
	return j.problems
}

// front judges who may come to which door.
func (j *judge) front(c Config) {
	if at := c.Admin.Listen; at != "" {
		j.address("admin.listen", at)
		_, port, _ := net.SplitHostPort(at)
		if (at == c.Listen || at == c.Metrics.Listen) && port != "0" {
			j.add("admin.listen", "is the address of listen or of metrics.listen; leave it empty to have /admin at listen")
		}
	}
	for i, network := range c.TrustedProxies {
		if prefix, err := parseNetwork(network); err != nil {
			j.add(key("trusted_proxies", i), "%q is neither an address nor a CIDR range such as 10.0.0.0/8", network)
		} else if prefix.Bits() == 0 {
			j.add(key("trusted_proxies", i), "trusts everybody, so that any client could name its own address")
		}
	}
	for i, origin := range c.CORS.Origins {
		if problem := checkOrigin(origin, len(c.CORS.Origins)); problem != "" {
			j.add(key("cors.origins", i), "%s", problem)
		}
	}
}

func (j *judge) services(c Config) {
	if _, err := storage.OpenRedis(c.Redis.URL.Reveal(), nil); err != nil {
		j.add("redis.url", "wants redis://[user:password@]host:port/db")
	}
	j.address("temporal.address", c.Temporal.Address)
	j.filled("temporal.namespace", c.Temporal.Namespace)
	j.filled("temporal.task_queue", c.Temporal.TaskQueue)
	j.store("archive.endpoint", c.Archive.Endpoint)
	if c.Archive.PublicEndpoint != "" {
		j.store("archive.public_endpoint", c.Archive.PublicEndpoint)
	}
	j.filled("archive.bucket", c.Archive.Bucket)
	switch {
	case c.Archive.AccessKey == "" && c.Archive.SecretKey != "":
		j.add("archive.access_key", "is missing beside secret_key")
	case c.Archive.AccessKey != "" && c.Archive.SecretKey == "":
		j.add("archive.secret_key", "is missing beside access_key")
	}
}

// store judges the address of an S3 store.
func (j *judge) store(key, address string) {
	if endpoint, ok := j.httpURL(key, address); ok && strings.Trim(endpoint.Path, "/") != "" {
		j.add(key, "wants no path")
	}
}

func (j *judge) video(v Video) {
	j.positive("video.retention", v.Retention)
	j.positive("video.queue_limit", v.QueueLimit)
	j.positive("video.deadline", v.Deadline)
	j.positive("video.archive_deadline", v.ArchiveDeadline)
	j.positive("video.poll_min", v.PollMin)
	j.positive("video.poll_max", v.PollMax)
	if v.PollMin > v.PollMax {
		j.add("video.poll_min", "is %s, longer than poll_max, which is %s", formatDuration(v.PollMin), formatDuration(v.PollMax))
	}
	if v.Copies < 2 {
		j.add("video.copies", "wants 2 or more: one of a slow source must leave room for another")
	}
	j.limit("video.max_output_bytes", int(v.MaxOutputBytes))
}

func (j *judge) relay(r Relay) {
	if r.MaxBody <= 0 {
		j.add("relay.max_body", "wants a size above 0")
	}
	if least := leastBodies * r.MaxBody; r.MaxBodyMemory != 0 && r.MaxBodyMemory < least {
		j.add("relay.max_body_memory", "is %s, less than four times max_body, which are %s", r.MaxBodyMemory, least)
	}
	j.positive("relay.first_byte_timeout", r.FirstByteTimeout)
	j.positive("relay.idle_timeout", r.IdleTimeout)
	if r.MaxAttempts < 1 {
		j.add("relay.max_attempts", "wants 1 or more")
	}
	j.notNegative("relay.cooldown", r.Cooldown)
	if r.CooldownFailures < 1 || r.CooldownFailures > providers.MaxCooldownFailures {
		j.add("relay.cooldown_failures", "wants 1 to %d", providers.MaxCooldownFailures)
	}
	if !(r.CooldownShare > 0 && r.CooldownShare <= 1) { // nor NaN
		j.add("relay.cooldown_share", "wants a number above 0, up to 1")
	}
	j.positive("relay.cooldown_window", r.CooldownWindow)
	j.notNegative("relay.grace", r.Grace)
	j.notNegative("relay.redis_grace", r.RedisGrace)
}

func (j *judge) token(at string, t Token, webhooks Webhooks) {
	j.tokenName(at+".name", t.Name)
	j.filled(at+".group", t.Group)
	if !providers.Plain(t.Group) {
		j.add(at+".group", "holds a control character")
	}
	j.oneOf(at+".lane", t.Lane, storage.Lanes()...)
	switch credential := t.Key.Reveal(); {
	case credential == "":
		j.add(at+".key", "is missing")
	case len(credential) > maxTokenKey:
		j.add(at+".key", "is longer than %d characters", maxTokenKey)
	case strings.ContainsFunc(credential, func(r rune) bool { return r <= ' ' || r > '~' }):
		j.add(at+".key", "wants visible ASCII characters without spaces, as a header can carry them")
	}
	j.tokenLimits(at, t.TokenLimits)
	j.amount(at+".budget", t.Budget)
	j.weight(at+".weight", t.Weight)
	j.allFilled(at+".models", t.Models)
	for i, operation := range t.Operations {
		j.oneOf(key(at+".operations", i), operation, storage.Operations()...)
	}
	for i, network := range t.Networks {
		if _, err := parseNetwork(network); err != nil {
			j.add(key(at+".networks", i), "%q is neither an address nor a CIDR range such as 10.0.0.0/8", network)
		}
	}
	if t.WebhookURL != "" {
		if err := activities.CheckReceiver(t.WebhookURL, webhooks.AllowPrivateNetworks); err != nil {
			j.add(at+".webhook_url", "%v", err)
		}
		if t.WebhookSecret == "" {
			j.add(at+".webhook_secret", "is missing beside webhook_url")
		}
	}
	if t.WebhookSecret != "" {
		if _, err := storage.Secret(t.WebhookSecret.Reveal()).Key(); err != nil {
			j.add(at+".webhook_secret", "%v", err)
		}
	}
}

func (j *judge) tokenName(at, name string) {
	switch {
	case strings.TrimSpace(name) == "":
		j.add(at, "is missing")
	case len(name) > maxTokenName:
		j.add(at, "is longer than %d bytes", maxTokenName)
	case strings.HasPrefix(name, randomIDPrefix):
		j.add(at, "begins with %q like the ids of tokens made at run time", randomIDPrefix)
	case !providers.Plain(name):
		j.add(at, "holds a control character")
	}
}

func (j *judge) price(at string, p Price) {
	j.oneOf(at+".unit", p.Unit, "1", "1K", "1M")
	_, problems := p.list()
	for _, problem := range problems {
		j.add(at+"."+problem.Key, "%s", problem.Message)
	}
}

func (j *judge) channel(at string, c Channel, vendors providers.Catalog) {
	j.filled(at+".name", c.Name)
	vendor, known := vendors[c.Vendor]
	if !known {
		j.oneOf(at+".vendor", c.Vendor, slices.Sorted(maps.Keys(vendors))...)
	}
	if base, ok := j.httpURL(at+".base_url", c.BaseURL); ok && vendor.CheckBaseURL != nil {
		if err := vendor.CheckBaseURL(base); err != nil {
			j.add(at+".base_url", "%v", err)
		}
	}
	if len(c.Keys) == 0 {
		j.add(at+".keys", "wants at least one key")
	}
	for i, secret := range c.Keys {
		switch {
		case secret == "":
			j.add(key(at+".keys", i), "is empty")
		case vendor.CheckKey != nil && vendor.CheckKey(secret) != nil:
			j.add(key(at+".keys", i), "%v", vendor.CheckKey(secret))
		case slices.Index(c.Keys, secret) < i:
			j.add(key(at+".keys", i), "is the same as keys[%d]", slices.Index(c.Keys, secret))
		}
	}
	if len(c.Models) == 0 {
		j.add(at+".models", `wants at least one model; "*": opens every name`)
	}
	for public, upstream := range c.Models {
		switch {
		case public == "":
			j.add(at+".models", "a public name is empty")
		case public == providers.AnyModel && upstream != "":
			j.add(at+".models."+public, `opens every name as it is and takes no upstream name`)
		}
	}
	if len(c.Groups) == 0 {
		j.add(at+".groups", "wants at least one group")
	}
	j.allFilled(at+".groups", c.Groups)
	j.weight(at+".weight", c.Weight)
	j.limit(at+".max_jobs", c.MaxJobs)
}
