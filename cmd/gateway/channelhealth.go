package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/url"
	"slices"
	"sync"
	"time"

	"modelrelay/providers/router"
	"modelrelay/storage/channelhealth"
	"modelrelay/storage/slots"
)

const (
	// statesEvery is how often a process publishes the states of its channels. Redis forgets them after fifteen seconds.
	statesEvery = 2 * time.Second
	// shareTimeout bounds one round with Redis.
	shareTimeout = 2 * time.Second
)

// healthSharer publishes the cooldowns that this process's router begins and ends, applies those of other processes, and
// publishes the states of the channels for operators. The router never waits for it. Without Redis nothing is shared.
type healthSharer struct {
	store  *channelhealth.Store
	router *router.Router
	slots  *slots.Store
	log    *slog.Logger

	mu sync.Mutex
	// unsent are cooldowns by their names: only the last of a channel, a model or a key is sent.
	unsent map[string]pendingCooldown
	wake   chan struct{}
}

type pendingCooldown struct {
	cooldown channelhealth.Cooldown
	until    time.Time
}

// cooldownRecord is what a process publishes: a cooldown, or one action of an operator.
type cooldownRecord struct {
	router.Cooldown

	// Paused is a channel that an operator pauses, for as long as the cooldown has left. Resumed is one that an operator lets in
	// again: the word is kept as long as a pause may last, for processes that did not hear it. Woken is one whose cooldowns an
	// operator ends.
	Paused  string `json:"paused,omitempty"`
	Resumed string `json:"resumed,omitempty"`
	Woken   string `json:"woken,omitempty"`
	By      string `json:"by,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

func newHealthSharer(store *channelhealth.Store, log *slog.Logger) *healthSharer {
	return &healthSharer{store: store, log: log, unsent: make(map[string]pendingCooldown), wake: make(chan struct{}, 1)}
}

// publish has a cooldown of this process's router sent. It never waits.
func (s *healthSharer) publish(cooldown router.Cooldown) {
	// Channels of one name with different upstreams are different channels.
	name := url.QueryEscape(cooldown.Channel) + " " + cooldown.Upstream + " " + cooldown.Key
	if cooldown.Model != "" {
		name += " " + url.QueryEscape(cooldown.Model)
	}
	if cooldown.Circuit {
		name = "circuit " + name
	}
	text, err := json.Marshal(cooldownRecord{Cooldown: cooldown})
	if err != nil {
		s.log.Error("a cooldown cannot be told", "channel", cooldown.Channel, "error", err)
		return
	}
	s.mu.Lock()
	s.unsent[name] = pendingCooldown{channelhealth.Cooldown{Name: name, Left: cooldown.Left, Text: text}, time.Now().Add(cooldown.Left)}
	s.mu.Unlock()
	s.wakeUp()
}

// tell publishes an operator's word at once.
func (s *healthSharer) tell(ctx context.Context, cooldown channelhealth.Cooldown, record cooldownRecord) error {
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	cooldown.Text = text
	ctx, cancel := context.WithTimeout(ctx, shareTimeout)
	defer cancel()
	return s.store.Publish(ctx, cooldown)
}

func (s *healthSharer) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run shares until ctx ends.
func (s *healthSharer) run(ctx context.Context) {
	var following sync.WaitGroup
	defer following.Wait()
	reconnected := make(chan struct{}, 1)
	following.Go(func() {
		s.store.Follow(ctx, func() {
			select {
			case reconnected <- struct{}{}:
			default:
			}
		}, s.apply)
	})
	tick := time.NewTicker(statesEvery)
	defer tick.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			s.withdrawStates(context.WithoutCancel(ctx))
			return
		case <-s.wake:
			err = s.send(ctx)
		case <-reconnected:
			err = s.catchUp(ctx)
		case <-tick.C:
			if err = s.send(ctx); err == nil {
				err = s.publishStates(ctx)
			}
		}
		if err != nil && ctx.Err() == nil {
			s.log.Debug("the channels' health is not shared now", "error", err)
		}
	}
}

// send sends what is unsent, then the new states. What Redis did not take stays unsent, unless it is over by then.
func (s *healthSharer) send(ctx context.Context) error {
	s.mu.Lock()
	unsent := s.unsent
	s.unsent = make(map[string]pendingCooldown)
	s.mu.Unlock()
	if len(unsent) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, shareTimeout)
	defer cancel()
	for name, pending := range unsent {
		cooldown := pending.cooldown
		if cooldown.Left > 0 {
			if cooldown.Left = time.Until(pending.until); cooldown.Left <= 0 {
				delete(unsent, name)
				continue
			}
		}
		if err := s.store.Publish(ctx, cooldown); err != nil {
			s.mu.Lock()
			for name, pending := range unsent {
				if _, newer := s.unsent[name]; !newer {
					s.unsent[name] = pending
				}
			}
			s.mu.Unlock()
			return err
		}
		delete(unsent, name)
	}
	return s.publishStates(ctx)
}

// catchUp applies what was published while this process did not listen. A cooldown that is over is left out: each process
// tries for itself.
func (s *healthSharer) catchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, shareTimeout)
	defer cancel()
	cooldowns, err := s.store.Cooldowns(ctx)
	for _, cooldown := range cooldowns {
		if cooldown.Left > 0 {
			s.apply(cooldown)
		}
	}
	return err
}

// apply begins or ends a cooldown as another process did.
func (s *healthSharer) apply(cooldown channelhealth.Cooldown) {
	var text cooldownRecord
	if json.Unmarshal(cooldown.Text, &text) != nil { // another version wrote it, in another form
		return
	}
	switch {
	case text.Paused != "":
		s.router.Pause(text.Paused, &router.Pause{Until: time.Now().Add(cooldown.Left).UTC(), By: text.By, Reason: text.Reason})
		return
	case text.Resumed != "":
		s.router.Pause(text.Resumed, nil)
		return
	case text.Woken != "":
		s.router.Wake(text.Woken)
		return
	}
	text.Left = cooldown.Left
	s.router.Learn(text.Cooldown)
}

func (s *healthSharer) publishStates(ctx context.Context) error {
	text, err := json.Marshal(s.router.States())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, shareTimeout)
	defer cancel()
	return s.store.Show(ctx, text)
}

func (s *healthSharer) withdrawStates(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, shareTimeout)
	defer cancel()
	if err := s.store.Hide(ctx); err != nil {
		s.log.Debug("the channels' figures stay for a moment", "error", err)
	}
}

// States lists the channels as all processes see them. Those of this configuration that no process knows have 0 processes.
func (s *healthSharer) States(ctx context.Context) ([]router.ChannelState, error) {
	figures, err := s.store.Figures(ctx)
	if err != nil {
		return nil, err
	}
	lists := make([][]router.ChannelState, 0, len(figures))
	for _, text := range figures {
		var list []router.ChannelState
		if json.Unmarshal(text, &list) == nil {
			lists = append(lists, list)
		}
	}
	merged := router.MergeStates(lists...)
	own := slices.DeleteFunc(s.router.States(), func(state router.ChannelState) bool {
		return slices.ContainsFunc(merged, func(known router.ChannelState) bool { return known.Name == state.Name })
	})
	for i := range own {
		own[i].Processes = 0
	}
	states := router.MergeStates(merged, own)
	s.router.Describe(states)
	return states, countSlots(ctx, s.slots, states)
}
