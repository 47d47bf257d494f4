package health_test

import (
	"testing"
	"testing/synctest"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/health"
	"modelrelay/providers/router"
)

// TestCooldown: the cooldown of a key grows with each failed probe and starts anew after a success. Calls that began before it
// do not change it.
func TestCooldown(t *testing.T) {
	t.Parallel()
	refused := &providers.Fault{Kind: providers.Upstream, Blame: providers.BlameKey, Key: providers.KeyRefused, KeyNamed: true}
	synctest.Test(t, func(t *testing.T) {
		routes := withMonitor([]providers.Channel{channel("a", "talks")}, &health.Options{Cooldown: 10 * time.Second})
		want := router.Request{Group: "default", Model: "m", Endpoint: chat}
		pick := func() router.Pick {
			t.Helper()
			to, err := routes.Pick(want)
			if err != nil {
				t.Fatalf("Pick: %v", err)
			}
			return to
		}
		coolsFor := func(left time.Duration) {
			t.Helper()
			_, err := routes.Pick(want)
			if fault := wantKind(t, err, providers.Overloaded); fault.RetryAfter != left {
				t.Fatalf("got %s of the cooldown left, want %s", fault.RetryAfter, left)
			}
		}
		pass(time.Second)
		early, early2, early3 := pick(), pick(), pick()
		pass(time.Second)

		routes.Report(early, refused)
		coolsFor(10 * time.Second)
		pass(4 * time.Second)
		routes.Report(early2, refused) // in flight since before the cooldown: no change
		coolsFor(6 * time.Second)
		pass(6 * time.Second)

		first, second := pick(), pick()
		routes.Report(early3, refused) // began before the last cooldown
		pick()
		routes.Report(early3, nil)
		pass(time.Second)
		routes.Report(first, refused) // the first call after the cooldown fails: the cooldown doubles
		coolsFor(20 * time.Second)
		routes.Report(second, refused) // the second one adds nothing
		coolsFor(20 * time.Second)
		routes.Report(second, nil) // and its success is older than the cooldown
		coolsFor(20 * time.Second)
		pass(20 * time.Second)
		routes.Report(pick(), nil)
		pass(time.Second)
		routes.Report(pick(), refused) // after a success: the first length again
		coolsFor(10 * time.Second)
	})
}

func TestCooldownRetryAfter(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		after []time.Duration
		left  time.Duration
	}{
		{"shorter than our own", []time.Duration{2 * time.Second}, 2 * time.Second},
		{"longer than our own", []time.Duration{2 * time.Minute}, 2 * time.Minute},
		{"beyond belief", []time.Duration{72 * time.Hour}, 15 * time.Minute},
		{"shorter during a cooldown", []time.Duration{30 * time.Second, 2 * time.Second}, 30 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				routes := router.New(vendors(), []providers.Channel{channel("a", "talks")}, nil)
				want := router.Request{Group: "default", Model: "m", Endpoint: chat}
				to, err := routes.Pick(want)
				if err != nil {
					t.Fatal(err)
				}
				for _, after := range tc.after {
					routes.Report(to, limited(func(fault *providers.Fault) { fault.RetryAfter = after }))
				}
				_, err = routes.Pick(want)
				if fault := wantKind(t, err, providers.Overloaded); fault.RetryAfter != tc.left {
					t.Errorf("got RetryAfter %s, want %s", fault.RetryAfter, tc.left)
				}
			})
		})
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		keys := func(keys ...providers.Secret) func(*providers.Channel) {
			return func(c *providers.Channel) { c.Keys = keys }
		}
		routes := router.New(vendors(), []providers.Channel{channel("a", "talks", keys("k0", "k1"))}, nil)
		want := router.Request{Group: "default", Model: "m", Endpoint: chat}
		to, _ := routes.Pick(want)
		routes.Report(to, &providers.Fault{Kind: providers.Upstream, Blame: providers.BlameKey, KeyNamed: true})

		routes.Load([]providers.Channel{channel("a", "talks", keys("k2", "k0"))}, nil) // k1 is removed, k2 is added, k0 still cools down
		for range 3 {
			got, err := routes.Pick(want)
			if err != nil || got.Key != "k2" {
				t.Fatalf("got key %q, %v, want k2", got.Key.Reveal(), err)
			}
		}
		got, _ := routes.Pick(want)
		routes.Load([]providers.Channel{channel("b", "both")}, nil)
		routes.Report(got, &providers.Fault{Kind: providers.Upstream, Blame: providers.BlameChannel}) // of a removed channel
		if got, err := routes.Pick(want); err != nil || got.Channel.Name != "b" {
			t.Fatalf("got channel %s, %v, want b", got.Channel.Name, err)
		}

		calls(t, routes, failures, down())
		routes.Load([]providers.Channel{channel("b", "both", func(c *providers.Channel) { c.Models = map[string]string{"m": "", "n": ""} })}, nil)
		want.NoLastResort = true
		_, err := routes.Pick(want)
		_ = wantKind(t, err, providers.Overloaded) // the circuit is still open
		routes.Load([]providers.Channel{channel("b", "both", func(c *providers.Channel) { c.BaseURL = "http://elsewhere.test" })}, nil)
		if _, err := routes.Pick(want); err != nil {
			t.Errorf("another upstream under the same name is left alone as well: %v", err)
		}
	})
}
