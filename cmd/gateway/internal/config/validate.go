package config

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/providers/router"
	"modelrelay/providers/translate"
	"modelrelay/storage/slots"
	"modelrelay/storage/tokens"
)

// What the token store takes; said here so that the problem has a line and a column.
const (
	maxTokenName   = 128
	maxTokenKey    = 512
	randomIDPrefix = "tok_"
)

// validator collects what is wrong with a configuration.
type validator struct{ problems []Problem }

func (v *validator) add(key, format string, args ...any) {
	v.problems = append(v.problems, Problem{Key: key, Message: fmt.Sprintf(format, args...)})
}

// Validate checks values that have the right type: what may not be empty, negative, twice there or contradictory. The
// problems name keys and have no place in a file. No problem means that the gateway can start with it.
func (c Config) Validate(vendors providers.Catalog) []Problem {
	v := &validator{}
	v.address("listen", c.Listen)
	if c.Metrics.Listen != "" {
		v.address("metrics.listen", c.Metrics.Listen)
		if _, port, _ := net.SplitHostPort(c.Listen); c.Metrics.Listen == c.Listen && port != "0" {
			v.add("metrics.listen", "is the address of listen; metrics never share it")
		}
	}
	v.front(c)
	checkFront(v, c)
	checkEgress(v, c.Egress)
	checkGroups(v, c.Groups)
	v.operators(c)
	v.console(c)
	v.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	v.oneOf("log.format", c.Log.Format, "json", "text")
	v.services(c)
	v.video(c.Video)
	v.relay(c.Relay)
	c.Memory.check(v.add)
	checkCalls(v, c.Calls)
	for i, token := range c.Tokens {
		at := key("tokens", i)
		v.tokenName(at+".name", token.Name)
		v.tokenKey(at+".key", token.Key.Reveal())
		stored := c.Groups[token.Group].filled(token.stored())
		v.token(at, stored, c.Webhooks)
		c.Groups[token.Group].checkCeilings(v, at, stored.Limits, stored.Budget)
	}
	v.unique("tokens", "name", len(c.Tokens), func(i int) string { return c.Tokens[i].Name })
	v.unique("tokens", "key", len(c.Tokens), func(i int) string { return c.Tokens[i].Key.Reveal() })
	for _, model := range slices.Sorted(maps.Keys(c.Prices)) {
		v.price("prices."+model, c.Prices[model])
	}
	for i, channel := range c.Channels {
		v.channel(key("channels", i), channel, vendors)
	}
	v.aliases(c.Aliases)
	c.checkAuthorities(v, vendors)
	v.unique("channels", "name", len(c.Channels), func(i int) string { return c.Channels[i].Name })
	return v.problems
}

// mostCalls is how many calls the log may keep: a look through them all takes Redis some ten seconds by then.
const mostCalls = 10_000_000

// checkCalls checks the log of calls.
func checkCalls(v *validator, c Calls) {
	if c.Recent < 0 || c.Recent > mostCalls {
		v.add("calls.recent", "wants 0 to 10000000")
	}
	v.notNegative("calls.retention", c.Retention)
	if c.Retention > 0 && c.Recent == 0 {
		v.add("calls.retention", "wants calls.recent above 0: the history goes on where that ends")
	}
}

// front checks who may connect to which listener.
func (v *validator) front(c Config) {
	if c.PublicURL != "" {
		if address, ok := v.httpURL("public_url", c.PublicURL); ok && (address.RawQuery != "" || address.ForceQuery) {
			v.add("public_url", "wants nothing after ?")
		}
	}
	if at := c.Admin.Listen; at != "" {
		v.address("admin.listen", at)
		_, port, _ := net.SplitHostPort(at)
		if (at == c.Listen || at == c.Metrics.Listen) && port != "0" {
			v.add("admin.listen", "is the address of listen or of metrics.listen; leave it empty to have /admin at listen")
		}
	}
	for i, network := range c.TrustedProxies {
		if prefix, err := parseNetwork(network); err != nil {
			v.add(key("trusted_proxies", i), "%q is neither an address nor a CIDR range such as 10.0.0.0/8", network)
		} else if prefix.Bits() == 0 {
			v.add(key("trusted_proxies", i), "trusts everybody, so that any client could name its own address")
		}
	}
	for i, origin := range c.CORS.Origins {
		if problem := checkOrigin(origin, len(c.CORS.Origins)); problem != "" {
			v.add(key("cors.origins", i), "%s", problem)
		}
	}
}

func (v *validator) services(c Config) {
	checkRedis(v, c.Redis)
	checkTemporal(v, c.Temporal)
	checkWorker(v, c.Worker)
	checkArchive(v, c.Archive)
}

// store checks the address of an S3 store.
func (v *validator) store(key, address string) {
	if endpoint, ok := v.httpURL(key, address); ok && strings.Trim(endpoint.Path, "/") != "" {
		v.add(key, "wants no path")
	}
}

func (v *validator) video(section Video) {
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
		v.add("video.job_attempts", "wants 1 or more")
	}
	if section.Copies < 2 {
		v.add("video.copies", "wants 2 or more: one of a slow source must leave room for another")
	}
	v.limit("video.max_output_bytes", int(section.MaxOutputBytes))
}

func (v *validator) relay(r Relay) {
	if r.MaxBody <= 0 {
		v.add("relay.max_body", "wants a size above 0")
	}
	if least := leastBodies * r.MaxBody; r.MaxBodyMemory != 0 && r.MaxBodyMemory < least {
		v.add("relay.max_body_memory", "is %s, less than four times max_body, which are %s", r.MaxBodyMemory, least)
	}
	v.positive("relay.first_byte_timeout", r.FirstByteTimeout)
	v.positive("relay.idle_timeout", r.IdleTimeout)
	if r.MaxAttempts < 1 {
		v.add("relay.max_attempts", "wants 1 or more")
	}
	v.notNegative("relay.cooldown", r.Cooldown)
	if r.CooldownFailures < 1 || r.CooldownFailures > router.MaxCooldownFailures {
		v.add("relay.cooldown_failures", "wants 1 to %d", router.MaxCooldownFailures)
	}
	if !(r.CooldownShare > 0 && r.CooldownShare <= 1) { // nor NaN
		v.add("relay.cooldown_share", "wants a number above 0, up to 1")
	}
	v.positive("relay.cooldown_window", r.CooldownWindow)
	v.notNegative("relay.grace", r.Grace)
	v.notNegative("relay.redis_grace", r.RedisGrace)
}

// token checks what operators set of a token, in the file and while the gateway runs.
func (v *validator) token(at string, t tokens.Token, webhooks Webhooks) {
	v.filled(at+".group", t.Group)
	if !providers.Plain(t.Group) {
		v.add(at+".group", "holds a control character")
	}
	v.oneOf(at+".lane", t.Lane, slots.Lanes()...)
	v.tokenLimits(at, t.Limits)
	v.amount(at+".budget", t.Budget)
	v.weight(at+".weight", t.Weight)
	v.allFilled(at+".models", t.Models)
	for i, operation := range t.Operations {
		v.oneOf(key(at+".operations", i), operation, tokens.Operations()...)
	}
	for i, network := range t.Networks {
		if _, err := parseNetwork(network); err != nil {
			v.add(key(at+".networks", i), "%q is neither an address nor a CIDR range such as 10.0.0.0/8", network)
		}
	}
	if t.WebhookURL != "" {
		if err := activities.CheckReceiver(t.WebhookURL, webhooks.AllowPrivateNetworks); err != nil {
			v.add(at+".webhook_url", "%v", err)
		}
		if t.WebhookSecret == "" {
			v.add(at+".webhook_secret", "is missing beside webhook_url")
		}
	}
	if t.WebhookSecret != "" {
		if _, err := tokens.WebhookKey(t.WebhookSecret); err != nil {
			v.add(at+".webhook_secret", "%v", err)
		}
	}
}

func (v *validator) tokenKey(at, credential string) {
	switch {
	case credential == "":
		v.add(at, "is missing")
	case len(credential) > maxTokenKey:
		v.add(at, "is longer than %d characters", maxTokenKey)
	case strings.ContainsFunc(credential, func(r rune) bool { return r <= ' ' || r > '~' }):
		v.add(at, "wants visible ASCII characters without spaces, as a header can carry them")
	}
}

func (v *validator) tokenName(at, name string) {
	switch {
	case strings.TrimSpace(name) == "":
		v.add(at, "is missing")
	case len(name) > maxTokenName:
		v.add(at, "is longer than %d bytes", maxTokenName)
	case strings.HasPrefix(name, randomIDPrefix):
		v.add(at, "begins with %q like the ids of tokens made at run time", randomIDPrefix)
	case !providers.Plain(name):
		v.add(at, "holds a control character")
	}
}

func (v *validator) channel(at string, c Channel, vendors providers.Catalog) {
	v.filled(at+".name", c.Name)
	vendor, known := vendors[c.Vendor]
	if !known {
		v.oneOf(at+".vendor", c.Vendor, slices.Sorted(maps.Keys(vendors))...)
	}
	if c.BaseURL == "" && vendor.BaseURL != "" {
		// The vendor's own is meant.
	} else if base, ok := v.httpURL(at+".base_url", c.BaseURL); ok && vendor.CheckBaseURL != nil {
		if err := vendor.CheckBaseURL(base); err != nil {
			v.add(at+".base_url", "%v", err)
		}
	}
	if len(c.Keys) == 0 {
		v.add(at+".keys", "wants at least one key")
	}
	for i, secret := range c.Keys {
		switch {
		case secret == "":
			v.add(key(at+".keys", i), "is empty")
		case vendor.CheckKey != nil && vendor.CheckKey(secret) != nil:
			v.add(key(at+".keys", i), "%v", vendor.CheckKey(secret))
		case slices.Index(c.Keys, secret) < i:
			v.add(key(at+".keys", i), "is the same as keys[%d]", slices.Index(c.Keys, secret))
		}
	}
	if len(c.Models) == 0 {
		v.add(at+".models", `wants at least one model; "*": opens every name`)
	}
	v.models(at+".models", c.Models)
	v.dialect(at, c)
	v.fields(at+".fields", c.facts().Fields, vendor)
	if len(c.Groups) == 0 {
		v.add(at+".groups", "wants at least one group")
	}
	v.allFilled(at+".groups", c.Groups)
	v.weight(at+".weight", c.Weight)
	v.limit(at+".max_jobs", c.MaxJobs)
	v.limit(at+".max_calls", c.MaxCalls)
}

// models checks the names of a channel's models.
func (v *validator) models(at string, models map[string]string) {
	for _, public := range slices.Sorted(maps.Keys(models)) {
		upstream := models[public]
		switch {
		case public == "":
			v.add(at, "a public name is empty")
		case public == providers.AnyModel && upstream != "":
			v.add(at+"."+public, `opens every name as it is and takes no upstream name`)
		case strings.Count(public, "*") > 1:
			v.add(at+"."+public, "has more than one *")
		case strings.Count(upstream, "*") > strings.Count(public, "*"):
			v.add(at+"."+public, "its upstream name has a * for which nothing stands in the public one")
		}
	}
}

// aliases checks the names that stand for others.
func (v *validator) aliases(aliases map[string]string) {
	for _, asked := range slices.Sorted(maps.Keys(aliases)) {
		public := aliases[asked]
		switch _, chained := aliases[public]; {
		case asked == "" || public == "":
			v.add("aliases", "a name is empty")
		case providers.IsPattern(asked) || providers.IsPattern(public):
			v.add("aliases."+asked, "takes no *; a channel's models do")
		case asked == public:
			v.add("aliases."+asked, "stands for itself")
		case chained:
			v.add("aliases."+asked, "stands for %q, which is an alias itself", public)
		}
	}
}

// dialect checks what a channel says of translations.
func (v *validator) dialect(at string, c Channel) {
	v.oneOf(at+".dialect", c.Dialect, providers.DialectBoth, providers.DialectChat, providers.DialectResponses)
	if c.Dialect != providers.DialectBoth && c.Vendor != "openai" {
		v.add(at+".dialect", "is of vendor openai alone")
	}
	for _, model := range slices.Sorted(maps.Keys(c.Traits)) {
		for i, word := range c.Traits[model] {
			if err := translate.CheckTrait(word); err != nil {
				v.add(key(at+".traits."+model, i), "%v", err)
			}
		}
	}
}

// fields checks what models call the fields of a video request.
func (v *validator) fields(at string, models map[string]providers.VideoFields, vendor providers.Vendor) {
	if len(models) > 0 && vendor.Name != "" && !vendor.NamesFields {
		v.add(at, "is of vendors that host many models alone, which %s does not", vendor.Name)
		return
	}
	for _, model := range slices.Sorted(maps.Keys(models)) {
		for _, name := range slices.Sorted(maps.Keys(models[model])) {
			if err := models[model].Check(name); err != nil {
				v.add(at+"."+model+"."+name, "%v", err)
			}
		}
	}
}
