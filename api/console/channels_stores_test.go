package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/channeltest"
	"modelrelay/providers/health"
	"modelrelay/providers/pricing"
	"modelrelay/providers/router"
	"modelrelay/storage/taskindex"
)

// newRouter is a router without channels whose vendors are openai, which has chats, and films, which has videos.
func newRouter() *router.Router {
	return router.New(providers.Catalog{
		"openai": {Name: "openai", Relay: noRelay{}, Endpoints: []providers.Endpoint{{Format: "openai", Operation: "chat"}}},
		"films":  {Name: "films", Video: noVideo{}},
	}, nil, nil)
}

type noRelay struct{}

func (noRelay) Relay(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
	return nil, errors.New("no test calls it")
}

type noVideo struct{ providers.VideoAdapter }

// channelOf is a channel of openai with one key and models.
func channelOf(name string, models ...string) providers.Channel {
	c := providers.Channel{
		Name: name, Vendor: "openai", Keys: []providers.Secret{providers.Secret("key-" + name)}, Groups: []string{"default"},
		Models: make(map[string]string),
	}
	for _, model := range models {
		c.Models[model] = ""
	}
	return c
}

// coolDown lets the channel of openai, or its key where it is named, cool down after a fault.
func (s *stores) coolDown(channel, key string, left time.Duration) {
	s.router.Health.Learn(health.Event{
		Channel: channel, Upstream: providers.Secret("openai ").Fingerprint(), Key: key, Circuit: key == "", Remaining: left,
		LastFault: &health.LastFault{At: time.Now().UTC(), Kind: providers.RateLimited, Status: 429, Code: "billing_hard_limit"},
	})
}

// channelHealth is the health of the channels in one process. It implements operator.ChannelHealth.
type channelHealth struct{ *stores }

func (s channelHealth) States(_ context.Context, names []string) ([]health.ChannelState, error) {
	s.mu.Lock()
	s.looked = append(s.looked, len(names))
	s.mu.Unlock()
	states := s.router.Health.StatesOf(names)
	s.router.Health.Describe(states)
	for i := range states {
		if slots, limited := s.slots[states[i].Name]; limited {
			states[i].Slots = &slots
		}
	}
	return states, s.read("states")
}

func (s channelHealth) Faulty(context.Context) (names []string, err error) {
	for _, state := range s.router.Health.States() {
		if state.Overall().LastFault != nil {
			names = append(names, state.Name)
		}
	}
	return names, s.read("faults")
}

func (s channelHealth) Pause(_ context.Context, channel string, pause *health.Pause) error {
	if pause == nil {
		return s.change("resume", channel)
	}
	return s.change("pause", channel, fmt.Sprint(time.Until(pause.Until).Round(time.Minute)), pause.By, pause.Reason)
}

func (s channelHealth) EndCooldowns(_ context.Context, channel string) error {
	return s.change("wake", channel)
}

// Test implements operator.ChannelTester.
func (s channelHealth) Test(_ context.Context, channel string, key providers.Secret) (channeltest.Result, error) {
	return s.tested, s.change("test", channel, key.Reveal())
}

// usualDurations are ninety seconds for every model. It implements operator.Durations.
type usualDurations struct{}

func (usualDurations) UsualOf(_ context.Context, of []taskindex.Timed) (map[taskindex.Timed]time.Duration, error) {
	usual := make(map[taskindex.Timed]time.Duration)
	for _, one := range of {
		usual[one] = 90 * time.Second
	}
	return usual, nil
}

// priceOf is a price for a million tokens.
func priceOf(t *testing.T, input, output string) pricing.Price {
	t.Helper()
	rate := func(text string) *pricing.Rate {
		rate, err := pricing.ParseRate(text, 1_000_000)
		if err != nil {
			t.Fatal(err)
		}
		return rate
	}
	return pricing.Price{Input: rate(input), Output: rate(output)}
}
