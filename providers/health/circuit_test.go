package health_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/health"
	"modelrelay/providers/router"
)

// TestCircuitOpens: the calls that open a circuit, and the tokens for which it is then open.
func TestCircuitOpens(t *testing.T) {
	t.Parallel()
	type step struct {
		token string
		n     int
		fault *providers.Fault
	}
	for _, tc := range []struct {
		name  string
		steps []step
		// avoids names the tokens whose calls with model m then go to another channel.
		avoids string
		// other reports whether their calls with another model do so too.
		other bool
		// state is the circuit state of the model; "": none.
		state string
	}{
		{"too few failures", []step{{"a", failures - 1, down()}}, "", false, ""},
		{"of the only token", []step{{"a", failures, down()}}, "a", false, health.StateOpen},
		{"of one of two tokens", []step{{"b", 1, down()}, {"b", 3, nil}, {"a", 20, down()}}, "a", false, health.StateClosed},
		{"of a flood with another token", []step{{"b", 1, down()}, {"b", 1, nil}, {"a", 500, down()}}, "a", false, health.StateClosed},
		{"of two", []step{{"a", 3, down()}, {"b", 3, down()}}, "a b c", false, health.StateOpen},
		{"of two, too few", []step{{"a", 2, down()}, {"b", 2, down()}}, "", false, ""},
		{
			"of two of five",
			[]step{{"a", 1, down()}, {"c", 2, nil}, {"d", 2, nil}, {"e", 2, nil}, {"a", 9, down()}, {"b", 9, down()}},
			"a b",
			false, health.StateClosed,
		},
		{"a small share", []step{{"a", 1, down()}, {"a", 4, nil}, {"a", 4, down()}, {"a", 6, nil}, {"a", 4, down()}}, "", false, ""},
		{"the caller's own", []step{{"a", 20, &providers.Fault{Kind: providers.Invalid}}}, "", false, ""},
		{"canceled", []step{{"a", 20, &providers.Fault{Kind: providers.Canceled}}}, "", false, ""},
		{"slow", []step{{"a", failures, late()}}, "a", false, health.StateClosed},
		{
			"odd",
			[]step{{"a", 3, &providers.Fault{Kind: providers.Upstream, Blame: providers.BlameChannel, Malformed: true}}, {"b", 3, late()}},
			"a b c", false, health.StateClosed,
		},
		{"unreached", []step{{"a", 3, unreached()}, {"b", 3, unreached()}}, "a b c", true, ""},
		{"not for the key, once", []step{{"a", 1, forbidden()}}, "", false, ""},
		{"not for the key", []step{{"a", 3, forbidden()}, {"b", 3, forbidden()}}, "a b c", false, ""},
		{"rate limited", []step{{"a", 1, limited()}}, "a", false, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				routes := router.New(vendors(), pair(), nil)
				for _, step := range tc.steps {
					calls(t, routes, step.n, step.fault, by(step.token), only("best"))
				}
				for _, token := range []string{"a", "b", "c"} {
					for model, avoids := range map[string]bool{"m": strings.Contains(tc.avoids, token), "n": tc.other} {
						if got := pickOf(t, routes, by(token), ofModel(model)).Channel.Name; (got == "spare") != avoids {
							t.Errorf("token %s, model %s: goes to %s", token, model, got)
						}
					}
				}
				best := routes.Health.States()[0]
				state := ""
				if len(best.Models) > 0 {
					state = best.Models[0].State
				}
				if state != tc.state || best.State == health.StateOpen != tc.other {
					t.Errorf("got state %s of the channel, %+v of its models", best.State, best.Models)
				}
			})
		})
	}
}

// TestHalfOpen: after a cooldown a few tokens try it once each; it closes when one of them succeeds.
func TestHalfOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		routes := router.New(vendors(), pair(), nil)
		goes := func(tokens ...string) string {
			var names []string
			for _, token := range tokens {
				names = append(names, pickOf(t, routes, by(token)).Channel.Name)
			}
			return strings.Join(names, " ")
		}
		calls(t, routes, 3, down(), by("a"), only("best"))
		early := pickOf(t, routes, by("c"), only("best"))
		calls(t, routes, 3, down(), by("b"), only("best"))
		if got := goes("a", "b", "c", "d"); got != "spare spare spare spare" {
			t.Errorf("open: calls go to %s", got)
		}
		routes.Report(early, down()) // began before it opened: nothing new
		pass(health.DefaultCooldown - time.Second)
		if got := goes("a", "d"); got != "spare spare" {
			t.Errorf("before the end of the cooldown: calls go to %s", got)
		}
		pass(time.Second)
		if state := routes.Health.States()[0].Models[0].State; state != health.StateHalfOpen {
			t.Errorf("got state %s after the cooldown", state)
		}
		probe := pickOf(t, routes, by("poison"))
		if got := probe.Channel.Name + " " + goes("poison", "poison"); got != "best spare spare" {
			t.Errorf("half-open: the calls of one token go to %s", got)
		}
		routes.Report(probe, down())
		if got := goes("poison"); got != "spare" {
			t.Errorf("a token whose probe failed goes to %s", got)
		}
		second := pickOf(t, routes, by("a"))
		routes.Report(second, &providers.Fault{Kind: providers.Canceled}) // its turn is another's
		second, third := pickOf(t, routes, by("b")), pickOf(t, routes, by("c"))
		if got := second.Channel.Name + " " + third.Channel.Name + " " + goes("d", "e"); got != "best best spare spare" {
			t.Errorf("the next probes and calls go to %s", got)
		}
		pass(time.Millisecond)
		routes.Report(second, nil)
		if got := goes("poison", "a", "b", "d"); got != "best best best best" || len(routes.Health.States()[0].Models) != 0 {
			t.Errorf("closed: calls go to %s, %+v", got, routes.Health.States()[0].Models)
		}
		routes.Report(third, down()) // it was picked before the circuit closed
		if len(routes.Health.States()[0].Models) != 0 {
			t.Errorf("got %+v after a call of before", routes.Health.States()[0].Models)
		}
	})
}

// TestHalfOpenFails: when all probes fail the circuit opens again, for as long as before and no longer.
func TestHalfOpenFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		routes := router.New(vendors(), pair(), nil)
		calls(t, routes, 3, down(), by("a"), only("best"))
		calls(t, routes, 3, down(), by("b"), only("best"))
		seen := 0
		for range 6 * health.DefaultCooldown / time.Second {
			pass(time.Second)
			for i := range 20 {
				if to := pickOf(t, routes, by(fmt.Sprint("t", i))); to.Channel.Name == "best" {
					seen++
					routes.Report(to, down())
				} else {
					routes.Report(to, nil)
				}
			}
		}
		if seen < 6 || seen > 18 {
			t.Errorf("in six cooldowns the dead channel saw %d calls, want up to three in each", seen)
		}
		// With the same two tokens only, it is tried in each cooldown too.
		for range 2 * health.DefaultCooldown / time.Second {
			pass(time.Second)
			for _, token := range []string{"a", "b"} {
				routes.Report(pickOf(t, routes, by(token)), nil)
			}
		}
		if models := routes.Health.States()[0].Models; len(models) != 0 {
			t.Errorf("two cooldowns after it was mended: got %+v", models)
		}
	})
}

// TestSpoken: a call that fell over speaks against no second channel, and tries none that is half-open.
func TestSpoken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		routes := router.New(vendors(), pair(), nil)
		calls(t, routes, 100, down(), by("a"), only("best"), blamed)
		calls(t, routes, 100, unreached(), by("b"), only("best"), blamed)
		calls(t, routes, 100, forbidden(), by("b"), only("best"), blamed)
		if best := routes.Health.States()[0]; best.State != health.StateClosed || len(best.Models) != 0 || len(best.Keys[0].Models) != 0 ||
			best.FaultsPerMinute != 300 {
			t.Errorf("got %+v", best)
		}
		calls(t, routes, failures, down(), by("a"), only("best"))
		pass(health.DefaultCooldown)
		if got := pickOf(t, routes, by("a"), blamed).Channel.Name; got != "spare" {
			t.Errorf("a call that fell over tries %s", got)
		}
		if got := pickOf(t, routes, by("a")).Channel.Name; got != "best" {
			t.Errorf("the next one goes to %s", got)
		}
	})
}

// TestWell: a token whose own calls succeed is not shut out, however many others fail.
func TestWell(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		routes := router.New(vendors(), pair(), nil)
		calls(t, routes, 2, down(), by("a"), only("best"))
		calls(t, routes, 2, nil, by("honest"), only("best"))
		for _, token := range []string{"a", "b", "c"} {
			calls(t, routes, 3, down(), by(token), only("best"))
		}
		if got := pickOf(t, routes, by("new")).Channel.Name; got != "spare" {
			t.Errorf("a new token goes to %s while it is open for all", got)
		}
		calls(t, routes, 1, nil, by("honest"))
		if to := pickOf(t, routes, by("honest")); to.Channel.Name != "best" {
			t.Errorf("the token that was answered goes to %s", to.Channel.Name)
		}
		calls(t, routes, 1, down(), by("honest"), only("best"))
		if to := pickOf(t, routes, by("honest")); to.Channel.Name != "spare" {
			t.Errorf("when its call fails as well it goes to %s", to.Channel.Name)
		}
	})
}

// TestLastResort: if every circuit is open, a bounded number of calls at a time tries the channel whose cooldown ends first.
func TestLastResort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		routes := router.New(vendors(), pair(), nil)
		for _, name := range []string{"spare", "best"} {
			for _, token := range []string{"a", "b", "c"} {
				calls(t, routes, 3, down(), by(token), only(name))
			}
			pass(time.Second)
		}
		want := router.Request{Group: "default", Model: "m", Endpoint: chat}
		pick := func(token string) (to router.Pick, channel string) {
			want.Token = token
			to, err := routes.Pick(want)
			if err != nil {
				if wait := wantKind(t, err, providers.Overloaded).RetryAfter; wait <= 0 || wait > 5*time.Second {
					t.Errorf("refused with RetryAfter %s, want a short one", wait)
				}
				return to, "none"
			}
			return to, to.Channel.Name
		}
		got := map[string]int{}
		var hog router.Pick
		for range 50 {
			to, channel := pick("hog")
			if got[channel]++; channel == "spare" {
				hog = to
			}
		}
		if got["spare"] != 4 || got["best"] != 4 {
			t.Errorf("one token tries %v at a time, want 4 calls at each", got)
		}
		first, channel := pick("honest")
		if channel != "spare" {
			t.Errorf("another token tries %s, want the one that closes first", channel)
		}
		for i := range 50 {
			_, channel := pick(fmt.Sprint("token-", i))
			got[channel]++
		}
		if got["spare"] != 15 || got["best"] != 16 {
			t.Errorf("all try %v at a time, want 16 calls at each, with the one already under way", got)
		}
		routes.Report(hog, &providers.Fault{Kind: providers.Canceled}) // releases its slot
		if _, channel := pick("late"); channel != "spare" {
			t.Errorf("got %s after one has left", channel)
		}
		pass(time.Millisecond)
		routes.Report(first, nil)
		for range 100 {
			if _, channel := pick("honest"); channel != "spare" {
				t.Fatalf("got %s after the token was answered there", channel)
			}
		}

		want.NoLastResort = true
		if _, err := routes.Candidates(want); err == nil {
			// it was answered at spare
		} else {
			t.Errorf("got %v", err)
		}
		want.Token = "new"
		_, err := routes.Candidates(want)
		if wait := wantKind(t, err, providers.Overloaded).RetryAfter; wait < 20*time.Second {
			t.Errorf("a request without last resort waits %s", wait)
		}
		if _, err := routes.Pick(want); err == nil {
			t.Error("a request without last resort tries a channel that fails")
		}
		pass(3 * time.Minute) // the slots of calls that never report end
		if _, channel := pick("hog"); channel == "none" {
			t.Error("refused for ever")
		}
	})
}

// TestRetryAfterIsObeyed: an upstream that names a time is not called before it, even where nothing else is left.
func TestRetryAfterIsObeyed(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		after, left time.Duration
	}{
		{2 * time.Second, 2 * time.Second}, {2 * time.Minute, 2 * time.Minute}, {72 * time.Hour, 15 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			routes := router.New(vendors(), []providers.Channel{channel("a", "talks")}, nil)
			fault := &providers.Fault{Kind: providers.Overloaded, Blame: providers.BlameChannel, RetryAfter: tc.after}
			for _, token := range []string{"a", "b"} {
				calls(t, routes, 2, fault, by(token))
			}
			to := pickOf(t, routes, by("b"))
			pass(time.Millisecond)
			routes.Report(to, fault)
			for _, token := range []string{"a", "b", "c"} {
				_, err := routes.Pick(router.Request{Group: "default", Model: "m", Endpoint: chat, Token: token})
				if left := wantKind(t, err, providers.Overloaded).RetryAfter; left != tc.left {
					t.Errorf("token %s: got RetryAfter %s, want %s", token, left, tc.left)
				}
			}
		})
	}
}

// TestSpan: a channel is open with all its models when several are, and nothing is answered.
func TestSpan(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answered bool
		state    string
	}{
		"nothing answers": {false, health.StateOpen}, "another model does": {true, health.StateClosed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				routes := router.New(vendors(), pair(), nil)
				for _, model := range []string{"m", "n"} {
					for _, token := range []string{"a", "b"} {
						calls(t, routes, 3, down(), by(token), ofModel(model), only("best"))
					}
					if tc.answered {
						calls(t, routes, 1, nil, by("c"), ofModel("o"), only("best"))
					}
				}
				best := routes.Health.States()[0]
				if best.State != tc.state || len(best.Models) != 2 {
					t.Errorf("got %+v", best)
				}
				if got := pickOf(t, routes, by("d"), ofModel("o")).Channel.Name; (got == "spare") != (tc.state == health.StateOpen) {
					t.Errorf("the third model goes to %s", got)
				}
				pass(health.DefaultCooldown)
				for _, model := range []string{"m", "n", "o"} {
					calls(t, routes, 1, nil, by("a"), ofModel(model))
					calls(t, routes, 1, nil, by("b"), ofModel(model))
				}
				if best := routes.Health.States()[0]; best.State != health.StateClosed || len(best.Models) != 0 {
					t.Errorf("after the cooldown: got %+v", best)
				}
			})
		})
	}
}

// TestReportPoll: a failed poll opens a circuit only if the channel is unreachable, or the key's if it is refused. It counts
// nothing for the models.
func TestReportPoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		routes := router.New(vendors(), pair(), nil)
		look := func(n int, token string, fault *providers.Fault) {
			for range n {
				to, err := routes.Resolve("best", providers.Secret("key-best").Fingerprint(), "m")
				if err != nil {
					t.Fatal(err)
				}
				pass(time.Millisecond)
				routes.ReportPoll(to.For(token, false), fault)
			}
		}
		look(20, "a", down())
		look(20, "b", forbidden())
		if best := routes.Health.States()[0]; best.State != health.StateClosed || len(best.Models) != 0 || len(best.Keys[0].Models) != 0 ||
			best.FaultsPerMinute != 40 {
			t.Errorf("got %+v", best)
		}
		look(3, "a", unreached())
		look(3, "b", unreached())
		if best := routes.Health.States()[0]; best.State != health.StateOpen {
			t.Errorf("a channel that is away: got %+v", best)
		}
		pass(health.DefaultCooldown)
		look(1, "c", nil)
		if best := routes.Health.States()[0]; best.State != health.StateClosed {
			t.Errorf("one that is there again: got %+v", best)
		}
		look(1, "a", &providers.Fault{Kind: providers.Upstream, Blame: providers.BlameKey, Key: providers.KeyRefused, KeyNamed: true})
		if key := routes.Health.States()[0].Keys[0]; key.State != health.StateOpen {
			t.Errorf("a refused key: got %+v", key)
		}
	})
}

// TestMadeUpModels: model names that one token invents do not displace the state of models that others use.
func TestMadeUpModels(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		routes := router.New(vendors(), []providers.Channel{
			channel("a", "talks", func(c *providers.Channel) { c.Models = map[string]string{"*": ""} }),
		}, nil)
		for _, token := range []string{"x", "y"} {
			calls(t, routes, 3, down(), by(token), ofModel("real"))
		}
		for i := range 500 {
			calls(t, routes, 1, down(), by("poison"), ofModel(fmt.Sprint("made-up-", i)))
			calls(t, routes, 1, limited(), by("poison"), ofModel(fmt.Sprint("made-up-", i)))
		}
		models := routes.Health.States()[0].Models
		if len(models) != 1 || models[0].Model != "real" || models[0].State != health.StateOpen {
			t.Errorf("got models %+v", models)
		}
		if known := len(routes.Health.States()[0].Keys[0].Models); known > 8 {
			t.Errorf("one token is remembered with %d models of a key", known)
		}
	})
}

// TestManyTokens: a dead channel is noticed however many tokens call, each seldom.
func TestManyTokens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		routes := router.New(vendors(), pair(), nil)
		seen := 0
		for i := range 5000 {
			pass(time.Millisecond)
			to := pickOf(t, routes, by(fmt.Sprint("token-", i%1000)))
			if to.Channel.Name == "best" {
				seen++
				routes.Report(to, down())
				continue
			}
			routes.Report(to, nil)
		}
		if seen != failures {
			t.Errorf("the dead channel saw %d calls of five seconds, want %d", seen, failures)
		}
	})
}

// TestCircuitNews: other processes receive the opening of a circuit for all tokens, and not the opening for a single token.
func TestCircuitNews(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		there := router.New(vendors(), pair(), nil)
		var published []health.Event
		here := withMonitor(pair(), &health.Options{Publish: func(e health.Event) {
			published = append(published, e)
			there.Health.Learn(e)
		}})
		calls(t, here, 50, down(), by("poison"), only("best"))
		if len(published) != 0 || pickOf(t, there, by("poison")).Channel.Name != "best" {
			t.Errorf("one token's faults are published: %+v", published)
		}
		calls(t, here, 5, down(), by("other"), only("best"))
		if len(published) != 1 || !published[0].Circuit || published[0].Model != "m" || published[0].Key != "" ||
			published[0].Remaining != health.DefaultCooldown || published[0].LastFault == nil {
			t.Fatalf("published %+v", published)
		}
		if got := pickOf(t, there, by("third")).Channel.Name + pickOf(t, there, by("third"), ofModel("n")).Channel.Name; got != "sparebest" {
			t.Errorf("the other process goes to %s", got)
		}
		pass(health.DefaultCooldown)
		calls(t, here, 1, nil, by("third"))
		if len(published) != 2 || published[1].Remaining != 0 || pickOf(t, there, by("third")).Channel.Name != "best" ||
			len(there.Health.States()[0].Models) != 0 {
			t.Errorf("after a success published %+v", published)
		}
		calls(t, here, 3, late(), by("a"), only("best"))
		calls(t, here, 3, late(), by("b"), only("best"))
		if models := there.Health.States()[0].Models; len(published) != 3 || !published[2].Slow || len(models) != 1 || !models[0].Slow ||
			pickOf(t, there).Channel.Name != "spare" {
			t.Errorf("of a slow model published %+v; the other process has %+v", published[2:], models)
		}
	})
}
