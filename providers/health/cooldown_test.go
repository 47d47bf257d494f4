package health_test

import (
	"testing"
	"testing/synctest"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/health"
	"modelrelay/providers/router"
)

// TestRest drives one key through its rests on a fake clock.
func TestRest(t *testing.T) {
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
		rests := func(left time.Duration) {
			t.Helper()
			_, err := routes.Pick(want)
			if fault := wantKind(t, err, providers.Overloaded); fault.RetryAfter != left {
				t.Fatalf("got %s of rest left, want %s", fault.RetryAfter, left)
			}
		}
		pass(time.Second)
		early, early2, early3 := pick(), pick(), pick()
		pass(time.Second)

		routes.Report(early, refused)
		rests(10 * time.Second)
		pass(4 * time.Second)
		routes.Report(early2, refused) // in flight since before the rest: nothing new
		rests(6 * time.Second)
		pass(6 * time.Second)

		first, second := pick(), pick()
		routes.Report(early3, refused) // began before the rest that is over
		pick()
		routes.Report(early3, nil)
		pass(time.Second)
		routes.Report(first, refused) // the first call after the rest fails: it grows
		rests(20 * time.Second)
		routes.Report(second, refused) // the second does not add
		rests(20 * time.Second)
		routes.Report(second, nil) // and its success is older than the rest
		rests(20 * time.Second)
		pass(20 * time.Second)
		routes.Report(pick(), nil)
		pass(time.Second)
		routes.Report(pick(), refused) // a success in between: the first length again
		rests(10 * time.Second)
	})
}

func TestRestRetryAfter(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		after []time.Duration
		left  time.Duration
	}{
		{"shorter than our own", []time.Duration{2 * time.Second}, 2 * time.Second},
		{"longer than our own", []time.Duration{2 * time.Minute}, 2 * time.Minute},
		{"beyond belief", []time.Duration{72 * time.Hour}, 15 * time.Minute},
		{"shorter while it rests", []time.Duration{30 * time.Second, 2 * time.Second}, 30 * time.Second},
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

		routes.Load([]providers.Channel{channel("a", "talks", keys("k2", "k0"))}, nil) // k1 leaves, k2 comes, k0 rests on
		for range 3 {
			got, err := routes.Pick(want)
			if err != nil || got.Key != "k2" {
				t.Fatalf("got key %q, %v, want k2", got.Key.Reveal(), err)
			}
		}
		got, _ := routes.Pick(want)
		routes.Load([]providers.Channel{channel("b", "both")}, nil)
		routes.Report(got, &providers.Fault{Kind: providers.Upstream, Blame: providers.BlameChannel}) // of a channel that is gone
		if got, err := routes.Pick(want); err != nil || got.Channel.Name != "b" {
			t.Fatalf("got channel %s, %v, want b", got.Channel.Name, err)
		}

		calls(t, routes, failures, down())
		routes.Load([]providers.Channel{channel("b", "both", func(c *providers.Channel) { c.Models = map[string]string{"m": "", "n": ""} })}, nil)
		want.NoLastResort = true
		_, err := routes.Pick(want)
		_ = wantKind(t, err, providers.Overloaded) // the circuit is open still
		routes.Load([]providers.Channel{channel("b", "both", func(c *providers.Channel) { c.BaseURL = "http://elsewhere.test" })}, nil)
		if _, err := routes.Pick(want); err != nil {
			t.Errorf("another upstream under the same name is left alone as well: %v", err)
		}
	})
}
