package main

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/url"
	"slices"
	"sync"
	"time"

	"modelrelay/providers/router"
	"modelrelay/storage/channelhealth"
)

const (
	// figuresEvery is how often a process shows how it finds the channels. Redis forgets what is fifteen seconds old.
	figuresEvery = 2 * time.Second
	// shareTimeout bounds one round with Redis.
	shareTimeout = 2 * time.Second
)

// sharer tells other processes of cooldowns that the router has decided on, learns it from them, and shows operators how this process finds
// them. The router never waits for it, and without Redis it does without.
type sharer struct {
	store  *channelhealth.Store
	router *router.Router
	log    *slog.Logger

	mu sync.Mutex
	// news waits to be told; of one channel or key only the last counts.
	news map[string]pendingRest
	wake chan struct{}
}

type pendingRest struct {
	rest  channelhealth.Cooldown
	until time.Time
}

// restText is what processes write about a cooldown beside its length. Channel names that of a key that rests, Circuit that
// of a circuit: earlier versions, whose channels rested by other rules, neither take the second for one of theirs nor are
// heard where they tell of a whole channel.
type restText struct {
	Channel  string          `json:"channel,omitempty"`
	Circuit  string          `json:"circuit,omitempty"`
	Upstream string          `json:"upstream"`
	Key      string          `json:"key,omitempty"`
	Model    string          `json:"model,omitempty"`
	Length   time.Duration   `json:"length,omitempty"`
	Slow     bool            `json:"slow,omitempty"`
	Asked    bool            `json:"asked,omitempty"`
	Trouble  *router.Trouble `json:"trouble,omitempty"`
}

func newSharer(store *channelhealth.Store, log *slog.Logger) *sharer {
	return &sharer{store: store, log: log, news: make(map[string]pendingRest), wake: make(chan struct{}, 1)}
}

// Tell takes a cooldown of this process's router. It never waits.
func (s *sharer) Tell(rest router.Cooldown) {
	// Channels of one name that lead elsewhere are not the same one.
	name := url.QueryEscape(rest.Channel) + " " + rest.Upstream + " " + rest.Key
	if rest.Model != "" {
		name += " " + url.QueryEscape(rest.Model)
	}
	told := restText{
		Channel: rest.Channel, Upstream: rest.Upstream, Key: rest.Key, Model: rest.Model,
		Length: rest.Length, Slow: rest.Slow, Asked: rest.Asked, Trouble: rest.Trouble,
	}
	if rest.Circuit {
		name = "circuit " + name
		told.Channel, told.Circuit = "", rest.Channel
	}
	text, err := json.Marshal(told)
	if err != nil {
		s.log.Error("a cooldown cannot be told", "channel", rest.Channel, "error", err)
		return
	}
	s.mu.Lock()
	s.news[name] = pendingRest{channelhealth.Cooldown{Name: name, Left: rest.Left, Text: text}, time.Now().Add(rest.Left)}
	s.mu.Unlock()
	s.wakeUp()
}

func (s *sharer) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run shares until ctx ends.
func (s *sharer) run(ctx context.Context) {
	var following sync.WaitGroup
	defer following.Wait()
	missed := make(chan struct{}, 1)
	following.Go(func() {
		s.store.Follow(ctx, func() {
			select {
			case missed <- struct{}{}:
			default:
			}
		}, s.learn)
	})
	tick := time.NewTicker(figuresEvery)
	defer tick.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			s.hide(context.WithoutCancel(ctx))
			return
		case <-s.wake:
			err = s.send(ctx)
		case <-missed:
			err = s.catchUp(ctx)
		case <-tick.C:
			if err = s.send(ctx); err == nil {
				err = s.show(ctx)
			}
		}
		if err != nil && ctx.Err() == nil {
			s.log.Debug("the channels' health is not shared now", "error", err)
		}
	}
}

// send tells what waits, and shows what has become of it. What Redis did not take stays, unless it is over by then.
func (s *sharer) send(ctx context.Context) error {
	s.mu.Lock()
	news := s.news
	s.news = make(map[string]pendingRest)
	s.mu.Unlock()
	if len(news) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, shareTimeout)
	defer cancel()
	for name, one := range news {
		rest := one.rest
		if rest.Left > 0 {
			if rest.Left = time.Until(one.until); rest.Left <= 0 {
				delete(news, name)
				continue
			}
		}
		if err := s.store.Publish(ctx, rest); err != nil {
			s.mu.Lock()
			for name, one := range news {
				if _, newer := s.news[name]; !newer {
					s.news[name] = one
				}
			}
			s.mu.Unlock()
			return err
		}
		delete(news, name)
	}
	return s.show(ctx)
}

// catchUp learns what was told before this process listened. A rest that is over is for each process to try.
func (s *sharer) catchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, shareTimeout)
	defer cancel()
	rests, err := s.store.Cooldowns(ctx)
	for _, rest := range rests {
		if rest.Left > 0 {
			s.learn(rest)
		}
	}
	return err
}

// learn takes over another process's word.
func (s *sharer) learn(rest channelhealth.Cooldown) {
	var text restText
	if json.Unmarshal(rest.Text, &text) != nil { // a version of this program that writes otherwise
		return
	}
	s.router.Learn(router.Cooldown{
		Channel: cmp.Or(text.Channel, text.Circuit), Upstream: text.Upstream, Key: text.Key, Model: text.Model, Circuit: text.Circuit != "",
		Left: rest.Left, Length: text.Length, Slow: text.Slow, Asked: text.Asked, Trouble: text.Trouble,
	})
}

func (s *sharer) show(ctx context.Context) error {
	text, err := json.Marshal(s.router.States())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, shareTimeout)
	defer cancel()
	return s.store.Show(ctx, text)
}

func (s *sharer) hide(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, shareTimeout)
	defer cancel()
	if err := s.store.Hide(ctx); err != nil {
		s.log.Debug("the channels' figures stay for a moment", "error", err)
	}
}

// States lists the channels as all processes see them, and those of this configuration that none knows, with no process.
func (s *sharer) States(ctx context.Context) ([]router.ChannelState, error) {
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
	return router.MergeStates(merged, own), nil
}
