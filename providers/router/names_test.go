package router_test

import (
	"slices"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/router"
)

// TestNames: a model's own name comes before the patterns that it fits, a channel's longest pattern before its others, and an
// alias before all.
func TestNames(t *testing.T) {
	t.Parallel()
	models := func(models map[string]string) func(*providers.Channel) {
		return func(c *providers.Channel) { c.Models = models }
	}
	routes := router.New(vendors(), []providers.Channel{
		channel("small", "talks", models(map[string]string{"haiku-*": "", "haiku-4-*-fast": "quick-*", "exact": "theirs"})),
		channel("open", "talks", models(map[string]string{providers.AnyModel: ""}), func(c *providers.Channel) { c.Priority = -1 }),
		channel("other", "talks", models(map[string]string{"haiku-*": "never"}), func(c *providers.Channel) { c.Groups = []string{"vip"} }),
	}, &router.Options{Aliases: map[string]string{"small": "haiku-4", "renamed": "exact"}})
	for _, tc := range []struct{ asked, channel, upstream string }{
		{"exact", "small", "theirs"},
		{"renamed", "small", "theirs"},
		{"haiku-4-5", "small", "haiku-4-5"},
		{"small", "small", "haiku-4"},
		{"haiku-4-5-fast", "small", "quick-5"},
		{"haiku-4--fast", "small", "quick-"},
		{"haiku", "open", "haiku"},
		{"org/haiku-4", "open", "org/haiku-4"},
	} {
		want := router.Request{Group: "default", Model: routes.Public(tc.asked), Endpoint: chat}
		to, err := routes.Pick(want)
		if err != nil || to.Channel.Name != tc.channel || to.Model != tc.upstream {
			t.Errorf("%s: got %s %s, %v, want %s %s", tc.asked, to.Channel.Name, to.Model, err, tc.channel, tc.upstream)
		}
		want.Exclude = []string{tc.channel}
		if to, err := routes.Pick(want); tc.channel == "small" && tc.upstream != "theirs" && (err != nil || to.Channel.Name != "open") {
			t.Errorf("%s: got %s, %v behind the first", tc.asked, to.Channel.Name, err)
		}
	}
	var listed []string
	for _, model := range routes.Models("default") {
		listed = append(listed, model.ID+"="+model.Public)
	}
	if want := []string{"exact=exact", "haiku-4=haiku-4", "renamed=exact", "small=haiku-4"}; !slices.Equal(listed, want) {
		t.Errorf("got models %v, want %v", listed, want)
	}
	_, err := routes.Pick(router.Request{Group: "vip", Model: "exact", Alias: "renamed", Endpoint: chat})
	if fault := wantKind(t, err, providers.ModelNotFound); fault.Message != `The model "renamed" does not exist, or you do not have access to it.` {
		t.Errorf("got %q, want the name that was asked for", fault.Message)
	}
	routes.Load([]providers.Channel{channel("a", "talks")}, map[string]string{"renamed": "m"})
	if got := routes.Public("renamed") + routes.Public("small"); got != "msmall" {
		t.Errorf("got %s after a reload", got)
	}
}

// messages is an endpoint that the vendor "writes" has, and whose calls can be made at chat.
var messages = providers.Endpoint{Format: providers.Anthropic, Operation: providers.Messages}

// translating are vendors of two formats, and a router's option that makes either reach the other.
func translating() (providers.Catalog, *router.Options) {
	catalog := vendors()
	talks := catalog["talks"]
	talks.Takes = []providers.Endpoint{chat}
	catalog["talks"] = talks
	catalog["writes"] = providers.Vendor{
		Name: "writes", Relay: noRelay{}, Endpoints: []providers.Endpoint{messages}, Takes: []providers.Endpoint{messages},
	}
	return catalog, &router.Options{Reaches: func(from, to providers.Endpoint) bool {
		return from == chat && to == messages || from == messages && to == chat
	}}
}

// TestNativeFirst: within a priority, a channel of another format is picked only after all native ones. A higher priority comes
// first. A channel that cools down comes last.
func TestNativeFirst(t *testing.T) {
	t.Parallel()
	catalog, options := translating()
	priority := func(n int) func(*providers.Channel) { return func(c *providers.Channel) { c.Priority = n } }
	routes := router.New(catalog, []providers.Channel{
		channel("low", "talks"), channel("foreign", "writes", priority(1)), channel("native", "talks", priority(1)),
		channel("heavy", "writes", priority(1), func(c *providers.Channel) { c.Weight = 1000 }), channel("top", "writes", priority(2)),
		channel("closed", "writes", priority(3), func(c *providers.Channel) { c.NativeOnly = true }),
	}, options)
	for _, affinity := range []uint64{0, 1, 2, 3} {
		want := router.Request{Group: "default", Model: "m", Endpoint: chat, Affinity: affinity}
		var got []string
		for range 5 {
			to, err := routes.Pick(want)
			if err != nil {
				t.Fatal(err)
			}
			if native := to.Channel.Vendor == "talks"; to.Translated == native {
				t.Errorf("%s: translated: %v", to.Channel.Name, to.Translated)
			}
			got = append(got, to.Channel.Name)
			want.Exclude = append(want.Exclude, to.Channel.Name)
		}
		slices.Sort(got[2:4]) // by weight, or by the affinity
		if want := []string{"top", "native", "foreign", "heavy", "low"}; !slices.Equal(got, want) {
			t.Errorf("affinity %d: got %v, want %v", affinity, got, want)
		}
	}

	want := router.Request{Group: "default", Model: "m", Endpoint: chat, Exclude: []string{"top"}}
	for _, token := range []string{"a", "b", "c"} {
		for range 5 {
			to, err := routes.Pick(router.Request{Group: "default", Model: "m", Endpoint: chat, Only: []string{"native"}, Token: token})
			if err != nil {
				continue
			}
			routes.Report(to, &providers.Fault{Kind: providers.Upstream, Blame: providers.BlameChannel})
		}
	}
	if to, err := routes.Pick(want); err != nil || !to.Translated || to.Channel.Priority != 1 {
		t.Errorf("got %s, %v, want a translated channel while the native one cools down", to.Channel.Name, err)
	}

	continued := router.Request{
		Group: "default", Model: "m", Endpoint: chat,
		Origin: providers.KeyRef{Channel: "foreign", Fingerprint: providers.Secret("key-foreign").Fingerprint()},
	}
	if to, err := routes.Pick(continued); err != nil || to.Channel.Name == "foreign" {
		t.Errorf("got %s, %v: a call must not continue at a translated channel", to.Channel.Name, err)
	}
	endpoints := routes.Models("default")[0].Endpoints
	if !slices.Contains(endpoints, chat) || !slices.Contains(endpoints, messages) {
		t.Errorf("got endpoints %v, want both formats", endpoints)
	}
}

// TestDialect: a channel that lacks one of OpenAI's APIs for chats serves it natively no more.
func TestDialect(t *testing.T) {
	t.Parallel()
	responses := providers.Endpoint{Format: providers.OpenAI, Operation: providers.Responses}
	compact := providers.Endpoint{Format: providers.OpenAI, Operation: providers.CompactResponse}
	catalog := providers.Catalog{"openai": {
		Name: "openai", Relay: noRelay{}, Endpoints: []providers.Endpoint{chat, responses, compact, embed},
		Takes: []providers.Endpoint{responses, chat},
	}}
	options := &router.Options{Reaches: func(from, to providers.Endpoint) bool { return from != to && from != compact && from != embed }}
	for dialect, want := range map[string]map[providers.Endpoint]string{
		"":                         {chat: "native", responses: "native", compact: "native", embed: "native"},
		providers.DialectBoth:      {chat: "native", responses: "native", compact: "native", embed: "native"},
		providers.DialectChat:      {chat: "native", responses: "translated", compact: "none", embed: "native"},
		providers.DialectResponses: {chat: "translated", responses: "native", compact: "native", embed: "native"},
	} {
		routes := router.New(catalog, []providers.Channel{channel("a", "openai", func(c *providers.Channel) { c.Dialect = dialect })}, options)
		for endpoint, way := range want {
			to, err := routes.Pick(router.Request{Group: "default", Model: "m", Endpoint: endpoint})
			got := "native"
			switch {
			case err != nil:
				got = "none"
			case to.Translated:
				got = "translated"
			}
			if got != way {
				t.Errorf("dialect %q, %s: got %s, want %s", dialect, endpoint, got, way)
			}
		}
	}
}
