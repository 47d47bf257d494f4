package health_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/health"
	"modelrelay/providers/router"
)

// TestModelCooldown: a key that has reached its limit for one model serves the others, in this process and in other ones.
func TestModelCooldown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		channels := []providers.Channel{
			channel("best", "talks", func(c *providers.Channel) {
				c.Priority, c.Models = 1, map[string]string{"big": "upstream-big", "alias": "upstream-big", "small": ""}
			}),
			channel("spare", "talks", func(c *providers.Channel) { c.Models = map[string]string{"*": ""} }),
		}
		there := router.New(vendors(), channels, nil)
		var published []health.Event
		here := withMonitor(channels, &health.Options{Publish: func(e health.Event) {
			published = append(published, e)
			there.Health.Learn(e)
		}})
		wants := func(routes *router.Router, big, alias, small string) {
			t.Helper()
			got := fmt.Sprint(pickOf(t, routes, ofModel("big")).Channel.Name, pickOf(t, routes, ofModel("alias")).Channel.Name,
				pickOf(t, routes, ofModel("small")).Channel.Name)
			if want := fmt.Sprint(big, alias, small); got != want {
				t.Fatalf("big, alias and small: got %s, want %s", got, want)
			}
		}
		wants(here, "best", "best", "best")
		here.Report(pickOf(t, here, ofModel("big")), limited(func(fault *providers.Fault) {
			fault.Key, fault.KeyNamed, fault.RetryAfter = providers.KeyExhausted, true, 10*time.Minute
		}))
		wants(here, "spare", "spare", "best")
		wants(there, "spare", "spare", "best")
		here.Report(pickOf(t, here, ofModel("small")), nil) // proves nothing for the other model
		wants(here, "spare", "spare", "best")

		state := health.MergeStates(here.Health.States(), there.Health.States())[0]
		key := state.Keys[0]
		if state.State != health.StateClosed || key.State != health.StateClosed || key.LastFault == nil || len(key.Models) != 1 ||
			key.Models[0] != (health.ModelState{
				Model:        "upstream-big",
				CircuitState: health.CircuitState{State: health.StateOpen, CooldownLeft: 600},
			}) {
			t.Errorf("got %+v", state)
		}

		here.Load(channels, nil) // a reload forgets nothing
		wants(here, "spare", "spare", "best")
		pass(10 * time.Minute)
		probe := pickOf(t, here, ofModel("alias"))
		if probe.Channel.Name != "best" {
			t.Fatalf("after the cooldown the probe goes to %s", probe.Channel.Name)
		}
		wants(here, "spare", "spare", "best")
		here.Report(probe, nil)
		wants(here, "best", "best", "best")
		wants(there, "best", "best", "best")
		if len(published) != 2 || published[0].Model != "upstream-big" || published[0].Key == "" || published[1].Model != "upstream-big" ||
			published[1].Remaining != 0 {
			t.Errorf("published %+v", published)
		}
		if models := here.Health.States()[0].Keys[0].Models; len(models) != 0 {
			t.Errorf("got models %+v after the success", models)
		}
	})
}

// TestCooldownOfAKeyOrItsModel: the kind of a key's fault decides whether the key or only its model cools down, and how long.
func TestCooldownOfAKeyOrItsModel(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault    *providers.Fault
		other    bool // another model may still use the key
		cooldown time.Duration
	}{
		"over its rate":      {limited(func(f *providers.Fault) { f.RetryAfter = time.Minute }), true, time.Minute},
		"over a day's quota": {limited(func(f *providers.Fault) { f.Key, f.KeyNamed = providers.KeyExhausted, true }), true, 5 * time.Minute},
		"out of money": {
			&providers.Fault{Kind: providers.Upstream, Blame: providers.BlameKey, Key: providers.KeyExhausted, KeyNamed: true},
			false, 5 * time.Minute,
		},
		"refused": {
			&providers.Fault{Kind: providers.Upstream, Blame: providers.BlameKey, Key: providers.KeyRefused, KeyNamed: true},
			false, health.DefaultCooldown,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				routes := router.New(vendors(), []providers.Channel{
					channel("a", "talks", func(c *providers.Channel) { c.Models = map[string]string{"*": ""} }),
				}, nil)
				routes.Report(pickOf(t, routes), tc.fault)
				_, err := routes.Pick(router.Request{Group: "default", Model: "m", Endpoint: chat})
				if fault := wantKind(t, err, providers.Overloaded); fault.RetryAfter != tc.cooldown {
					t.Errorf("cools down for %s, want %s", fault.RetryAfter, tc.cooldown)
				}
				if _, err := routes.Pick(router.Request{Group: "default", Model: "n", Endpoint: chat}); (err == nil) != tc.other {
					t.Errorf("another model: got %v", err)
				}
			})
		})
	}
}

// TestCooldownsOfManyModels: a key has at most 64 models in cooldown. Those whose cooldown ends first are removed, and the key
// serves other models.
func TestCooldownsOfManyModels(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		routes := router.New(vendors(), []providers.Channel{
			channel("a", "talks", func(c *providers.Channel) { c.Models = map[string]string{"*": ""} }),
		}, nil)
		for i := range 70 {
			fault := limited(func(f *providers.Fault) {
				f.Key, f.KeyNamed, f.RetryAfter = providers.KeyExhausted, true, time.Duration(i+1)*time.Hour
			})
			routes.Report(pickOf(t, routes, ofModel(fmt.Sprint("made-up-", i))), fault)
		}
		if got := len(routes.Health.States()[0].Keys[0].Models); got != 64 {
			t.Errorf("got %d models", got)
		}
		_, err := routes.Pick(router.Request{Group: "default", Model: "made-up-69", Endpoint: chat})
		_ = wantKind(t, err, providers.Overloaded)
		pickOf(t, routes)
	})
}
