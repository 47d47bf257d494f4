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
	"modelrelay/storage"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/testwait"
)

// process is one process with channels a and b.
type process struct {
	*health.Sharer

	monitor *health.Monitor
}

func newProcess(client redis.UniversalClient, about string) process {
	monitor := health.NewMonitor(providers.Catalog{"some": {Name: "some"}}, nil)
	s := health.NewSharer(monitor, client, []byte(about), slog.New(slog.DiscardHandler))
	monitor.Load([]providers.Channel{
		{Name: "a", Vendor: "some", Groups: []string{"default"}, Keys: []providers.Secret{"key"}},
		{Name: "b", Vendor: "some", Groups: []string{"default"}, Keys: []providers.Secret{"key"}},
	})
	return process{s, monitor}
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

// state is that of a channel as the process sees it.
func (p process) state(channel string) health.ChannelState {
	states := p.monitor.States()
	return states[slices.IndexFunc(states, func(state health.ChannelState) bool { return state.Name == channel })]
}

// TestSharing: an event of one process is applied by the others and stored for those that start later; a shorter one of its name is
// not, unless it is an operator's.
func TestSharing(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	here, there := newProcess(client, "{}"), newProcess(client, "{}")
	there.run(t)
	send := func(e health.Event) {
		t.Helper()
		if err := here.Send(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	upstream := providers.Secret("some ").Fingerprint()
	open := health.Event{Channel: "a", Upstream: upstream, Circuit: true, Remaining: time.Minute}
	send(open)
	testwait.Eventually(t, "the circuit is open there", storagetest.Patience,
		func() bool { return there.state("a").State == health.StateOpen })
	shorter := open
	shorter.Remaining = time.Second
	send(shorter)
	events, err := there.Events(t.Context())
	if err != nil || len(events) != 1 || events[0].Remaining <= 50*time.Second || events[0].Remaining > time.Minute || events[0].Channel != "a" {
		t.Fatalf("stored %+v, %v", events, err)
	}
	late := newProcess(client, "{}")
	late.run(t)
	testwait.Eventually(t, "the circuit is open in a process that starts later", storagetest.Patience, func() bool {
		return late.state("a").State == health.StateOpen
	})
	for _, left := range []time.Duration{time.Hour, time.Minute} { // the second is shorter, and an operator's
		if err := here.Pause(t.Context(), "b", &health.Pause{Until: time.Now().Add(left), By: "anna"}); err != nil {
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
	if err := here.EndCooldowns(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	for _, p := range []process{there, late} {
		testwait.Eventually(t, "both channels work", storagetest.Patience, func() bool {
			return p.state("a").State == health.StateClosed && p.state("b").State == health.StateClosed
		})
	}
	for _, err := range []error{here.Pause(t.Context(), "none", nil), here.EndCooldowns(t.Context(), "none")} {
		if !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("of no channel: %v", err)
		}
	}
	// A cooldown that has ended is not stored any more, whether or not a probe has succeeded.
	send(health.Event{Channel: "short", Upstream: upstream, Circuit: true, Remaining: time.Millisecond})
	testwait.Eventually(t, "a cooldown that has ended", storagetest.Patience, func() bool {
		events, err := there.Events(t.Context())
		return err == nil && !slices.ContainsFunc(events, func(e health.Event) bool { return e.Channel == "short" })
	})
}

// TestEventNames: events of different channels, models and keys have different names.
func TestEventNames(t *testing.T) {
	t.Parallel()
	var names []string
	for _, e := range []health.Event{
		{Channel: "a", Upstream: "u"},
		{Channel: "a", Upstream: "v"},
		{Channel: "a", Upstream: "u", Key: "k"},
		{Channel: "a", Upstream: "u", Key: "k", Model: "m"},
		{Channel: "a", Upstream: "u", Circuit: true},
		{Channel: "a u", Upstream: ""},
		{Paused: "a"},
		{CooldownsEnded: "a"},
	} {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	if len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("two events have one name: %q", names)
	}
	paused, resumed := health.Event{Paused: "a"}, health.Event{Resumed: "a"}
	if paused.Name() != resumed.Name() || !paused.ByOperator() || !resumed.ByOperator() {
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
	if err := p.Pause(t.Context(), "a", &health.Pause{Until: time.Now().Add(time.Hour)}); err != nil || published() != "a b" {
		t.Errorf("a state that has changed is not published: %q, %v", published(), err)
	}
	server.FastForward(16 * time.Second)
	if publish(); published() != "a b" {
		t.Errorf("published %q after Redis lost all", published())
	}
	channels := p.monitor.Load([]providers.Channel{{Name: "b", Vendor: "some", Keys: []providers.Secret{"key"}}, {Name: "a", Vendor: "some"}})
	attempt := channels[0].Attempt(p.monitor.Now(), channels[0].Keys[0], "m")
	p.monitor.Report(attempt, &providers.Fault{Kind: providers.Upstream, Blame: providers.BlameChannel})
	publish()
	if names, err := p.Faulty(t.Context()); err != nil || !slices.Equal(names, []string{"b"}) {
		t.Errorf("channels with faults: %v, %v", names, err)
	}
}
