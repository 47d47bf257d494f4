package router_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/router"
)

// pickOf picks for model m, and fails the test when there is nothing to pick.
func pickOf(t *testing.T, routes *router.Router, change ...func(*router.Want)) router.Pick {
	t.Helper()
	want := router.Want{Group: "default", Model: "m", Endpoint: chat}
	for _, f := range change {
		f(&want)
	}
	to, err := routes.Pick(want)
	if err != nil {
		t.Fatalf("Pick: %v", err)
	}
	return to
}

func down() *providers.Fault {
	return &providers.Fault{Kind: providers.Upstream, Blame: providers.BlameChannel}
}

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
		length []time.Duration // of the rests, one failure after the other
	}{
		{"busy", providers.Fault{Key: providers.KeyBusy, KeyNamed: true}, []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 10 * time.Minute, 10 * time.Minute}},
		{"refused", providers.Fault{Key: providers.KeyRefused, KeyNamed: true}, []time.Duration{
			30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 32 * time.Minute, time.Hour, time.Hour,
		}},
		{"exhausted", providers.Fault{Key: providers.KeyExhausted, KeyNamed: true}, []time.Duration{5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 40 * time.Minute, time.Hour, time.Hour}},
		{"exhausted, told to come back soon", providers.Fault{Key: providers.KeyExhausted, KeyNamed: true, RetryAfter: 12 * time.Second}, []time.Duration{5 * time.Minute, 10 * time.Minute}},
		{"exhausted, told to come back later", providers.Fault{Key: providers.KeyExhausted, KeyNamed: true, RetryAfter: 7 * time.Minute}, []time.Duration{7 * time.Minute, 10 * time.Minute}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				routes := router.New(vendors(), []providers.Channel{channel("a", "talks")}, nil)
				tc.fault.Kind, tc.fault.Blame = providers.Upstream, providers.BlameKey
				for i, want := range tc.length {
					routes.Report(pickOf(t, routes), &tc.fault)
					_, err := routes.Pick(router.Want{Group: "default", Model: "m", Endpoint: chat})
					got := wantKind(t, err, providers.Overloaded).RetryAfter
					if got != want {
						t.Fatalf("rest %d: got %s, want %s", i, got, want)
					}
					pass(got)
				}
			})
		})
	}
}

// TestAffinity: calls that share an affinity stay together, others spread by weight, and what rests moves no others.
func TestAffinity(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		configured := []providers.Channel{
			channel("low", "talks", func(c *providers.Channel) { c.Priority = -1 }),
			channel("a", "talks", func(c *providers.Channel) { c.Keys = []providers.Secret{"k0", "k1", "k2"} }),
			channel("b", "talks"), channel("c", "talks", func(c *providers.Channel) { c.Weight = 2 }),
		}
		routes, other := router.New(vendors(), configured, nil), router.New(vendors(), configured, nil)
		with := func(affinity uint64) func(*router.Want) {
			return func(want *router.Want) { want.Affinity = affinity }
		}
		const callers = 4000
		homes, share := make([]string, callers), make(map[string]int)
		for i := range homes {
			to := pickOf(t, routes, with(uint64(i)+1))
			homes[i] = to.Channel.Name + to.Key.Reveal()
			share[to.Channel.Name]++
			share[homes[i]]++
			if to := pickOf(t, other, with(uint64(i)+1)); to.Channel.Name+to.Key.Reveal() != homes[i] {
				t.Fatalf("caller %d: another process picks %s, this one %s", i, to.Channel.Name, homes[i])
			}
		}
		for name, want := range map[string]int{"a": callers / 4, "b": callers / 4, "c": callers / 2, "low": 0, "ak0": callers / 12, "ak1": callers / 12} {
			if diff := share[name] - want; diff < -200 || diff > 200 {
				t.Errorf("%s: got %d of %d callers, want about %d", name, share[name], callers, want)
			}
		}
		to := pickOf(t, routes, func(want *router.Want) { want.Only = []string{"b"} })
		for range failures {
			routes.Report(to, down())
		}
		for i, home := range homes {
			to := pickOf(t, routes, with(uint64(i)+1))
			if got := to.Channel.Name + to.Key.Reveal(); got != home && !strings.HasPrefix(home, "b") || strings.HasPrefix(got, "b") {
				t.Fatalf("caller %d moved from %s to %s while b rests", i, home, got)
			}
		}
	})
}

// TestMaker: who made an answer goes on from it, at any priority and even while it rests; gone or tried, another is
// picked.
func TestMaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		routes := router.New(vendors(), []providers.Channel{
			channel("best", "talks", func(c *providers.Channel) { c.Priority = 1 }),
			channel("made", "talks", func(c *providers.Channel) { c.Keys = []providers.Secret{"k0", "k1"} }),
			channel("films", "films"),
		}, nil)
		of := func(channel string, key providers.Secret) providers.KeyRef {
			return providers.KeyRef{Channel: channel, Fingerprint: key.Fingerprint()}
		}
		goingOn := func(from providers.KeyRef) func(*router.Want) {
			return func(want *router.Want) { want.Maker = from }
		}
		for range 3 {
			if to := pickOf(t, routes, goingOn(of("made", "k1"))); to.Channel.Name != "made" || to.Key != "k1" {
				t.Errorf("got %s, want the maker", to.Channel.Name)
			}
		}
		to := pickOf(t, routes, goingOn(of("made", "k1")))
		for range failures {
			routes.Report(to, down())
		}
		if to := pickOf(t, routes, goingOn(of("made", "k1"))); to.Channel.Name != "made" {
			t.Errorf("got %s while the maker rests", to.Channel.Name)
		}
		for _, from := range []providers.KeyRef{of("gone", "k1"), of("made", "k9"), of("films", "key-films")} {
			if to := pickOf(t, routes, goingOn(from)); to.Channel.Name != "best" {
				t.Errorf("got %s where %v is no choice", to.Channel.Name, from)
			}
		}
		for _, tried := range []func(*router.Want){
			func(want *router.Want) { want.Except = []string{"made"} },
			func(want *router.Want) { want.ExceptKeys = []providers.KeyRef{of("made", "k1")} },
		} {
			if to := pickOf(t, routes, goingOn(of("made", "k1")), tried); to.Channel.Name != "best" {
				t.Errorf("got %s after the maker was tried", to.Channel.Name)
			}
		}
	})
}

// TestNews: what one process tells of the rests of keys, another one knows.
func TestNews(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		configured := []providers.Channel{channel("a", "talks", func(c *providers.Channel) { c.Keys = []providers.Secret{"k0", "k1"} })}
		there := router.New(vendors(), configured, nil)
		told := 0
		here := router.New(vendors(), configured, &router.Options{Tell: func(rest router.Event) {
			told++
			there.Learn(rest)
		}})
		pass(time.Second)
		key := pickOf(t, here)
		here.Report(key, &providers.Fault{
			Kind: providers.Upstream, Blame: providers.BlameKey, Key: providers.KeyExhausted, KeyNamed: true, Code: "broke " + key.Key.Reveal(),
			Upstream: &providers.Reply{Status: 429},
		})
		for range 3 {
			if got := pickOf(t, there).Key; got == key.Key {
				t.Error("the other process uses the key that rests")
			}
		}
		for _, rest := range []router.Event{
			{Channel: "a", Upstream: "another", Key: key.Key.Fingerprint(), Left: time.Hour}, {Channel: "none", Left: time.Hour}, {Channel: "a", Key: "none", Left: time.Hour},
		} {
			there.Learn(rest)
		}
		pickOf(t, there)

		states := router.MergeStates(here.States(), there.States(), nil)
		text := fmt.Sprintf("%+v", states)
		if len(states) != 1 || states[0].Processes != 2 || states[0].State != router.StateClosed || states[0].CallsPerMinute == 0 {
			t.Errorf("got %s", text)
		}
		for _, state := range states[0].Keys {
			if (state.State == router.StateOpen) != (state.Fingerprint == key.Key.Fingerprint()) {
				t.Errorf("got key %+v", state)
			}
			if state.State == router.StateOpen &&
				(state.LastFault == nil || state.LastFault.Key != "exhausted" || state.LastFault.Status != 429 || state.LastFault.Code != "broke ***") {
				t.Errorf("got last fault %+v", state.LastFault)
			}
		}
		pass(10 * time.Minute)
		// The first after the rest fails there, and it grows as if it had been its own.
		again := pickOf(t, there, func(want *router.Want) {
			for _, other := range configured[0].Keys {
				if other != key.Key {
					want.ExceptKeys = append(want.ExceptKeys, providers.KeyRef{Channel: "a", Fingerprint: other.Fingerprint()})
				}
			}
		})
		there.Report(again, &providers.Fault{Kind: providers.Upstream, Blame: providers.BlameKey, Key: providers.KeyExhausted, KeyNamed: true})
		for _, state := range there.States()[0].Keys {
			if state.Fingerprint == key.Key.Fingerprint() && state.RestLeft != 600 {
				t.Errorf("got %+v, want the next rest to grow from the one it was told of", state)
			}
		}
		pass(10 * time.Minute)
		here.Report(pickOf(t, here, func(want *router.Want) { want.Maker = key.Ref() }), nil)
		for _, state := range there.States()[0].Keys {
			if state.State != router.StateClosed {
				t.Errorf("after a success here: got %+v there", state)
			}
		}
		if told != 2 {
			t.Errorf("told %d times, want a rest and its end", told)
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
			states := routes.States()
			a := states[0]
			if a.InFlight != inFlight || a.CallsPerMinute != calls || a.FaultsPerMinute != faults || states[1].State != router.StateDisabled {
				t.Errorf("got %+v, want %d in flight, %d calls, %d faults", states, inFlight, calls, faults)
			}
			if key := a.Keys[0]; key.InFlight != inFlight || key.CallsPerMinute != calls {
				t.Errorf("got key %+v", key)
			}
		}
		var first, second router.InFlight
		first.Begin(pickOf(t, routes))
		second.Begin(pickOf(t, routes))
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
		new(router.InFlight).End()
	})
}
