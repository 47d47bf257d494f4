package health_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/providers"
	"modelrelay/providers/health"
	"modelrelay/providers/router"
	"modelrelay/storage"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/testwait"
)

// process is one process with a router over channels a and b.
type process struct {
	*health.Sharer

	router *router.Router
}

func newProcess(client redis.UniversalClient, about string) process {
	s := health.New(client, []byte(about), slog.New(slog.DiscardHandler))
	channels := []providers.Channel{
		{Name: "a", Vendor: "some", Groups: []string{"default"}, Keys: []providers.Secret{"key"}},
		{Name: "b", Vendor: "some", Groups: []string{"default"}, Keys: []providers.Secret{"key"}},
	}
	r := router.New(providers.Catalog{"some": {Name: "some"}}, channels, &router.Options{Tell: s.Publish})
	s.Route(r)
	return process{s, r}
}

// run runs the process until the test ends, or until the function is called.
func (p process) run(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.Run(ctx)
	}()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return stop
}

// state is that of a channel as the process's own router sees it.
func (p process) state(channel string) router.ChannelState {
	states := p.router.States()
	return states[slices.IndexFunc(states, func(state router.ChannelState) bool { return state.Name == channel })]
}

// TestSharing: an event of one process is applied by the others and stored for those that start later; a shorter one of its name is
// not, unless it is an operator's.
func TestSharing(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	here, there := newProcess(client, "{}"), newProcess(client, "{}")
	there.run(t)
	tell := func(e router.Event) {
		t.Helper()
		if err := here.Tell(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	upstream := providers.Secret("some ").Fingerprint()
	open := router.Event{Channel: "a", Upstream: upstream, Circuit: true, Left: time.Minute}
	tell(open)
	testwait.Eventually(t, "the circuit is open there", storagetest.Patience, func() bool { return there.state("a").State == router.StateOpen })
	shorter := open
	shorter.Left = time.Second
	tell(shorter)
	events, err := there.Events(t.Context())
	if err != nil || len(events) != 1 || events[0].Left <= 50*time.Second || events[0].Left > time.Minute || events[0].Channel != "a" {
		t.Fatalf("stored %+v, %v", events, err)
	}
	late := newProcess(client, "{}")
	late.run(t)
	testwait.Eventually(t, "the circuit is open in a process that starts later", storagetest.Patience, func() bool {
		return late.state("a").State == router.StateOpen
	})
	for _, left := range []time.Duration{time.Hour, time.Minute} { // the second is shorter, and firm
		if err := here.Pause(t.Context(), "b", &router.Pause{Until: time.Now().Add(left), By: "anna"}); err != nil {
			t.Fatal(err)
		}
		testwait.Eventually(t, "paused there", storagetest.Patience, func() bool {
			pause := there.state("b").Pause
			return pause != nil && pause.By == "anna" && time.Until(pause.Until) <= left
		})
	}
	if err := here.Pause(t.Context(), "b", nil); err != nil {
		t.Fatal(err)
	}
	if err := here.Wake(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	for _, p := range []process{there, late} {
		testwait.Eventually(t, "both channels work", storagetest.Patience, func() bool {
			return p.state("a").State == router.StateClosed && p.state("b").State == router.StateClosed
		})
	}
	for _, err := range []error{here.Pause(t.Context(), "none", nil), here.Wake(t.Context(), "none")} {
		if !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("of no channel: %v", err)
		}
	}
	// A cooldown that is over stays stored: whether it has helped is not known yet.
	tell(router.Event{Channel: "short", Upstream: upstream, Circuit: true, Left: time.Millisecond})
	testwait.Eventually(t, "a cooldown that is over", storagetest.Patience, func() bool {
		events, err := there.Events(t.Context())
		return err == nil && slices.ContainsFunc(events, func(e router.Event) bool { return e.Channel == "short" && e.Left == 0 })
	})
}

// TestEventNames: events of different channels, models and keys have different names.
func TestEventNames(t *testing.T) {
	t.Parallel()
	var names []string
	for _, e := range []router.Event{
		{Channel: "a", Upstream: "u"},
		{Channel: "a", Upstream: "v"},
		{Channel: "a", Upstream: "u", Key: "k"},
		{Channel: "a", Upstream: "u", Key: "k", Model: "m"},
		{Channel: "a", Upstream: "u", Circuit: true},
		{Channel: "a u", Upstream: ""},
		{Paused: "a"},
		{Woken: "a"},
	} {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	if len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("two events have one name: %q", names)
	}
	paused, resumed := router.Event{Paused: "a"}, router.Event{Resumed: "a"}
	if paused.Name() != resumed.Name() || !paused.Firm() || !resumed.Firm() {
		t.Errorf("the end of a pause does not replace it: %q, %q", paused.Name(), resumed.Name())
	}
}

// TestStates: the states of the processes that run are added up; those of a process that has ended, or was killed, are not.
func TestStates(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	client := storagetest.Client(t, "redis://"+server.Addr())
	one, two := newProcess(client, `"v1"`), newProcess(client, `"v2"`)
	processes := func() int {
		states, err := one.States(t.Context(), []string{"a", "b", "none"})
		if err != nil || len(states) != 2 {
			t.Fatalf("got %+v, %v", states, err)
		}
		return states[0].Processes
	}
	if n := processes(); n != 0 {
		t.Errorf("%d processes before any runs", n)
	}
	abouts := func() string {
		texts, err := one.Abouts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, text := range texts {
			all = append(all, string(text))
		}
		slices.Sort(all)
		return strings.Join(all, " ")
	}
	for _, p := range []process{one, two} { // which publishes its states
		if err := p.Pause(t.Context(), "a", nil); err != nil {
			t.Fatal(err)
		}
	}
	if n, who := processes(), abouts(); n != 2 || who != `"v1" "v2"` {
		t.Errorf("%d processes, %s", n, who)
	}
	stop := two.run(t)
	stop()
	if n, who := processes(), abouts(); n != 1 || who != `"v1"` {
		t.Errorf("%d processes, %s after one has ended", n, who)
	}
	server.FastForward(16 * time.Second)
	if n := processes(); n != 0 {
		t.Errorf("%d processes after one was killed", n)
	}
	server.Close()
	if _, err := one.States(t.Context(), []string{"a", "b", "none"}); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("got %v with Redis away", err)
	}
}

// TestPublishedStates: a process publishes what has changed, all of it where Redis lost it, and the channels with faults are named.
func TestPublishedStates(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	client := storagetest.Client(t, "redis://"+server.Addr())
	p := newProcess(client, "{}")
	publish := func() {
		t.Helper()
		if err := p.Pause(t.Context(), "a", nil); err != nil {
			t.Fatal(err)
		}
	}
	publish()
	keys, err := client.Keys(t.Context(), storage.Prefix+"states:*").Result()
	if err != nil || len(keys) != 1 {
		t.Fatalf("got %v, %v", keys, err)
	}
	published := func() string {
		names, err := client.HKeys(t.Context(), keys[0]).Result()
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(names)
		return strings.Join(names, " ")
	}
	if got := published(); got != "a b" {
		t.Errorf("published %q first", got)
	}
	client.HDel(t.Context(), keys[0], "a")
	if publish(); published() != "b" {
		t.Error("a state that has not changed is published again")
	}
	if err := p.Pause(t.Context(), "a", &router.Pause{Until: time.Now().Add(time.Hour)}); err != nil || published() != "a b" {
		t.Errorf("a state that has changed is not published: %q, %v", published(), err)
	}
	server.FastForward(16 * time.Second)
	if publish(); published() != "a b" {
		t.Errorf("published %q after Redis lost all", published())
	}
	pick, err := p.router.Resolve("b", providers.Secret("key").Fingerprint(), "m")
	if err != nil {
		t.Fatal(err)
	}
	p.router.Report(pick, &providers.Fault{Kind: providers.Upstream, Blame: providers.BlameChannel})
	publish()
	if names, err := p.Faulty(t.Context()); err != nil || !slices.Equal(names, []string{"b"}) {
		t.Errorf("channels with faults: %v, %v", names, err)
	}
}
