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

	"modelrelay/storage"
	"modelrelay/storage/slots"
)

const (
	// statesInterval is how often a process publishes the states of its channels.
	statesInterval = 2 * time.Second
	// timeout bounds one request to Redis.
	timeout = 2 * time.Second
)

// Sharer publishes the events and states of this process's Monitor, and applies those of others. It is safe for concurrent use.
type Sharer struct {
	monitor *Monitor
	client  redis.UniversalClient
	process string
	script  *redis.Script
	about   []byte
	slots   *slots.Store
	log     *slog.Logger

	mu sync.Mutex
	// unsent are events by name. Only the latest of each name is sent.
	unsent map[string]Event
	wake   chan struct{}

	publishing sync.Mutex // held while states are published
	// published are the hashes of the states in Redis, by channel. seed is that of the hashes.
	published map[string]uint64
	seed      maphash.Seed
}

// NewSharer returns a Sharer that publishes the monitor's events. The monitor must not be in use yet. The caller closes the client.
// about is JSON that describes this process to operators.
func NewSharer(monitor *Monitor, client redis.UniversalClient, about []byte, log *slog.Logger) *Sharer {
	s := &Sharer{
		monitor: monitor, client: client, process: rand.Text()[:12], script: redis.NewScript(publishScript), about: about,
		slots: slots.New(client), log: log, unsent: make(map[string]Event), wake: make(chan struct{}, 1), seed: maphash.MakeSeed(),
	}
	monitor.publish = s.publish
	return s
}

// publish queues an event. It does not block.
func (s *Sharer) publish(e Event) {
	s.mu.Lock()
	e.until = time.Now().Add(e.Remaining)
	s.unsent[e.Name()] = e
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run shares the health of the channels until ctx ends.
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
		}, s.monitor.Learn)
	})
	tick := time.NewTicker(statesInterval)
	defer tick.Stop()
	for missed := false; ; {
		var err error
		select {
		case <-ctx.Done():
			if err := s.withdrawStates(context.WithoutCancel(ctx)); err != nil {
				s.log.Debug("cannot withdraw the channels' states", "error", err)
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
		if missed && err == nil { // until it succeeds: the connection may be lost again
			err = s.catchUp(ctx)
			missed = err != nil
		}
		if err != nil && ctx.Err() == nil {
			s.log.Debug("cannot share the channels' health", "error", err)
		}
	}
}

// send sends the unsent events, then the new states. After an error, events stay unsent until they have ended.
func (s *Sharer) send(ctx context.Context) error {
	s.mu.Lock()
	unsent := s.unsent
	s.unsent = make(map[string]Event)
	s.mu.Unlock()
	if len(unsent) == 0 {
		return nil
	}
	for name, e := range unsent {
		if e.Remaining > 0 {
			if e.Remaining = time.Until(e.until); e.Remaining <= 0 {
				delete(unsent, name)
				continue
			}
		}
		if err := s.sendEvent(ctx, e); err != nil {
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

// catchUp applies the events that this process has missed and that have not ended.
func (s *Sharer) catchUp(ctx context.Context) error {
	events, err := s.events(ctx)
	for _, e := range events {
		s.monitor.Learn(e)
	}
	return err
}

// Pause pauses a channel in every process within a second. nil ends its pause. storage.ErrNotFound: there is no such channel.
func (s *Sharer) Pause(ctx context.Context, channel string, pause *Pause) error {
	e := Event{Resumed: channel, Remaining: MaxPause}
	if pause != nil {
		e = Event{Paused: channel, Remaining: time.Until(pause.Until), By: pause.By, Reason: pause.Reason}
	}
	if s.monitor.channel(channel) == nil {
		return storage.ErrNotFound
	}
	if err := s.sendEvent(ctx, e); err != nil {
		return err
	}
	s.monitor.Pause(channel, pause)
	return s.publishStates(ctx)
}

// EndCooldowns ends the cooldowns of a channel and its keys in every process within a second. storage.ErrNotFound: no such channel.
func (s *Sharer) EndCooldowns(ctx context.Context, channel string) error {
	if !s.monitor.EndCooldowns(channel) {
		return storage.ErrNotFound
	}
	if err := s.sendEvent(ctx, Event{CooldownsEnded: channel}); err != nil {
		return err
	}
	return s.send(ctx) // the ends that the monitor has published
}

// States lists the channels of these names by name, with the merged states of all processes. It omits names that this process's
// configuration does not have. A channel that no process has published has 0 processes.
func (s *Sharer) States(ctx context.Context, names []string) ([]ChannelState, error) {
	own := s.monitor.StatesOf(names)
	known := make([]string, len(own))
	for i := range own {
		own[i].Processes, known[i] = 0, own[i].Name
	}
	lists, err := s.publishedStates(ctx, known)
	if err != nil {
		return nil, err
	}
	published := make(map[string]bool)
	for _, list := range lists {
		for _, state := range list {
			published[state.Name] = true
		}
	}
	unpublished := slices.DeleteFunc(own, func(state ChannelState) bool { return published[state.Name] })
	states := MergeStates(append(lists, unpublished)...)
	s.monitor.Describe(states)
	return states, s.countSlots(ctx, states)
}

// countSlots adds the numbers of jobs that hold or wait for a slot, for channels with limited jobs.
func (s *Sharer) countSlots(ctx context.Context, states []ChannelState) error {
	var names []string
	var at []*Slots
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
