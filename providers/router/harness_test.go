package router_test

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

type noVideo struct{ providers.VideoAdapter }

var (
	chat  = providers.Endpoint{Format: providers.OpenAI, Operation: providers.Chat}
	embed = providers.Endpoint{Format: providers.OpenAI, Operation: providers.Embeddings}
	video = providers.Endpoint{Format: providers.OpenAI, Operation: providers.VideoTask}
)

// vendors are one of chats, one of chats and videos, one of videos.
func vendors() providers.Catalog {
	return providers.Catalog{
		"talks": {Name: "talks", Relay: noRelay{}, Endpoints: []providers.Endpoint{chat}},
		"both":  {Name: "both", Relay: noRelay{}, Endpoints: []providers.Endpoint{chat, embed}, Video: noVideo{}},
		"films": {Name: "films", Video: noVideo{}},
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

func down() *providers.Fault {
	return &providers.Fault{Kind: providers.Upstream, Blame: providers.BlameChannel}
}

func limited(change ...func(*providers.Fault)) *providers.Fault {
	fault := &providers.Fault{Kind: providers.RateLimited, Blame: providers.BlameKey}
	for _, f := range change {
		f(fault)
	}
	return fault
}
