package config

import (
	"fmt"
	"maps"
	"slices"

	"modelrelay/providers"
	"modelrelay/providers/health"
)

type validator struct{ problems []Problem }

func (v *validator) add(key, format string, args ...any) {
	v.problems = append(v.problems, Problem{Key: key, Message: fmt.Sprintf(format, args...)})
}

// warn adds a warning; code is without the prefix config.
func (v *validator) warn(key, code string, values map[string]string, format string, args ...any) {
	all := map[string]string{"key": key}
	maps.Copy(all, values)
	v.problems = append(v.problems, Problem{Key: key, Message: fmt.Sprintf(format, args...), Code: "config." + code, Values: all})
}

// Validate checks values of the right type: empty, negative, duplicate or contradictory ones. The problems have keys and no position.
// Without a problem, the gateway can start.
func (c Config) Validate(vendors providers.Catalog) []Problem {
	v := &validator{}
	v.address("listen", c.Listen)
	v.listener("metrics.listen", c.Metrics.Listen, "is the address of listen; metrics never share it", c.Listen)
	if c.Metrics.Models < 1 {
		v.add("metrics.models", "must be 1 or more")
	}
	checkCallers(v, c)
	checkFront(v, c)
	checkEgress(v, c.Egress)
	checkGroups(v, c.Groups)
	checkOperators(v, c)
	checkConsole(v, c)
	v.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	v.oneOf("log.format", c.Log.Format, "json", "text")
	checkRedis(v, c.Redis)
	checkTemporal(v, c.Temporal)
	checkWorker(v, c.Worker)
	checkArchive(v, c.Archive)
	checkVideo(v, c.Video)
	checkBackground(v, c.Background)
	checkRelay(v, c.Relay)
	v.notNegative("responses.retention", c.Responses.Retention)
	if heap := c.Memory.LeastHeap; heap < 0 || heap > mostLeastHeap {
		v.add("memory.least_heap", "must be a size from 0 to %s", Size(mostLeastHeap))
	}
	checkCalls(v, c.Calls)
	for i, token := range c.Tokens {
		at := key("tokens", i)
		checkTokenName(v, at+".name", token.Name)
		checkTokenKey(v, at+".key", token.Key.Reveal())
		checkToken(v, at, token.Token, c.Webhooks)
		c.Groups[token.Group].checkCeilings(v, at, token.Limits, token.Budget, nil)
	}
	v.unique("tokens", "name", len(c.Tokens), func(i int) string { return c.Tokens[i].Name })
	v.unique("tokens", "key", len(c.Tokens), func(i int) string { return c.Tokens[i].Key.Reveal() })
	for _, model := range slices.Sorted(maps.Keys(c.Prices)) {
		checkPrice(v, "prices."+model, c.Prices[model])
	}
	for i, channel := range c.Channels {
		checkChannel(v, key("channels", i), channel, vendors)
	}
	checkAliases(v, c.Aliases)
	c.checkAuthorities(v, vendors)
	v.unique("channels", "name", len(c.Channels), func(i int) string { return c.Channels[i].Name })
	return v.problems
}

// mostLeastHeap prevents a wrong unit from disabling collections.
const mostLeastHeap = 16 << 30

// mostCalls is the maximum number of calls in the log: a scan of so many takes Redis about ten seconds.
const mostCalls = 10_000_000

func checkCalls(v *validator, c Calls) {
	if c.Recent < 0 || c.Recent > mostCalls {
		v.add("calls.recent", "must be 0 to 10000000")
	}
	v.notNegative("calls.retention", c.Retention)
	if c.Retention > 0 && c.Recent == 0 {
		v.add("calls.retention", "requires calls.recent above 0: the history continues where calls.recent ends")
	}
}

func checkCallers(v *validator, c Config) {
	if c.PublicURL != "" {
		if address, ok := v.httpURL("public_url", c.PublicURL); ok && (address.RawQuery != "" || address.ForceQuery) {
			v.add("public_url", "must not contain a ? and a query")
		}
	}
	v.listener("admin.listen", c.Admin.Listen, "is the address of listen or of metrics.listen; leave it empty to have /admin at listen",
		c.Listen, c.Metrics.Listen)
	for i, network := range c.TrustedProxies {
		if prefix, err := parseNetwork(network); err != nil {
			v.add(key("trusted_proxies", i), "%q is neither an address nor a CIDR range such as 10.0.0.0/8", network)
		} else if prefix.Bits() == 0 {
			v.add(key("trusted_proxies", i), "trusts every address, so that any client could set its own address")
		}
	}
	for i, origin := range c.CORS.Origins {
		if problem := checkOrigin(origin, len(c.CORS.Origins)); problem != "" {
			v.add(key("cors.origins", i), "%s", problem)
		}
	}
}

func checkVideo(v *validator, section Video) {
	v.positive("video.retention", section.Retention)
	v.positive("video.queue_limit", section.QueueLimit)
	v.positive("video.deadline", section.Deadline)
	v.positive("video.archive_deadline", section.ArchiveDeadline)
	v.positive("video.poll_min", section.PollMin)
	v.positive("video.poll_max", section.PollMax)
	if section.PollMin > section.PollMax {
		v.add("video.poll_min", "is %s, longer than poll_max, which is %s", formatDuration(section.PollMin), formatDuration(section.PollMax))
	}
	if section.JobAttempts < 1 {
		v.add("video.job_attempts", "must be 1 or more")
	}
	if section.Copies < 2 {
		v.add("video.copies", "must be 2 or more: a copy from a slow source must not occupy the only slot")
	}
	v.limit("video.max_output_bytes", int(section.MaxOutputBytes))
}

func checkBackground(v *validator, section Background) {
	if section.MaxCalls < 1 {
		v.add("background.max_calls", "must be 1 or more")
	}
	if section.MaxQueued < 2 {
		v.add("background.max_queued", "must be 2 or more: one token has half of them at most")
	}
	v.positive("background.deadline", section.Deadline)
	v.notNegative("background.retention", section.Retention)
	if section.MaxOutput < 1 {
		v.add("background.max_output", "must be 1 byte or more")
	}
	v.oneOf("background.lost_answer", section.LostAnswer, providers.LostRepeat, providers.LostFail)
}

func checkRelay(v *validator, r Relay) {
	if r.MaxBody <= 0 {
		v.add("relay.max_body", "must be a size above 0")
	}
	if least := leastBodies * r.MaxBody; r.MaxBodyMemory != 0 && r.MaxBodyMemory < least {
		v.add("relay.max_body_memory", "is %s, less than four times max_body, which are %s", r.MaxBodyMemory, least)
	}
	v.positive("relay.first_byte_timeout", r.FirstByteTimeout)
	v.positive("relay.idle_timeout", r.IdleTimeout)
	if r.MaxAttempts < 1 {
		v.add("relay.max_attempts", "must be 1 or more")
	}
	v.notNegative("relay.cooldown", r.Cooldown)
	if r.CooldownFailures < 1 || r.CooldownFailures > health.MaxCooldownFailures {
		v.add("relay.cooldown_failures", "must be 1 to %d", health.MaxCooldownFailures)
	}
	if !(r.CooldownShare > 0 && r.CooldownShare <= 1) { // also refuses NaN
		v.add("relay.cooldown_share", "must be a number above 0, up to 1")
	}
	v.positive("relay.cooldown_window", r.CooldownWindow)
	v.notNegative("relay.grace", r.Grace)
	v.notNegative("relay.redis_grace", r.RedisGrace)
}
