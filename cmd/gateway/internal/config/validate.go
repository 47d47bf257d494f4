package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"modelrelay/providers"
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
	v.section("", reflect.ValueOf(c))
	v.address("listen", c.Listen)
	v.listener("metrics.listen", c.Metrics.Listen, "is the address of listen; metrics never share it", c.Listen)
	checkCallers(v, c)
	checkFront(v, c)
	checkEgress(v, c.Egress)
	checkGroups(v, c.Groups)
	checkOperators(v, c)
	checkConsole(v, c)
	checkRedis(v, c.Redis)
	checkTemporal(v, c.Temporal)
	checkWorker(v, c.Worker)
	checkArchive(v, c.Archive)
	if least, most := c.Video.PollMin, c.Video.PollMax; least > most {
		v.add("video.poll_min", "is %s, longer than poll_max, which is %s", formatDuration(least), formatDuration(most))
	}
	checkRelay(v, c.Relay)
	if heap := c.Memory.LeastHeap; heap < 0 || heap > mostLeastHeap {
		v.add("memory.least_heap", "must be a size from 0 to %s", Size(mostLeastHeap))
	}
	if c.Calls.Retention > 0 && c.Calls.Recent == 0 {
		v.add("calls.retention", "requires calls.recent above 0: the history continues where calls.recent ends")
	}
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

// section checks the values of a section by the tags of their fields: required; enum, which may begin with a comma for an optional value;
// and range, whose end may be open.
func (v *validator) section(path string, section reflect.Value) {
	for field, value := range keyFields(section) {
		at := join(path, field.Tag.Get("yaml"))
		switch _, isLeaf := field.Tag.Lookup("doc"); {
		case isLeaf:
			v.value(at, value, field.Tag)
		case value.Kind() == reflect.Slice:
			for i := range value.Len() {
				v.section(key(at, i), value.Index(i))
			}
		case value.Kind() == reflect.Map:
			byName := func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) }
			for _, name := range slices.SortedFunc(slices.Values(value.MapKeys()), byName) {
				v.section(join(at, name.String()), value.MapIndex(name))
			}
		default:
			v.section(at, value)
		}
	}
}

func (v *validator) value(at string, value reflect.Value, rules reflect.StructTag) {
	if rules.Get("required") != "" && strings.TrimSpace(value.String()) == "" {
		v.add(at, "is missing")
	}
	if words, optional := strings.CutPrefix(rules.Get("enum"), ","); words != "" && (!optional || value.String() != "") {
		v.oneOf(at, value.String(), strings.Split(words, ",")...)
	}
	if least, most, limited := strings.Cut(rules.Get("range"), "-"); limited {
		v.within(at, value, least, most)
	}
}

// within checks that a number, a size or a duration is in a range. most is "" for none.
func (v *validator) within(at string, value reflect.Value, least, most string) {
	low, _ := strconv.ParseInt(least, 10, 64) // constants of the tags
	high, err := strconv.ParseInt(most, 10, 64)
	switch n := value.Int(); {
	case n >= low && (err != nil || n <= high):
	case most != "":
		v.add(at, "must be %s to %s", least, most)
	case low == 0:
		v.add(at, "is negative")
	case value.Type() == reflect.TypeFor[int]():
		v.add(at, "must be %s or more", least)
	default:
		kind, _, _ := strings.Cut(expected(value.Type()), " such as")
		v.add(at, "must be %s above 0", kind)
	}
}

// mostLeastHeap prevents a wrong unit from disabling collections.
const mostLeastHeap = 16 << 30

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

func checkRelay(v *validator, r Relay) {
	if least := leastBodies * r.MaxBody; r.MaxBodyMemory != 0 && r.MaxBodyMemory < least {
		v.add("relay.max_body_memory", "is %s, less than four times max_body, which are %s", r.MaxBodyMemory, least)
	}
	if !(r.CooldownShare > 0 && r.CooldownShare <= 1) { // also refuses NaN
		v.add("relay.cooldown_share", "must be a number above 0, up to 1")
	}
}
