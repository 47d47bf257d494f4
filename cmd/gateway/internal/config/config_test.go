package config_test

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/providers"
	"modelrelay/providers/openai"
	"modelrelay/storage/tokens"
)

// testVendors replaces the vendors' table: one vendor that takes any key and one with a shape of its own.
func testVendors() providers.Catalog {
	return providers.Catalog{
		"openai": {Name: "openai", Dialects: true, Relay: openai.NewRelayer(nil)},
		"hosts":  {Name: "hosts", NamesFields: true},
		"vendorc": {Name: "vendorc", CheckKey: func(key providers.Secret) error {
			if !strings.Contains(key.Reveal(), ":") {
				return errors.New("must be ACCESS_KEY:SECRET_KEY")
			}
			return nil
		}, CheckBaseURL: func(base *url.URL) error {
			if base.Path == "/v1" {
				return errors.New("wants no /v1")
			}
			return nil
		}},
	}
}

func testEnv(name string) (string, bool) {
	value, ok := map[string]string{
		"ADMIN": "admin-secret", "NUMBER": "7", "YES": "true", "WAIT": "5s", "EMPTY": "", "LEADING": "0012e3",
		"INJECT": "x, key: stolen}\nlisten: 0.0.0.0:1", "UPSTREAM": "sk-upstream",
	}[name]
	return value, ok
}

func parse(text string) (config.Config, error) {
	return config.Parse("gateway.yaml", []byte(text), testEnv, testVendors())
}

// fullConfig has most keys of the file at once; testdata/whole.yaml has every one.
const fullConfig = `listen: 127.0.0.1:8080
public_url: https://gateway.example.com/ai
admin_key: ${ADMIN}
admin:    {listen: 10.1.0.1:8081}
operators: [{name: anna, key: "${ADMIN}-of-anna", role: operator}, {name: vera, key: k, role: viewer}]
trusted_proxies: [10.0.0.0/8, "::1"]
cors:     {origins: ["https://app.example.com", "http://localhost:3000"]}
metrics:  {listen: 127.0.0.1:9464}
log:      {level: info, format: json}
redis:    {url: redis://127.0.0.1:6379/0}
temporal: {address: 127.0.0.1:7233, namespace: default, task_queue: video}
archive:  {endpoint: http://127.0.0.1:9000, bucket: videos, access_key: x, secret_key: y, region: us-east-1, public_endpoint: "http://127.0.0.1:9000"}
video:    {retention: 72h, queue_limit: 24h, deadline: 6h, archive_deadline: 24h, poll_min: 2s, poll_max: 30s, copies: 8, presigned_urls: false, max_output_bytes: 2GiB, default_model: ""}
webhooks: {allow_private_networks: false}
relay:    {max_body: 64MiB, first_byte_timeout: 120s, idle_timeout: 120s, max_attempts: 3, cooldown: 30s, grace: 30s, redis_grace: 10m, realtime_model: "", moderation_model: ""}
tokens:
  - {name: demo, key: sk-demo, group: default, models: ["*"], requests_per_minute: 600, tokens_per_minute: 0, concurrency: 0, max_tasks: 0, max_sockets: 0,
     budget: 0, weight: 1, lane: normal, expires: "", networks: [], operations: [], webhook_url: "", webhook_secret: "", disabled: false}
prices: {gpt-4o: {input: 2.5, cached_input: 1.25, output: 10, unit: 1M},
  sora-2: {second: 0.1, request: 0.000000001, video: 0.5, tiers: [{resolution: 1080P, audio: true, second: 0.3, video: 1}]}}
channels:
  - name: main
    vendor: openai
    base_url: https://api.example.test/v1
    keys: ["${UPSTREAM}"]
    models: {gpt-4o: , fast: gpt-4o-mini}
    groups: [default]
    priority: 0
    weight: 1
    max_jobs: 0
    open_values: false
    dialect: chat
    stream_usage: false
    translate: false
    traits: {gpt-4o: [reasons], mistral-: []}
    disabled: false
aliases: {gpt-4o-2024-05-13: gpt-4o}
`

func TestWholeFile(t *testing.T) {
	t.Parallel()
	got, err := parse(fullConfig)
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	want.AdminKey, want.Admin.Listen, want.TrustedProxies = "admin-secret", "10.1.0.1:8081", []string{"10.0.0.0/8", "::1"}
	want.Operators = []config.Operator{{Name: "anna", Key: "admin-secret-of-anna", Role: "operator"}, {Name: "vera", Key: "k", Role: "viewer"}}
	want.PublicURL = "https://gateway.example.com/ai"
	want.CORS.Origins = []string{"https://app.example.com", "http://localhost:3000"}
	want.Archive.AccessKey, want.Archive.SecretKey, want.Archive.PublicEndpoint = "x", "y", "http://127.0.0.1:9000"
	want.Tokens = []config.Token{{Key: "sk-demo", Token: tokens.Token{
		Name: "demo", Group: "default", Models: []string{"*"}, Limits: tokens.Limits{RequestsPerMinute: 600}, Weight: 1,
		Lane:     "normal",
		Networks: []string{}, Operations: []string{},
	}}}
	want.Prices = map[string]config.Price{
		"gpt-4o": {Input: "2.5", CachedInput: "1.25", Output: "10", Unit: "1M"},
		"sora-2": {
			Second: "0.1", Request: "0.000000001", Unit: "1M", Video: "0.5",
			Tiers: []config.Tier{{Resolution: "1080P", Audio: "true", Second: "0.3", Video: "1"}},
		},
	}
	want.Channels = []config.Channel{{Background: config.BackgroundGateway, Channel: providers.Channel{
		Name: "main", Vendor: "openai", BaseURL: "https://api.example.test/v1", Keys: []providers.Secret{"sk-upstream"},
		Models: map[string]string{"gpt-4o": "", "fast": "gpt-4o-mini"}, Groups: []string{"default"}, Weight: 1,
		Dialect:    "chat",
		ModelFacts: providers.ModelFacts{Traits: map[string][]string{"gpt-4o": {"reasons"}, "mistral-": {}}},
	}}}
	want.Aliases = map[string]string{"gpt-4o-2024-05-13": "gpt-4o"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %#v\nwant %#v", got, want)
	}
}

func TestDefaultsAreValid(t *testing.T) {
	t.Parallel()
	if problems := config.Default().Validate(testVendors()); len(problems) > 0 {
		t.Errorf("problems: %v", problems)
	}
	for _, text := range []string{"", "# nothing\n", "---\n", "relay:\nvideo: ~\ntokens: null\n"} {
		got, err := parse(text)
		if err != nil || !reflect.DeepEqual(got, config.Default()) {
			t.Errorf("parse(%q) = %+v, %v; want the defaults", text, got, err)
		}
	}
}

const (
	token   = "tokens:\n  - {name: a, key: k, "
	hosting = "channels:\n  - {name: a, vendor: hosts, base_url: http://u.test, keys: [k], models: {m: }, "
	channel = "channels:\n  - {name: a, vendor: openai, base_url: http://u.test, keys: [k], models: {m: }, "
)

func TestProblemsNameKeyLineAndColumn(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, text, want string }{
		{"unknown key", "lisen: x\n", "1:1: lisen: unknown key; known here are admin, admin_key, "},
		{"unknown key below", "relay:\n  max_bodi: 1\n", "2:3: relay.max_bodi: unknown key"},
		{"unknown key in flow", "relay: {max_body: 1KiB, grce: 1s}\n", "1:25: relay.grce: unknown key"},
		{"unknown key in a token", token + "grup: x}\n", "2:23: tokens[0].grup: unknown key"},
		{"unknown key in a price", "prices: {m: {inputt: 1}}\n", "1:14: prices.m.inputt: unknown key"},
		{"twice", "listen: 127.0.0.1:1\nlisten: 127.0.0.1:2\n", "2:1: "},
		{"no YAML", "listen: [1, 2\n", "1:9: "},
		{"variable without quotes in flow", "relay: {grace: ${WAIT}}\n", `; inside [ ] and { } write "${NAME}" with quotes`},
		{"bad indent", "relay:\n   grace: 1s\n  cooldown: 1s\n", ":"},
		{"list for a section", "relay: [1]\n", "1:8: relay: must be keys and values, not a list"},
		{"text for a section", "relay: x\n", "1:8: relay: must be keys and values, not a single value"},
		{"text at the top", "hello\n", "1:1: must be keys and values"},
		{"section for a list", "channels: {a: b}\n", "1:11: channels: must be a list, not keys and values"},
		{"section for text", "listen: {a: b}\n", "1:9: listen: must be text, not keys and values"},
		{"list for a number", "relay: {max_attempts: [3]}\n", "1:23: relay.max_attempts: must be a whole number, not a list"},
		{"text for a number", "relay: {max_attempts: many}\n", `1:23: relay.max_attempts: must be a whole number, not "many"`},
		{"quoted number", "relay: {max_attempts: \"3\"}\n", `1:23: relay.max_attempts: must be a whole number, not "3"`},
		{"fraction for a whole number", "relay: {max_attempts: 1.5}\n", `1:23: relay.max_attempts: must be a whole number, not "1.5"`},
		{"yes for true", "video: {presigned_urls: yes}\n", `1:25: video.presigned_urls: must be true or false, not "yes"`},
		{"NaN", token + "budget: .nan}\n", `tokens[0].budget: must be a number, not ".nan"`},
		{"duration without unit", "relay:\n  grace: 30\n", `2:10: relay.grace: "30" is not a duration such as 30s, 10m or 72h`},
		{"size", "relay:\n  max_body: 64 apples\n", `2:13: relay.max_body: "64 apples" is not a size such as 64MiB or 2GiB`},
		{"huge size", "relay: {max_body: 99EiB}\n", "is not a size"},
		{"time", token + "expires: soon}\n", `2:32: tokens[0].expires: "soon" is neither a date`},
		{"tag", "listen: !!str x\n", "1:9: listen: YAML tags are not supported"},
		{"lost alias", "listen: *a\n", "1:9: unknown anchor 'a' referenced"},
		{"second document", "listen: 127.0.0.1:1\n---\nlisten: 127.0.0.1:2\n", "3:1: the file must contain one document"},
		{"operator without a name", "operators:\n- {key: k, role: viewer}\n", "2:3: operators[0].name: is missing"},
		{"operator without a role", "operators:\n- {name: a, key: k}\n", "2:3: operators[0].role: is missing; known are operator, viewer"},
		{"operator without a key", "operators: [{name: a, role: viewer}]\n", "operators[0].key: is missing"},
		{
			"operator of another role", "operators: [{name: a, key: k, role: root}]\n",
			`operators[0].role: "root" is unknown; known are operator, viewer`,
		},
		{
			"operator called admin", "operators: [{name: admin, key: k, role: viewer}]\n",
			"operators[0].name: is the name of the operator of admin_key",
		},
		{"operator with a reserved name", "operators: [{name: cli, key: k, role: viewer}]\n", `operators[0].name: "cli" is reserved`},
		{
			"operator with the admin key", "admin_key: k\noperators: [{name: a, key: k, role: viewer}]\n",
			"operators[0].key: is the same as admin_key",
		},
		{
			"operator with a token's key", token + "group: g}\noperators: [{name: a, key: k, role: viewer}]\n",
			"operators[0].key: is the same as tokens[0].key",
		},
		{
			"operator twice", "operators: [{name: a, key: k, role: viewer}, {name: a, key: l, role: viewer}]\n",
			"operators[1].name: is the same as operators[0].name",
		},
		{"unset variable", "admin_key: ${NOT_SET}\n", "1:12: admin_key: the environment variable NOT_SET is not set"},
		{
			"unset variable in a list", channel + "groups: [\"${NOT_SET}\"]}\n",
			"channels[0].groups[0]: the environment variable NOT_SET is not set",
		},
		{"bad variable", "admin_key: ${1X}\n", "1:12: admin_key: ${ begins the name of an environment variable"},
		{"open variable", "admin_key: ${ADMIN\n", "1:12: admin_key: ${ begins the name"},
		{"variable of the wrong type", "relay:\n  max_attempts: ${ADMIN}\n", "2:17: relay.max_attempts: ${ADMIN} does not contain a whole number"},

		{"listen", "listen: here\n", `1:1: listen: "here" is not a host:port`},
		{"port", "listen: 127.0.0.1:99999\n", `1:1: listen: "99999" is not a port`},
		{
			"metrics on the public listener", "listen: 127.0.0.1:1\nmetrics: {listen: 127.0.0.1:1}\n",
			"2:11: metrics.listen: is the address of listen",
		},
		{"labels of no model", "metrics: {models: 0}\n", "1:11: metrics.models: must be 1 or more"},
		{"admin on the public listener", "listen: 127.0.0.1:1\nadmin: {listen: 127.0.0.1:1}\n", "2:9: admin.listen: is the address of listen"},
		{"admin's address", "admin: {listen: here}\n", `1:9: admin.listen: "here" is not a host:port`},
		{"proxy", "trusted_proxies: [10.0.0.0/8, balancer]\n", `1:31: trusted_proxies[1]: "balancer" is neither an address nor a CIDR range`},
		{"every proxy", "trusted_proxies: [0.0.0.0/0]\n", "1:19: trusted_proxies[0]: trusts every address"},
		{"origin", "cors: {origins: [\"https://app.example.com/\"]}\n", `1:18: cors.origins[0]: "https://app.example.com/" is not an origin`},
		{"origin in capitals", "cors: {origins: [\"https://App.example.com\"]}\n", "is not an origin"},
		{"no origin", "cors: {origins: [\"null\"]}\n", "is not an origin"},
		{"every origin and one", "cors: {origins: [\"*\", \"https://a.test\"]}\n", `cors.origins[0]: "*" allows every origin`},
		{"log level", "log: {level: loud}\n", `1:7: log.level: "loud" is unknown; known are debug, info, warn, error`},
		{"log format", "log: {format: xml}\n", "1:7: log.format: "},
		{"redis", "redis: {url: http://u:hidden@x}\n", "1:9: redis.url: must be redis://"},
		{"temporal", "temporal: {address: x}\n", "1:12: temporal.address: "},
		{"namespace", "temporal: {namespace: \"\"}\n", "1:12: temporal.namespace: is missing"},
		{"archive", "archive: {endpoint: \"127.0.0.1:9000\"}\n", "1:11: archive.endpoint: must be http://host or https://host"},
		{"archive path", "archive: {endpoint: http://a/b}\n", "1:11: archive.endpoint: must not contain a path"},
		{"public archive", "archive: {public_endpoint: \"cdn.example\"}\n", "1:11: archive.public_endpoint: must be http://host or https://host"},
		{"public archive path", "archive: {public_endpoint: http://a/b}\n", "1:11: archive.public_endpoint: must not contain a path"},
		{"archive keys", "archive: {secret_key: b}\n", "1:1: archive.access_key: is required with secret_key"},
		{"retention", "video: {retention: 0s}\n", "1:9: video.retention: must be a duration above 0"},
		{"responses", "responses: {retention: -1h}\n", "1:13: responses.retention: is negative"},
		{
			"history of nothing", "calls: {recent: 0, retention: 720h}\n",
			"1:20: calls.retention: requires calls.recent above 0: the history continues where calls.recent ends",
		},
		{"copies", "video:\n  copies: 1\n", "2:3: video.copies: must be 2 or more"},
		{"poll", "video:\n  poll_min: 1m\n  poll_max: 10s\n", "2:3: video.poll_min: is 1m, longer than poll_max, which is 10s"},
		{"output", "video: {max_output_bytes: -1}\n", "is not a size"},
		{"body", "relay: {max_body: 0}\n", "1:9: relay.max_body: must be a size above 0"},
		{"failures", "relay: {cooldown_failures: 33}\n", "1:9: relay.cooldown_failures: must be 1 to 32"},
		{"share", "relay: {cooldown_share: 1.5}\n", "1:9: relay.cooldown_share: must be a number above 0, up to 1"},
		{"window", "relay: {cooldown_window: 0s}\n", "1:9: relay.cooldown_window: must be"},
		{"attempts", "relay: {max_attempts: 0}\n", "1:9: relay.max_attempts: must be 1 or more"},
		{"cooldown", "relay: {cooldown: -1s}\n", "1:9: relay.cooldown: is negative"},

		{"direction in a name", "tokens: [{name: \"a\\u202eb\", key: k}]\n", "tokens[0].name: contains a control character"},
		{"escape in a group", "tokens: [{name: a, key: k, group: \"a\\u001b[31m\"}]\n", "tokens[0].group: contains a control character"},
		{"zero time", token + "expires: 0001-01-01}\n", "tokens[0].expires: \"0001-01-01\" is neither"},
		{"token without name", "tokens:\n  - key: k\n", "tokens[0].name: is missing"},
		{"token name taken by random ids", "tokens: [{name: tok_x, key: k}]\n", "tokens[0].name: begins with \"tok_\""},
		{"token without key", "tokens: [{name: a}]\n", "1:10: tokens[0].key: is missing"},
		{"token with empty key", "tokens: [{name: a, key: \"${EMPTY}\"}]\n", "1:20: tokens[0].key: is missing"},
		{"token key", "tokens: [{name: a, key: \"a b\"}]\n", "tokens[0].key: must be visible ASCII"},
		{"token limit", token + "concurrency: -1}\n", "tokens[0].concurrency: is negative; 0 means no limit"},
		{"token limit with a default", token + "max_sockets: -2}\n", "tokens[0].max_sockets: is negative; 0 means 100, -1 no limit"},
		{"budget", token + "budget: -0.5}\n", "tokens[0].budget: is negative"},
		{"budget that rounds to no limit", token + "budget: 1e-12}\n", "tokens[0].budget: is below one billionth, the smallest amount of money"},
		{"network", token + "networks: [10.0.0.0/8, nowhere]}\n", `tokens[0].networks[1]: "nowhere" is neither an address nor a CIDR range`},
		{
			"operation", token + "operations: [relay, videos]}\n",
			`2:43: tokens[0].operations[1]: "videos" is unknown; known are relay, video, realtime`,
		},
		{"empty operation", token + "operations: [\"\"]}\n", "tokens[0].operations[0]: is missing; known are relay"},
		{
			"webhook", token + "webhook_url: \"ftp://x\", webhook_secret: whsec_aGlkZGVuIGhpZGRlbiBoaWRkZW4gaGlk}\n",
			"tokens[0].webhook_url: must be http://host",
		},
		{"webhook secret", token + "webhook_url: \"http://x\"}\n", "tokens[0].webhook_secret: is required with webhook_url"},
		{"webhook secret's form", token + "webhook_secret: whsec_a}\n", "tokens[0].webhook_secret: must have 24 to 64 bytes"},
		{
			"private webhook", token + "webhook_url: \"http://10.0.0.1/\", webhook_secret: whsec_aGlkZGVuIGhpZGRlbiBoaWRkZW4gaGlk}\n",
			"tokens[0].webhook_url: leads to a private",
		},
		{"token twice", "tokens:\n  - {name: a, key: k}\n  - {name: a, key: l}\n", "3:6: tokens[1].name: is the same as tokens[0].name"},
		{"key twice", "tokens:\n  - {name: a, key: k}\n  - {name: b, key: k}\n", "3:15: tokens[1].key: is the same as tokens[0].key"},
		{"unit", "prices: {m: {unit: 5}}\n", "1:14: prices.m.unit: \"5\" is unknown; known are 1, 1K, 1M"},
		{"public address without a scheme", "public_url: gateway.example.com\n", "1:1: public_url: must be http://host or https://host"},
		{"public address with a query", "public_url: https://h/?a=b\n", "1:1: public_url: must not contain a ? and a query"},
		{"tier of nothing", "prices: {m: {tiers: [{resolution: 720p}]}}\n", "1:22: prices.m.tiers[0]: requires second or video"},
		{
			"tier by pixels", "prices: {m: {tiers: [{resolution: 1280x720, video: 1}]}}\n",
			"prices.m.tiers[0].resolution: must be a word such as 720p",
		},
		{
			"tier with some sound", "prices: {m: {tiers: [{audio: yes, video: 1}]}}\n",
			"prices.m.tiers[0].audio: \"yes\" is unknown; known are true, false",
		},
		{"tier's price", "prices: {m: {tiers: [{video: x}]}}\n", "prices.m.tiers[0].video: \"x\": want a decimal amount"},
		{"price", "prices: {m: {second: -1}}\n", "1:14: prices.m.second: \"-1\": want a decimal amount, not negative"},

		{
			"vendor", "channels:\n  - name: a\n    vendor: opnai\n    base_url: http://u\n    keys: [k]\n    models: {m: }\n",
			`3:5: channels[0].vendor: "opnai" is unknown; known are hosts, openai, vendorc`,
		},
		{
			"no vendor", "channels: [{name: a, base_url: \"http://u\", keys: [k], models: {m: }}]\n",
			"channels[0].vendor: is missing; known are hosts, openai, vendorc",
		},
		{
			"base url", "channels:\n  - {name: a, vendor: openai, base_url: u.test, keys: [k], models: {m: }}\n",
			"2:31: channels[0].base_url: must be http://host or https://host",
		},
		{
			"user in url", "channels:\n  - {name: a, vendor: openai, base_url: \"http://u:hidden@u.test\", keys: [k], models: {m: }}\n",
			"2:31: channels[0].base_url: must not contain a user or a password",
		},
		{
			"the vendor's url", "channels:\n  - {name: a, vendor: vendorc, base_url: \"http://u.test/v1\", keys: [\"k:l\"], models: {m: }}\n",
			"2:32: channels[0].base_url: wants no /v1",
		},
		{
			"no keys", "channels:\n  - {name: a, vendor: openai, base_url: http://u.test, models: {m: }}\n",
			"channels[0].keys: must contain at least one key",
		},
		{
			"empty key", "channels:\n  - {name: a, vendor: openai, base_url: http://u.test, keys: [k, \"\"], models: {m: }}\n",
			"channels[0].keys[1]: is empty",
		},
		{
			"same key", "channels:\n  - {name: a, vendor: openai, base_url: http://u.test, keys: [k, l, k], models: {m: }}\n",
			"channels[0].keys[2]: is the same as keys[0]",
		},
		{
			"key shape", "channels:\n  - {name: a, vendor: vendorc, base_url: http://u.test, keys: [hidden], models: {m: }}\n",
			"channels[0].keys[0]: must be ACCESS_KEY:SECRET_KEY",
		},
		{
			"no models", "channels:\n  - {name: a, vendor: openai, base_url: http://u.test, keys: [k]}\n",
			"channels[0].models: must contain at least one model",
		},
		{
			"every model renamed", "channels:\n  - {name: a, vendor: openai, base_url: http://u.test, keys: [k], models: {\"*\": x}}\n",
			"channels[0].models.*: allows every name",
		},
		{
			"two stars", "channels:\n  - {name: a, vendor: openai, base_url: http://u.test, keys: [k], models: {\"a*b*\": x}}\n",
			"channels[0].models.a*b*: has more than one *",
		},
		{
			"a star for nothing", "channels:\n  - {name: a, vendor: openai, base_url: http://u.test, keys: [k], models: {a: \"x-*\"}}\n",
			"channels[0].models.a: its upstream name has a *",
		},
		{"alias of a pattern", "aliases: {a: \"b-*\"}\n", "1:11: aliases.a: must not contain *"},
		{"alias of an alias", "aliases: {a: b, b: c}\n", "aliases.a: is an alias of \"b\", which is also an alias"},
		{"alias of itself", "aliases: {a: a}\n", "aliases.a: is an alias of itself"},
		{"alias of nothing", "aliases: {a: }\n", "aliases: a name is empty"},
		{
			"runner of background calls", channel + "background: vendor}\n",
			"channels[0].background: \"vendor\" is unknown; known are gateway, upstream",
		},
		{"runner of another vendor", "channels:\n  - {name: a, vendor: vendorc, base_url: http://u.test, keys: [\"k:l\"], models: {m: }, background: upstream}\n", "channels[0].background: is only for vendors that run calls in the background; vendorc does not"},
		{"rule of a channel", channel + "lost_answer: again}\n", "channels[0].lost_answer: \"again\" is unknown; known are repeat, fail"},
		{"dialect", channel + "dialect: completions}\n", "channels[0].dialect: \"completions\" is unknown; known are both, chat, responses"},
		{"dialect of another vendor", "channels:\n  - {name: a, vendor: vendorc, base_url: http://u.test, keys: [\"k:l\"], models: {m: }, dialect: chat}\n", "channels[0].dialect: is only for vendors that have both chat endpoints; vendorc does not"},
		{
			"fields of another vendor", channel + "fields: {m: {image: i}}}\n",
			"2:82: channels[0].fields: is only for vendors that host many models; openai does not",
		},
		{
			"field", hosting + "fields: {a/b.c: {images: i}}}\n",
			"2:98: channels[0].fields.a/b.c.images: is not a field; the fields are aspect_ratio, audio, ",
		},
		{
			"field's key", hosting + "fields: {a/b.c: {image: {nam: i}}}}\n",
			"2:106: channels[0].fields.a/b.c.image.nam: unknown key; known here are as, name",
		},
		{
			"field's form", hosting + "fields: {a: {seconds: {name: d, as: list}}}}\n",
			`channels[0].fields.a.seconds: "list" is not a form of this field; the forms are ["number" "text" "unit"]`,
		},
		{
			"field's one form", hosting + "fields: {a: {aspect_ratio: {as: text}}}}\n",
			`channels[0].fields.a.aspect_ratio: has only one form: omit "as"`,
		},
		{"field without a name", hosting + "fields: {a: {prompt: }}}\n", "channels[0].fields.a.prompt: requires a name: each model has a prompt"},
		{"fields of one name", hosting + "fields: {a: {image: x, last_image: x}}}\n", "channels[0].fields.a.last_image: has the name of image; "},
		{"field of another type", hosting + "fields: {a: {image: [x]}}}\n", "channels[0].fields.a.image: must be keys and values, not a list"},
		{"trait", channel + "traits: {m: [reason]}}\n", "channels[0].traits.m[0]: \"reason\" is not a trait; the traits are adaptive, "},
		{"no group", channel + "groups: []}\n", "channels[0].groups: must contain at least one group"},
		{"empty group", channel + "groups: [\"\"]}\n", "channels[0].groups[0]: is empty"},
		{"lane", "tokens: [{name: a, key: b, lane: fast}]\n", "tokens[0].lane: \"fast\" is unknown; known are high, normal, low"},
		{"weight", channel + "weight: -1}\n", "channels[0].weight: is negative"},
		{"max_jobs", channel + "max_jobs: -1}\n", "channels[0].max_jobs: is negative"},
		{
			"channel twice", channel + "}\n" + strings.TrimPrefix(channel, "channels:\n") + "}\n",
			"3:6: channels[1].name: is the same as channels[0].name",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := parse(test.text)
			var configErr *config.Error
			if !errors.As(err, &configErr) {
				t.Fatalf("error %v, want a Error", err)
			}
			got := err.Error()
			if len(configErr.Problems) != 1 || !strings.Contains(got, test.want) {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if configErr.Problems[0].Line == 0 || !strings.HasPrefix(got, fmt.Sprintf("gateway.yaml:%d:", configErr.Problems[0].Line)) {
				t.Errorf("no place in %q", got)
			}
			if strings.Contains(got, "hidden") || strings.Contains(got, "admin-secret") {
				t.Errorf("a secret stands in %q", got)
			}
		})
	}
}

func TestEveryProblemAtOnce(t *testing.T) {
	t.Parallel()
	_, err := parse("listn: x\nrelay: {grace: 3, max_attempts: a}\nadmin_key: ${NOT_SET}\n")
	var configErr *config.Error
	if !errors.As(err, &configErr) || len(configErr.Problems) != 4 {
		t.Errorf("got %v, want four problems", err)
	}
}

func TestExpansion(t *testing.T) {
	t.Parallel()
	got, err := parse(`
listen: "127.0.0.1:${NUMBER}"
admin_key: a-${ADMIN}-$${ADMIN}-$5
video: {presigned_urls: "${YES}", default_model: "${INJECT}"}
relay:
  max_attempts: ${NUMBER}
  grace: ${WAIT}
  realtime_model: ${EMPTY}
  moderation_model: ${LEADING}
`)
	if err != nil {
		t.Fatal(err)
	}
	inject, _ := testEnv("INJECT")
	for _, check := range []struct{ name, got, want any }{
		{"listen", got.Listen, "127.0.0.1:7"},
		{"admin_key", got.AdminKey.Reveal(), "a-admin-secret-${ADMIN}-$5"},
		{"presigned_urls", got.Video.PresignedURLs, true},
		{"a value that looks like YAML stays text", got.Video.DefaultModel, inject},
		{"max_attempts", got.Relay.MaxAttempts, 7},
		{"grace", got.Relay.Grace, 5 * time.Second},
		{"empty", got.Relay.RealtimeModel, ""},
		{"a number-like text keeps its zeros", got.Relay.ModerationModel, "0012e3"},
	} {
		if check.got != check.want {
			t.Errorf("%s: got %v, want %v", check.name, check.got, check.want)
		}
	}
}

func TestScalarsKeepTheirText(t *testing.T) {
	t.Parallel()
	got, err := parse("tokens:\n- name: 0012\n  key: 1e3\n  group: true\n  models: [0x10, on, 1.50]\n  expires: 2027-01-31\n" +
		"- {name: b, key: l, expires: \"2027-01-31T10:00:00+02:00\"}\n")
	if err != nil {
		t.Fatal(err)
	}
	want := config.Token{Key: "1e3", Token: tokens.Token{
		Name: "0012", Group: "true", Models: []string{"0x10", "on", "1.50"}, Weight: 1, Lane: "normal",
		Expires: time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC),
	}}
	if !reflect.DeepEqual(got.Tokens[0], want) {
		t.Errorf("got %#v, want %#v", got.Tokens[0], want)
	}
	if want := time.Date(2027, 1, 31, 8, 0, 0, 0, time.UTC); !got.Tokens[1].Expires.Equal(want) {
		t.Errorf("expires %v, want %v", got.Tokens[1].Expires, want)
	}
}

// TestNamesWithColons: they are whole, with quotes and without.
func TestNamesWithColons(t *testing.T) {
	t.Parallel()
	for _, models := range []string{
		"{m: , org/llama:70b: , a:b: c:d}", "{\"org/llama:70b\": , 'a:b': c:d, m: }", "{\"org/llama:70b\":, \"a:b\":c:d, m:}",
		"\n      org/llama:70b:\n      a:b: c:d\n      m:",
		"\n      \"org/llama:70b\": \"\"\n      a:b:\n        c:d\n      m: ",
	} {
		got, err := parse("channels:\n  - name: a\n    vendor: openai\n    base_url: http://u.test\n    keys: [k]\n    models: " + models + "\n")
		if err != nil {
			t.Errorf("%s: %v", models, err)
			continue
		}
		if want := map[string]string{"org/llama:70b": "", "a:b": "c:d", "m": ""}; !reflect.DeepEqual(got.Channels[0].Models, want) {
			t.Errorf("%s: got %v, want %v", models, got.Channels[0].Models, want)
		}
	}
}

func TestAnchors(t *testing.T) {
	t.Parallel()
	got, err := parse(`
channels:
  - &base
    name: a
    vendor: openai
    base_url: &url http://u.test
    keys: [k]
    models: {m: }
    weight: 5
  - name: b
    <<: *base
    base_url: *url
    priority: 2
`)
	if err != nil {
		t.Fatal(err)
	}
	want := got.Channels[0]
	want.Name, want.Priority = "b", 2
	if len(got.Channels) != 2 || !reflect.DeepEqual(got.Channels[1], want) {
		t.Errorf("got %+v, want %+v", got.Channels, want)
	}
}

func TestSecretsDoNotPrint(t *testing.T) {
	t.Parallel()
	cfg, err := parse(strings.Replace(fullConfig, "redis://127.0.0.1", "redis://:hidden@127.0.0.1", 1))
	if err != nil {
		t.Fatal(err)
	}
	printed := fmt.Sprintf("%v %+v %#v", cfg, cfg, cfg)
	for _, secret := range []string{"admin-secret", "sk-demo", "sk-upstream", "hidden"} {
		if strings.Contains(printed, secret) {
			t.Errorf("%s is printed", secret)
		}
	}
}

func TestMissingFile(t *testing.T) {
	t.Parallel()
	_, _, err := config.Load(filepath.Join(t.TempDir(), "none.yaml"), testEnv, testVendors())
	var configErr *config.Error
	if !errors.As(err, &configErr) || !strings.Contains(err.Error(), "none.yaml: cannot be read: no such file") {
		t.Errorf("got %v", err)
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text string
		want config.Size
		back string
	}{
		{"0", 0, "0"},
		{"1000", 1000, "1000"},
		{"64MiB", 64 << 20, "64MiB"},
		{"2GiB", 2 << 30, "2GiB"},
		{"1.5KiB", 1536, "1536"},
		{"1KB", 1000, "1000"},
		{"1 TiB", 1 << 40, "1TiB"},
	} {
		var got config.Size
		if err := got.UnmarshalText([]byte(test.text)); err != nil || got != test.want || got.String() != test.back {
			t.Errorf("%s: %d (%s), %v; want %d (%s)", test.text, got, got, err, test.want, test.back)
		}
	}
}

// TestEveryKeyIsDocumented looks for keys without words and for values that a default cannot hold.
func TestEveryKeyIsDocumented(t *testing.T) {
	t.Parallel()
	keys := config.Keys()
	for _, key := range keys {
		if key.Doc == "" || strings.Contains(key.Doc, "|") || strings.HasSuffix(key.Path, ".") {
			t.Errorf("key %q: doc %q", key.Path, key.Doc)
		}
	}
	// Every key that fullConfig sets is listed, and nothing else.
	for _, want := range []string{
		"admin_key", "video.max_output_bytes", "tokens[].lane", "prices.<name>.cached_input",
		"channels[].max_jobs",
	} {
		if !slices.ContainsFunc(keys, func(key config.Key) bool { return key.Path == want }) {
			t.Errorf("key %s is not in the table", want)
		}
	}
}

// FuzzParseConfig looks for text on which reading panics or hangs, and for valid files that are not stable.
func FuzzParseConfig(f *testing.F) {
	f.Add(fullConfig)
	f.Add("a: &a [*a]\n")
	f.Add("channels: &c [{<<: *c}]\n")
	f.Add("? a\n: b\n")
	f.Add("relay: {grace: 1s\n")
	f.Add("\u0085admin_key: # *a\rlisten: *b\n")
	f.Add("admin_key: *a\rlisten: *b\n? [*c]\n: *d")
	f.Add("prices: {[a]: {input: 1}, ~: , ? {}}\n")
	f.Add("tokens:\n- key: |\n    x\n  name: >-\n   a b\n")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 {
			t.Skip("long texts only repeat")
		}
		cfg, err := parse(text)
		if err == nil {
			if problems := cfg.Validate(testVendors()); len(problems) > 0 {
				t.Errorf("accepted, yet %v", problems)
			}
			return
		}
		var configErr *config.Error
		if !errors.As(err, &configErr) || len(configErr.Problems) == 0 {
			t.Errorf("error %v is no Error", err)
		}
	})
}
