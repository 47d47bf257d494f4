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

// TestProbeOfKey: the same for one key of a channel.
func TestProbeOfKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		routes := router.New(vendors(), []providers.Channel{
			channel("a", "talks", func(c *providers.Channel) { c.Keys = []providers.Secret{"k0", "k1"} }),
		}, nil)
		first := pickOf(t, routes)
		routes.Report(first, &providers.Fault{Kind: providers.RateLimited, Blame: providers.BlameKey, RetryAfter: time.Second})
		pass(time.Second)
		tried := 0
		for range 6 {
			if pickOf(t, routes).Key == first.Key {
				tried++
			}
		}
		if tried != 1 {
			t.Errorf("the rested key was tried %d times of 6, want once", tried)
		}
	})
}

func TestKeyRests(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		fault  providers.Fault
		length []time.Duration // of the cooldown after each failure
	}{
		{
			"busy",
			providers.Fault{Key: providers.KeyBusy, KeyNamed: true},
			[]time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 10 * time.Minute, 10 * time.Minute},
		},
		{"refused", providers.Fault{Key: providers.KeyRefused, KeyNamed: true}, []time.Duration{
			30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 32 * time.Minute, time.Hour,
			time.Hour,
		}},
		{
			"exhausted",
			providers.Fault{Key: providers.KeyExhausted, KeyNamed: true},
			[]time.Duration{5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 40 * time.Minute, time.Hour, time.Hour},
		},
		{
			"exhausted, with a short Retry-After",
			providers.Fault{Key: providers.KeyExhausted, KeyNamed: true, RetryAfter: 12 * time.Second},
			[]time.Duration{5 * time.Minute, 10 * time.Minute},
		},
		{
			"exhausted, with a long Retry-After",
			providers.Fault{Key: providers.KeyExhausted, KeyNamed: true, RetryAfter: 7 * time.Minute},
			[]time.Duration{7 * time.Minute, 10 * time.Minute},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				routes := router.New(vendors(), []providers.Channel{channel("a", "talks")}, nil)
				tc.fault.Kind, tc.fault.Blame = providers.Upstream, providers.BlameKey
				for i, want := range tc.length {
					routes.Report(pickOf(t, routes), &tc.fault)
					_, err := routes.Pick(router.Request{Group: "default", Model: "m", Endpoint: chat})
					got := wantKind(t, err, providers.Overloaded).RetryAfter
					if got != want {
						t.Fatalf("cooldown %d: got %s, want %s", i, got, want)
					}
					pass(got)
				}
			})
		})
	}
}

// TestPublishedCooldown: a process obeys the cooldowns of keys that another process publishes.
func TestPublishedCooldown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		configured := []providers.Channel{channel("a", "talks", func(c *providers.Channel) { c.Keys = []providers.Secret{"k0", "k1"} })}
		there := router.New(vendors(), configured, nil)
		published := 0
		here := withMonitor(configured, &health.Options{Publish: func(e health.Event) {
			published++
			there.Health.Learn(e)
		}})
		pass(time.Second)
		key := pickOf(t, here)
		here.Report(key, &providers.Fault{
			Kind: providers.Upstream, Blame: providers.BlameKey, Key: providers.KeyExhausted, KeyNamed: true, Code: "broke " + key.Key.Reveal(),
			Upstream: &providers.Reply{Status: 429},
		})
		for range 3 {
			if got := pickOf(t, there).Key; got == key.Key {
				t.Error("the other process uses the key that cools down")
			}
		}
		for _, e := range []health.Event{
			{Channel: "a", Upstream: "another", Key: key.Key.Fingerprint(), Remaining: time.Hour},
			{Channel: "none", Remaining: time.Hour},
			{Channel: "a", Key: "none", Remaining: time.Hour},
		} {
			there.Health.Learn(e)
		}
		pickOf(t, there)

		states := health.MergeStates(here.Health.States(), there.Health.States(), nil)
		text := fmt.Sprintf("%+v", states)
		if len(states) != 1 || states[0].Processes != 2 || states[0].State != health.StateClosed || states[0].CallsPerMinute == 0 {
			t.Errorf("got %s", text)
		}
		for _, state := range states[0].Keys {
			if (state.State == health.StateOpen) != (state.Fingerprint == key.Key.Fingerprint()) {
				t.Errorf("got key %+v", state)
			}
			if state.State == health.StateOpen &&
				(state.LastFault == nil || state.LastFault.Key != "exhausted" || state.LastFault.Status != 429 || state.LastFault.Code != "broke ***") {
				t.Errorf("got last fault %+v", state.LastFault)
			}
		}
		pass(10 * time.Minute)
		// The first call after the cooldown fails in the other process: the cooldown grows as if that process had started it.
		again := pickOf(t, there, func(want *router.Request) {
			for _, other := range configured[0].Keys {
				if other != key.Key {
					want.ExcludeKeys = append(want.ExcludeKeys, providers.KeyRef{Channel: "a", Fingerprint: other.Fingerprint()})
				}
			}
		})
		there.Report(again, &providers.Fault{Kind: providers.Upstream, Blame: providers.BlameKey, Key: providers.KeyExhausted, KeyNamed: true})
		for _, state := range there.Health.States()[0].Keys {
			if state.Fingerprint == key.Key.Fingerprint() && state.CooldownLeft != 600 {
				t.Errorf("got %+v, want the next cooldown to grow from the published one", state)
			}
		}
		pass(10 * time.Minute)
		here.Report(pickOf(t, here, func(want *router.Request) { want.Origin = key.Ref() }), nil)
		for _, state := range there.Health.States()[0].Keys {
			if state.State != health.StateClosed {
				t.Errorf("after a success here: got %+v there", state)
			}
		}
		if published != 2 {
			t.Errorf("published %d events, want a cooldown and its end", published)
		}
	})
}

func TestFigures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		routes := router.New(vendors(), []providers.Channel{
			channel("a", "talks"), channel("off", "talks", func(c *providers.Channel) { c.Disabled = true }),
		}, nil)
		wantFigures := func(inFlight, calls, faults int64) {
			t.Helper()
			states := routes.Health.States()
			a := states[0]
			if a.InFlight != inFlight || a.CallsPerMinute != calls || a.FaultsPerMinute != faults || states[1].State != health.StateDisabled {
				t.Errorf("got %+v, want %d in flight, %d calls, %d faults", states, inFlight, calls, faults)
			}
			if key := a.Keys[0]; key.InFlight != inFlight || key.CallsPerMinute != calls {
				t.Errorf("got key %+v", key)
			}
		}
		var first, second health.InFlight
		first.Begin(pickOf(t, routes).Attempt, nil)
		second.Begin(pickOf(t, routes).Attempt, nil)
		wantFigures(2, 0, 0)
		for range 4 {
			routes.Report(pickOf(t, routes), nil)
		}
		routes.Report(pickOf(t, routes), &providers.Fault{Kind: providers.Invalid})
		first.End()
		first.End()
		wantFigures(1, 5, 0)
		pass(30 * time.Second)
		routes.Report(pickOf(t, routes), &providers.Fault{Kind: providers.RateLimited, Blame: providers.BlameChannel})
		wantFigures(1, 6, 1)
		pass(40 * time.Second)
		wantFigures(1, 1, 1)
		pass(time.Hour)
		second.End()
		wantFigures(0, 0, 0)
		new(health.InFlight).End()
	})
}

// TestDescribedModelsAreBounded: of a channel with many models the description has the first ones by name.
func TestDescribedModelsAreBounded(t *testing.T) {
	t.Parallel()
	const bound = 500
	catalog, films := vendors(), vendors()["talks"]
	films.Video = struct{ providers.VideoAdapter }{}
	films.VideoModels = func(string) (providers.VideoModel, bool) { return providers.VideoModel{}, true }
	catalog["talks"] = films
	routes := router.New(catalog, []providers.Channel{channel("a", "talks", func(c *providers.Channel) {
		for i := range bound + 1 {
			c.Models[fmt.Sprintf("a%03d", i)] = ""
		}
	})}, &router.Options{Health: health.NewMonitor(catalog, nil)})
	states := routes.Health.States()
	routes.Health.Describe(states)
	if served := states[0].Served; len(served) != bound || served[bound-1] != "a499" {
		t.Errorf("served: %d models, the last %q", len(served), served[len(served)-1])
	}
	if videos := states[0].Videos; len(videos) != bound || videos[bound-1].Model != "a499" {
		t.Errorf("videos: %d models", len(videos))
	}
}
