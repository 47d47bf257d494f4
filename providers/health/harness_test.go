package health_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/health"
	"modelrelay/providers/router"
)

const failures = health.DefaultCooldownFailures

type noRelay struct{}

func (noRelay) Relay(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
	return nil, errors.New("not called in these tests")
}

var chat = providers.Endpoint{Format: providers.OpenAI, Operation: providers.Chat}

// vendors are two that serve chats.
func vendors() providers.Catalog {
	chats := []providers.Endpoint{chat}
	return providers.Catalog{
		"talks": {Name: "talks", Relay: noRelay{}, Endpoints: chats},
		"both":  {Name: "both", Relay: noRelay{}, Endpoints: chats},
	}
}

// channel makes a channel of the group "default" that carries model m.
func channel(name, vendor string, change ...func(*providers.Channel)) providers.Channel {
	c := providers.Channel{
		Name: name, Vendor: vendor, BaseURL: "http://" + name + ".test", Keys: []providers.Secret{providers.Secret("key-" + name)},
		Models: map[string]string{"m": ""}, Groups: []string{"default"},
	}
	for _, f := range change {
		f(&c)
	}
	return c
}

func wantKind(t *testing.T, err error, kind providers.Kind) *providers.Fault {
	t.Helper()
	var fault *providers.Fault
	if !errors.As(err, &fault) {
		t.Fatalf("got error %v, want a fault of kind %s", err, kind)
	}
	if fault.Kind != kind {
		t.Fatalf("got fault %v, want kind %s", fault, kind)
	}
	return fault
}

// pickOf picks for model m, and fails the test when there is nothing to pick.
func pickOf(t *testing.T, routes *router.Router, change ...func(*router.Request)) router.Pick {
	t.Helper()
	want := router.Request{Group: "default", Model: "m", Endpoint: chat}
	for _, f := range change {
		f(&want)
	}
	to, err := routes.Pick(want)
	if err != nil {
		t.Fatalf("Pick: %v", err)
	}
	return to
}

// pass lets the time of a synctest bubble pass.
func pass(d time.Duration) { <-time.NewTimer(d).C }

// by makes a want one of the token.
func by(token string) func(*router.Request) {
	return func(want *router.Request) { want.Token = token }
}

func only(channels ...string) func(*router.Request) {
	return func(want *router.Request) { want.Only = channels }
}

// blamed marks the request as one whose fault was counted before.
func blamed(want *router.Request) { want.Blamed = true }

func ofModel(model string) func(*router.Request) {
	return func(want *router.Request) { want.Model = model }
}

// calls makes so many calls of a token to the one channel, each of which ends so, a moment after one another.
func calls(t *testing.T, routes *router.Router, n int, fault *providers.Fault, change ...func(*router.Request)) {
	t.Helper()
	for range n {
		pass(time.Millisecond)
		to := pickOf(t, routes, change...)
		pass(time.Millisecond)
		routes.Report(to, fault)
	}
}

func down() *providers.Fault {
	return &providers.Fault{Kind: providers.Upstream, Blame: providers.BlameChannel}
}

func unreached() *providers.Fault {
	return &providers.Fault{Kind: providers.Upstream, Blame: providers.BlameChannel, Unreached: true}
}

func late() *providers.Fault {
	return &providers.Fault{Kind: providers.Timeout, Blame: providers.BlameChannel}
}

func forbidden() *providers.Fault {
	return &providers.Fault{Kind: providers.Upstream, Blame: providers.BlameKey, Key: providers.KeyForbidden}
}

func limited(change ...func(*providers.Fault)) *providers.Fault {
	fault := &providers.Fault{Kind: providers.RateLimited, Blame: providers.BlameKey}
	for _, f := range change {
		f(fault)
	}
	return fault
}

// pair has two channels, "best" before "spare", each of two models.
func pair() []providers.Channel {
	models := func(c *providers.Channel) { c.Models = map[string]string{"m": "", "n": "", "o": ""} }
	return []providers.Channel{
		channel("best", "talks", models, func(c *providers.Channel) { c.Priority = 1 }), channel("spare", "talks", models),
	}
}

// withMonitor returns a router whose monitor has the options, and the monitor.
func withMonitor(channels []providers.Channel, opts *health.Options) *router.Router {
	return router.New(vendors(), channels, &router.Options{Health: health.NewMonitor(vendors(), opts)})
}
