// Package health shares the health of channels between processes through Redis: the cooldowns that their routers begin and end, what
// operators decide of channels, and the states of the channels for operators. Without Redis each process decides for itself.
package health

import (
	"context"
	"crypto/rand"
	"fmt"
	"hash/maphash"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/providers/router"
	"modelrelay/storage"
	"modelrelay/storage/slots"
)

const (
	// statesEvery is how often a process publishes the states of its channels.
	statesEvery = 2 * time.Second
	// timeout bounds one request to Redis.
	timeout = 2 * time.Second
)

// Sharer publishes the events of this process's router, applies those of other processes, and publishes the states of the channels.
// The router never waits for it. It is safe for concurrent use.
type Sharer struct {
	client  redis.UniversalClient
	process string
	script  *redis.Script
	about   []byte
	router  *router.Router
	slots   *slots.Store
	log     *slog.Logger

	mu sync.Mutex
	// unsent are events by their names: only the last one of a channel, a model or a key is sent.
	unsent map[string]pending
	wake   chan struct{}

	publishing sync.Mutex // held while states are published
	// published are sums of the states that Redis has, by channel, and seed is that of the sums.
	published map[string]uint64
	seed      maphash.Seed
}

type pending struct {
	event router.Event
	until time.Time
}

// New makes a Sharer over a client, which stays the caller's. about is what this process reports of itself to operators, as JSON. Route
// must follow.
func New(client redis.UniversalClient, about []byte, log *slog.Logger) *Sharer {
	return &Sharer{
		client: client, process: rand.Text()[:12], script: redis.NewScript(publishScript), about: about, slots: slots.New(client), log: log,
		unsent: make(map[string]pending), wake: make(chan struct{}, 1), seed: maphash.MakeSeed(),
	}
}

// Route sets the router, whose Tell is Publish.
func (s *Sharer) Route(r *router.Router) { s.router = r }

// Publish has an event of this process's router sent. It never waits.
func (s *Sharer) Publish(e router.Event) {
	s.mu.Lock()
	s.unsent[e.Name()] = pending{e, time.Now().Add(e.Left)}
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run shares until ctx ends.
func (s *Sharer) Run(ctx context.Context) {
	var following sync.WaitGroup
	defer following.Wait()
	reconnected := make(chan struct{}, 1)
	following.Go(func() {
		s.follow(ctx, func() {
			select {
			case reconnected <- struct{}{}:
			default:
			}
		}, s.router.Learn)
	})
	tick := time.NewTicker(statesEvery)
	defer tick.Stop()
	for missed := false; ; {
		var err error
		select {
		case <-ctx.Done():
			if err := s.withdrawStates(context.WithoutCancel(ctx)); err != nil {
				s.log.Debug("the channels' states stay for a moment", "error", err)
			}
			return
		case <-s.wake:
			err = s.send(ctx)
		case <-reconnected:
			missed = true
		case <-tick.C:
			if err = s.send(ctx); err == nil {
				err = s.publishStates(ctx)
			}
		}
		if missed && err == nil { // until it succeeds: a connection may be lost at once
			err = s.catchUp(ctx)
			missed = err != nil
		}
		if err != nil && ctx.Err() == nil {
			s.log.Debug("the channels' health is not shared now", "error", err)
		}
	}
}

// send sends what is unsent, then the new states. What Redis did not take stays unsent, unless it is over by then.
func (s *Sharer) send(ctx context.Context) error {
	s.mu.Lock()
	unsent := s.unsent
	s.unsent = make(map[string]pending)
	s.mu.Unlock()
	if len(unsent) == 0 {
		return nil
	}
	for name, one := range unsent {
		if one.event.Left > 0 {
			if one.event.Left = time.Until(one.until); one.event.Left <= 0 {
				delete(unsent, name)
				continue
			}
		}
		if err := s.Tell(ctx, one.event); err != nil {
			s.mu.Lock()
			maps.Copy(unsent, s.unsent) // newer ones
			s.unsent = unsent
			s.mu.Unlock()
			return err
		}
		delete(unsent, name)
	}
	return s.publishStates(ctx)
}

// catchUp applies what was published while this process did not listen. A cooldown that is over is left out: each process tries for
// itself.
func (s *Sharer) catchUp(ctx context.Context) error {
	events, err := s.Events(ctx)
	for _, e := range events {
		if e.Left > 0 {
			s.router.Learn(e)
		}
	}
	return err
}

// Pause keeps a channel out of routing in every process within a second, or with nil lets it in again. The error is
// storage.ErrNotFound where the configuration does not have the channel.
func (s *Sharer) Pause(ctx context.Context, channel string, pause *router.Pause) error {
	e := router.Event{Resumed: channel, Left: router.PauseMost}
	if pause != nil {
		e = router.Event{Paused: channel, Left: time.Until(pause.Until), By: pause.By, Reason: pause.Reason}
	}
	if _, known := s.router.Channel(channel); !known {
		return storage.ErrNotFound
	}
	if err := s.Tell(ctx, e); err != nil {
		return err
	}
	s.router.Pause(channel, pause)
	return s.publishStates(ctx)
}

// Wake ends the cooldowns of a channel and its keys in every process within a second. The error is storage.ErrNotFound where the
// configuration does not have the channel.
func (s *Sharer) Wake(ctx context.Context, channel string) error {
	if !s.router.Wake(channel) {
		return storage.ErrNotFound
	}
	if err := s.Tell(ctx, router.Event{Woken: channel}); err != nil {
		return err
	}
	return s.send(ctx) // the ends of this process's own cooldowns
}

// States lists the channels of these names as all processes see them, by name. A name that this process's configuration does not have is
// left out. A channel that no process knows has 0 processes.
func (s *Sharer) States(ctx context.Context, names []string) ([]router.ChannelState, error) {
	own := s.router.StatesOf(names)
	lists, err := s.publishedStates(ctx, namesOf(own))
	if err != nil {
		return nil, err
	}
	for i := range own {
		own[i].Processes = 0
	}
	known := make(map[string]bool)
	for _, list := range lists {
		for _, state := range list {
			known[state.Name] = true
		}
	}
	unknown := slices.DeleteFunc(own, func(state router.ChannelState) bool { return known[state.Name] })
	states := router.MergeStates(append(lists, unknown)...)
	s.router.Describe(states)
	return states, s.countSlots(ctx, states)
}

func namesOf(states []router.ChannelState) []string {
	names := make([]string, len(states))
	for i, state := range states {
		names[i] = state.Name
	}
	return names
}

// countSlots adds how many jobs hold a slot, and how many wait, at the channels with limited jobs.
func (s *Sharer) countSlots(ctx context.Context, states []router.ChannelState) error {
	var names []string
	var at []*router.Slots
	for _, state := range states {
		if state.Slots != nil {
			names, at = append(names, state.Name), append(at, state.Slots)
		}
	}
	if len(names) == 0 {
		return nil
	}
	counts, err := s.slots.States(ctx, names)
	if err != nil {
		return fmt.Errorf("count the jobs of channels: %w", err)
	}
	for i, count := range counts {
		at[i].Taken, at[i].Line = int(count.Held), int(count.Waiting)
	}
	return nil
}
