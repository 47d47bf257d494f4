package router_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/health"
	"modelrelay/providers/router"
)

func TestPick(t *testing.T) {
	t.Parallel()
	models := func(m map[string]string) func(*providers.Channel) {
		return func(c *providers.Channel) { c.Models = m }
	}
	channels := []providers.Channel{
		channel("low", "talks", func(c *providers.Channel) { c.Priority = -1 }),
		channel("high", "both", func(c *providers.Channel) { c.Priority = 5 }, models(map[string]string{"m": "up-m", "mine": "theirs"})),
		channel("off", "both", func(c *providers.Channel) { c.Priority, c.Disabled = 9, true }, models(map[string]string{"m": "", "hidden": ""})),
		channel("open", "talks", models(map[string]string{providers.AnyModel: "", "renamed": "other"})),
		channel("vip", "talks", func(c *providers.Channel) { c.Groups = []string{"vip"} }, models(map[string]string{"m": "", "secret": ""})),
		channel("film", "films", models(map[string]string{"clip": "", "m": ""})),
		channel("alien", "unknown", models(map[string]string{"lost": ""}), func(c *providers.Channel) { c.Groups = []string{"vip"} }),
	}
	routes := router.New(vendors(), channels, nil)
	for _, tc := range []struct {
		name    string
		want    router.Request
		channel string
		model   string
		kind    providers.Kind
	}{
		{name: "higher priority first, mapped", want: router.Request{Model: "m", Endpoint: chat}, channel: "high", model: "up-m"},
		{
			name: "the next priority when the first was tried", want: router.Request{Model: "m", Endpoint: chat, Exclude: []string{"high"}},
			channel: "open", model: "m",
		},
		{
			name: "the next when its only key was tried", want: router.Request{
				Model: "m", Endpoint: chat, Exclude: []string{"open"},
				ExcludeKeys: []providers.KeyRef{{Channel: "high", Fingerprint: providers.Secret("key-high").Fingerprint()}},
			}, channel: "low", model: "m",
		},
		{
			name: "all tried", want: router.Request{Model: "m", Endpoint: chat, Exclude: []string{"high", "open", "low"}},
			kind: providers.Overloaded,
		},
		{name: "only vendors that serve the endpoint", want: router.Request{Model: "m", Endpoint: embed}, channel: "high", model: "up-m"},
		{name: "no channel serves the endpoint", want: router.Request{Model: "renamed", Endpoint: embed}, kind: providers.ModelNotFound},
		{
			name: "video needs an adapter", want: router.Request{Model: "m", Endpoint: video, Exclude: []string{"high"}}, channel: "film",
			model: "m",
		},
		{name: "a film vendor relays nothing", want: router.Request{Model: "clip", Endpoint: chat}, channel: "open", model: "clip"},
		{
			name: "any name through the open channel", want: router.Request{Model: "whatever-7", Endpoint: chat}, channel: "open",
			model: "whatever-7",
		},
		{
			name: "an open channel still maps what it lists", want: router.Request{Model: "renamed", Endpoint: chat}, channel: "open",
			model: "other",
		},
		{
			name: "the star is no model's name by itself", want: router.Request{Model: providers.AnyModel, Endpoint: embed},
			kind: providers.ModelNotFound,
		},
		{name: "another group's model", want: router.Request{Group: "vip", Model: "mine", Endpoint: chat}, kind: providers.ModelNotFound},
		{name: "another group", want: router.Request{Group: "vip", Model: "m", Endpoint: chat}, channel: "vip", model: "m"},
		{name: "no such group", want: router.Request{Group: "unknown", Model: "m", Endpoint: chat}, kind: providers.ModelNotFound},
		{name: "a vendor outside the catalog", want: router.Request{Group: "vip", Model: "lost", Endpoint: chat}, kind: providers.ModelNotFound},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if tc.want.Group == "" {
				tc.want.Group = "default"
			}
			got, err := routes.Pick(tc.want)
			if tc.kind != "" {
				fault := wantKind(t, err, tc.kind)
				if !strings.Contains(fault.Message, `"`+tc.want.Model+`"`) {
					t.Errorf("message %q does not name the model %q", fault.Message, tc.want.Model)
				}
				return
			}
			if err != nil {
				t.Fatalf("Pick: %v", err)
			}
			if got.Channel.Name != tc.channel || got.Model != tc.model || got.Key != got.Channel.Keys[0] {
				t.Errorf("got channel %s, model %s, want %s, %s", got.Channel.Name, got.Model, tc.channel, tc.model)
			}
		})
	}
}

func TestPickShares(t *testing.T) {
	t.Parallel()
	weight := func(n int) func(*providers.Channel) { return func(c *providers.Channel) { c.Weight = n } }
	routes := router.New(vendors(), []providers.Channel{
		channel("a", "talks", weight(0)), channel("b", "talks", weight(2)), channel("c", "talks", weight(5)),
	}, nil)
	const picks = 16000
	got := make(map[string]int)
	for range picks {
		to, err := routes.Pick(router.Request{Group: "default", Model: "m", Endpoint: chat})
		if err != nil {
			t.Fatal(err)
		}
		got[to.Channel.Name]++
	}
	// The standard deviation of the largest share is below 64 picks; ten times that never happens by chance.
	for name, want := range map[string]int{"a": picks / 8, "b": picks / 4, "c": picks * 5 / 8} {
		if diff := got[name] - want; diff < -640 || diff > 640 {
			t.Errorf("channel %s: got %d of %d picks, want about %d", name, got[name], picks, want)
		}
	}
}

func TestKeysTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		routes := router.New(vendors(), []providers.Channel{
			channel("a", "talks", func(c *providers.Channel) { c.Keys = []providers.Secret{"k0", "k1", "k2"} }),
		}, nil)
		want := router.Request{Group: "default", Model: "m", Endpoint: chat}
		turn := func(n int) string {
			var keys []string
			for range n {
				to, err := routes.Pick(want)
				if err != nil {
					t.Fatal(err)
				}
				keys = append(keys, to.Key.Reveal())
			}
			return strings.Join(keys, " ")
		}
		if got := turn(4); got != "k0 k1 k2 k0" {
			t.Errorf("got keys %s", got)
		}
		to, _ := routes.Pick(want) // k1
		routes.Report(to, &providers.Fault{Kind: providers.Upstream, Blame: providers.BlameKey, KeyNamed: true})
		if got := turn(4); strings.Contains(got, "k1") || !strings.Contains(got, "k0") || !strings.Contains(got, "k2") {
			t.Errorf("got keys %s while k1 cools down", got)
		}
		want.ExcludeKeys = []providers.KeyRef{{Channel: "a", Fingerprint: providers.Secret("k0").Fingerprint()}}
		if got := turn(2); got != "k2 k2" {
			t.Errorf("got keys %s, want only k2", got)
		}
		want.ExcludeKeys = append(want.ExcludeKeys, providers.KeyRef{Channel: "a", Fingerprint: providers.Secret("k2").Fingerprint()})
		_, err := routes.Pick(want)
		if fault := wantKind(t, err, providers.Overloaded); fault.RetryAfter != health.DefaultCooldown {
			t.Errorf("got RetryAfter %s, want that of the key that cools down", fault.RetryAfter)
		}
		pass(health.DefaultCooldown)
		want.ExcludeKeys = nil
		if got := turn(3); !strings.Contains(got, "k1") {
			t.Errorf("got keys %s, want k1 back after its cooldown", got)
		}
	})
}

func TestPickShortestCooldown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		routes := router.New(vendors(), []providers.Channel{channel("a", "talks"), channel("b", "both")}, nil)
		want := router.Request{Group: "default", Model: "m", Endpoint: chat}
		for _, after := range []time.Duration{50 * time.Second, 20 * time.Second} {
			to, err := routes.Pick(want)
			if err != nil {
				t.Fatal(err)
			}
			routes.Report(to, limited(func(fault *providers.Fault) { fault.RetryAfter = after }))
		}
		pass(5 * time.Second)
		_, err := routes.Pick(want)
		if fault := wantKind(t, err, providers.Overloaded); fault.RetryAfter != 15*time.Second {
			t.Errorf("got RetryAfter %s, want 15s", fault.RetryAfter)
		}
	})
}

func TestModels(t *testing.T) {
	t.Parallel()
	routes := router.New(vendors(), []providers.Channel{
		channel("a", "films", func(c *providers.Channel) { c.Models = map[string]string{"z": "", "m": "x"} }),
		channel("b", "both", func(c *providers.Channel) { c.Priority = 1 }),
		channel("c", "talks", func(c *providers.Channel) { c.Models = map[string]string{providers.AnyModel: ""} }),
		channel("d", "talks", func(c *providers.Channel) { c.Models, c.Disabled = map[string]string{"off": ""}, true }),
		channel("e", "unknown", func(c *providers.Channel) { c.Models, c.Groups = map[string]string{"lost": ""}, []string{"vip"} }),
	}, nil)
	var got []string
	for _, model := range routes.Models("default") {
		got = append(got, model.ID+" "+model.Vendor)
	}
	if want := []string{"m both", "z films"}; !slices.Equal(got, want) {
		t.Errorf("got models %q, want %q", got, want)
	}
	anyVideo := providers.Endpoint{Operation: providers.VideoTask}
	if got, want := routes.Models("default")[0].Endpoints, []providers.Endpoint{anyVideo, chat, embed}; !slices.Equal(got, want) {
		t.Errorf("got endpoints %v, want %v", got, want)
	}
	if got := routes.Models("vip"); len(got) != 0 {
		t.Errorf("got models %v of a vendor outside the catalog", got)
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	routes := router.New(vendors(), []providers.Channel{
		channel("a", "films", func(c *providers.Channel) {
			c.Disabled, c.Keys, c.Models = true, []providers.Secret{"k0", "k1"}, map[string]string{"m": "up-m"}
		}),
	}, nil)
	key := providers.Secret("k1")
	got, err := routes.Resolve("a", key.Fingerprint(), "m")
	if err != nil || got.Key != key || got.Model != "up-m" || got.Channel.Name != "a" {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := routes.Resolve("a", key.Fingerprint(), "unmapped"); err != nil || got.Model != "unmapped" {
		t.Errorf("got model %q, %v, want the public name", got.Model, err)
	}
	for _, at := range [][2]string{{"b", key.Fingerprint()}, {"a", providers.Secret("k9").Fingerprint()}, {"a", ""}} {
		if _, err := routes.Resolve(at[0], at[1], "m"); !errors.Is(err, router.ErrChannelGone) {
			t.Errorf("Resolve(%q, %q): got %v, want ErrChannelGone", at[0], at[1], err)
		}
	}
}

// TestRouterRace mixes everything; the race detector is the judge.
func TestRouterRace(t *testing.T) {
	t.Parallel()
	configured := []providers.Channel{
		channel("a", "talks"), channel("b", "both"),
		channel("c", "both", func(c *providers.Channel) { c.Keys = []providers.Secret{"x", "y"} }),
	}
	routes := router.New(vendors(), configured, &router.Options{Health: health.NewMonitor(vendors(),
		&health.Options{Cooldown: time.Microsecond})})
	faults := []*providers.Fault{
		nil,
		{Kind: providers.Upstream, Blame: providers.BlameKey},
		{Kind: providers.Upstream, Blame: providers.BlameChannel},
		nil,
	}
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := range 500 {
				if to, err := routes.Pick(router.Request{Group: "default", Model: "m", Endpoint: chat}); err == nil {
					routes.Report(to, faults[(n+i)%len(faults)])
				}
				if n%50 == 0 {
					routes.Load(configured[n/50%2:], nil)
					routes.Models("default")
				}
			}
		})
	}
	all.Wait()
}

func BenchmarkPick(b *testing.B) {
	var channels []providers.Channel
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		channels = append(channels, channel(name, "both", func(c *providers.Channel) { c.Keys = []providers.Secret{"k0", "k1"} }))
	}
	routes := router.New(vendors(), channels, nil)
	want := router.Request{Group: "default", Model: "m", Endpoint: embed}
	b.ReportAllocs()
	for b.Loop() {
		to, err := routes.Pick(want)
		if err != nil {
			b.Fatal(err)
		}
		routes.Report(to, nil)
	}
}

func TestCandidates(t *testing.T) {
	t.Parallel()
	routes := router.New(vendors(), []providers.Channel{
		channel("light", "films"),
		channel("heavy", "films", func(c *providers.Channel) { c.Weight, c.MaxJobs = 3, 20 }),
		channel("best", "both", func(c *providers.Channel) { c.Priority = 1 }),
		channel("talk", "talks", func(c *providers.Channel) { c.Priority = 2 }),
		channel("off", "films", func(c *providers.Channel) { c.Disabled = true }),
	}, nil)
	want := router.Request{Group: "default", Model: "m", Endpoint: video}
	const rounds = 2000
	heavyFirst := 0
	for range rounds {
		got, err := routes.Candidates(want)
		if err != nil || len(got) != 3 || got[0].Name != "best" {
			t.Fatalf("got %v, %v", got, err)
		}
		if got[1].Name == "heavy" {
			heavyFirst++
			if got[1].MaxJobs != 20 {
				t.Errorf("got %d jobs", got[1].MaxJobs)
			}
		}
	}
	if heavyFirst < rounds*70/100 || heavyFirst > rounds*80/100 {
		t.Errorf("the heavy channel came before the light one %d times of %d, want three of four", heavyFirst, rounds)
	}

	want.Only = []string{"heavy"}
	target, err := routes.Pick(want)
	if err != nil || target.Channel.Name != "heavy" {
		t.Fatalf("got %+v, %v", target, err)
	}
	routes.Report(target, limited(func(fault *providers.Fault) { fault.RetryAfter = time.Minute }))
	_, err = routes.Pick(want)
	if fault := wantKind(t, err, providers.Overloaded); fault.RetryAfter <= 0 {
		t.Errorf("got %+v", fault)
	}
	_, err = routes.Candidates(want)
	_ = wantKind(t, err, providers.Overloaded)
	want.Only = nil
	if got, err := routes.Candidates(want); err != nil || len(got) != 2 || got[1].Name != "light" {
		t.Errorf("got %v, %v, want those that do not cool down", got, err)
	}
	want.Model = "unheard-of"
	_, err = routes.Candidates(want)
	_ = wantKind(t, err, providers.ModelNotFound)
}
