package router_test

import (
	"testing"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/router"
)

// TestServes: Serves counts a channel that cools down, but no channel of another group, model, endpoint or option. It does not
// advance the rotation of keys.
func TestServes(t *testing.T) {
	t.Parallel()
	routes := router.New(vendors(), []providers.Channel{
		channel("strict", "talks", func(c *providers.Channel) { c.Keys = []providers.Secret{"a", "b"} }),
		channel("film", "films", func(c *providers.Channel) { c.Models = map[string]string{"clip": ""} }),
	}, nil)
	want := router.Request{Group: "default", Model: "m", Endpoint: chat}
	first, err := routes.Pick(want)
	if err != nil {
		t.Fatal(err)
	}
	if !routes.Serves(want) {
		t.Error("got no channel for what one serves")
	}
	second, err := routes.Pick(want)
	if err != nil || first.Key == second.Key {
		t.Errorf("got key %s twice: Serves advanced the rotation", first.Key.Fingerprint())
	}
	routes.Report(second, &providers.Fault{Kind: providers.Upstream, Blame: providers.BlameChannel, RetryAfter: time.Hour})
	if !routes.Serves(want) {
		t.Error("got no channel while it cools down")
	}
	for _, other := range []router.Request{
		{Group: "vip", Model: "m", Endpoint: chat},
		{Group: "default", Model: "n", Endpoint: chat},
		{Group: "default", Model: "m", Endpoint: video},
		{Group: "default", Model: "m", Endpoint: chat, OpenValues: true},
	} {
		if routes.Serves(other) {
			t.Errorf("%+v: got a channel", other)
		}
	}
	if !routes.Serves(router.Request{Group: "default", Model: "clip", Endpoint: video}) {
		t.Error("got no channel for a video")
	}
}

// TestSeveral: a request for several videos goes only to a vendor that makes several in one job.
func TestSeveral(t *testing.T) {
	t.Parallel()
	catalog := vendors()
	several := catalog["films"]
	several.Name, several.Several = "several", true
	catalog["several"] = several
	routes := router.New(catalog, []providers.Channel{
		channel("one", "films", func(c *providers.Channel) { c.Priority = 9 }),
		channel("many", "several"),
	}, nil)
	for asked, name := range map[bool]string{false: "one", true: "many"} {
		to, err := routes.Pick(router.Request{Group: "default", Model: "m", Endpoint: video, Several: asked})
		if err != nil || to.Channel.Name != name {
			t.Errorf("several %v: got %s, %v, want %s", asked, to.Channel.Name, err, name)
		}
	}
	alone := router.New(catalog, []providers.Channel{channel("one", "films")}, nil)
	if alone.Serves(router.Request{Group: "default", Model: "m", Endpoint: video, Several: true}) {
		t.Error("got a channel that makes one video")
	}
}

// TestOpenValues: a value the contract does not list reaches only a channel that is open to such.
func TestOpenValues(t *testing.T) {
	t.Parallel()
	routes := router.New(vendors(), []providers.Channel{
		channel("strict", "talks", func(c *providers.Channel) { c.Priority = 9 }),
		channel("open", "talks", func(c *providers.Channel) { c.OpenValues = true }),
	}, nil)
	for open, name := range map[bool]string{false: "strict", true: "open"} {
		to, err := routes.Pick(router.Request{Group: "default", Model: "m", Endpoint: chat, OpenValues: open})
		if err != nil || to.Channel.Name != name {
			t.Errorf("open values %v: got %s, %v, want %s", open, to.Channel.Name, err, name)
		}
	}
}
