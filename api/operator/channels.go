package operator

import (
	"context"
	"slices"
	"time"

	"modelrelay/api/console/words"
	"modelrelay/providers"
	"modelrelay/providers/channeltest"
	"modelrelay/providers/health"
	"modelrelay/storage"
	"modelrelay/storage/audit"
)

// ChannelHealth reads and changes the health of channels; health.Sharer implements it.
type ChannelHealth interface {
	// States returns the states of the channels by name. Channels that are not in the configuration are absent.
	States(ctx context.Context, names []string) ([]health.ChannelState, error)
	// Faulty returns the names of the channels with the last faults, the newest first.
	Faulty(ctx context.Context) ([]string, error)
	// Pause excludes a channel from routing in every process within a second; nil ends the pause. The error is storage.ErrNotFound if the
	// channel is not in the configuration.
	Pause(ctx context.Context, channel string, pause *health.Pause) error
	// EndCooldowns ends the cooldowns of a channel and its keys in every process within a second. Its errors are those of Pause.
	EndCooldowns(ctx context.Context, channel string) error
}

// ChannelTester tests channels; channeltest.Tester implements it.
type ChannelTester interface {
	// Test sends a free request to a channel's vendor. key replaces the channel's own unless it is "", and is not stored.
	Test(ctx context.Context, channel string, key providers.Secret) (channeltest.Result, error)
}

// ChannelList is a page of channels.
type ChannelList struct {
	Object  string                `json:"object" enum:"list"`
	Data    []health.ChannelState `json:"data" nullable:"false"`
	HasMore bool                  `json:"has_more" doc:"There is a next page"`
	After   *string               `json:"after" doc:"Value of after for the next page; null at the end"`
}

// ChannelName identifies one channel.
type ChannelName struct {
	Name string `path:"name" doc:"The channel's name"`
}

// PauseChannel is the input of Service.PauseChannel.
type PauseChannel struct {
	ChannelName

	Body ChannelPause
}

// ChannelPause has the duration of and the reason for a pause.
type ChannelPause struct {
	Minutes int      `json:"minutes" minimum:"1" maximum:"43200" doc:"Length of the pause in minutes"`
	Reason  string   `json:"reason,omitempty" maxLength:"200" doc:"Reason, for other operators"`
	_       struct{} `json:"-" additionalProperties:"false"`
}

// TestChannel is the input of Service.TestChannel.
type TestChannel struct {
	ChannelName

	Body *ChannelKey
}

// ChannelKey is a key for a channel test.
type ChannelKey struct {
	Key string   `json:"key,omitempty" maxLength:"16384" doc:"Replaces the channel's first key for this test, and is not stored"`
	_   struct{} `json:"-" additionalProperties:"false"`
}

// ChannelTested is the result of a channel test.
type ChannelTested struct {
	channeltest.Result

	Verdict string `json:"verdict" doc:"The sentence of the code, in English"`
}

// ListChannels returns a page of channels by name.
func (s *Service) ListChannels(ctx context.Context, by Actor, in *NamesOf) (list ChannelList, err error) {
	if err := reads(by, in); err != nil {
		return list, err
	}
	names, next, err := in.Page(s.Router.ChannelNames())
	if err != nil {
		return list, err
	}
	states, err := s.Channels.States(ctx, names)
	return ChannelList{Object: "list", Data: orNone(states), HasMore: next != nil, After: next}, StoreFault("channel", "", err)
}

// Channel returns a channel.
func (s *Service) Channel(ctx context.Context, by Actor, in *ChannelName) (health.ChannelState, error) {
	if err := reads(by, nil); err != nil {
		return health.ChannelState{}, err
	}
	states, err := s.Channels.States(ctx, []string{in.Name})
	if err == nil && len(states) == 0 {
		err = storage.ErrNotFound
	}
	if err != nil {
		return health.ChannelState{}, StoreFault("channel", in.Name, err)
	}
	return states[0], nil
}

// PauseChannel excludes a channel from routing, in every process within a second. It replaces an earlier pause.
func (s *Service) PauseChannel(ctx context.Context, by Actor, in *PauseChannel) (health.ChannelState, error) {
	return changeChannel(ctx, s, by, "pause_channel", &in.ChannelName, in, func(entry *audit.Entry) error {
		entry.Changes = []audit.Change{audit.Set("minutes", in.Body.Minutes), audit.Set("reason", in.Body.Reason)}
		until := time.Now().Add(time.Duration(in.Body.Minutes) * time.Minute).UTC()
		return s.Channels.Pause(ctx, in.Name, &health.Pause{Until: until, By: by.Name, Reason: in.Body.Reason})
	})
}

// ResumeChannel ends a channel's pause, in every process within a second.
func (s *Service) ResumeChannel(ctx context.Context, by Actor, in *ChannelName) (health.ChannelState, error) {
	return changeChannel(ctx, s, by, "resume_channel", in, nil, func(*audit.Entry) error { return s.Channels.Pause(ctx, in.Name, nil) })
}

// WakeChannel ends the cooldowns of a channel, its models and keys, in every process within a second.
func (s *Service) WakeChannel(ctx context.Context, by Actor, in *ChannelName) (health.ChannelState, error) {
	return changeChannel(ctx, s, by, "wake_channel", in, nil, func(*audit.Entry) error { return s.Channels.EndCooldowns(ctx, in.Name) })
}

func changeChannel(
	ctx context.Context, s *Service, by Actor, what string, name *ChannelName, in any, do func(*audit.Entry) error,
) (health.ChannelState, error) {
	return change(ctx, s, by, what, name.Name, in, func(entry *audit.Entry) (health.ChannelState, error) {
		if err := do(entry); err != nil {
			return health.ChannelState{}, StoreFault("channel", name.Name, err)
		}
		return s.Channel(ctx, by, name)
	})
}

// TestChannel sends a free request to a channel's vendor with one key. The result does not affect the channel's health.
func (s *Service) TestChannel(ctx context.Context, by Actor, in *TestChannel) (ChannelTested, error) {
	return change(ctx, s, by, "test_channel", in.Name, in, func(entry *audit.Entry) (ChannelTested, error) {
		var key providers.Secret
		if in.Body != nil {
			key = providers.Secret(in.Body.Key)
		}
		entry.Changes = []audit.Change{audit.Set("own_key", key != "")}
		result, err := s.Tester.Test(ctx, in.Name, key)
		return ChannelTested{result, s.texts.Finding(words.Languages()[0], result.Code, result.Values)}, err
	})
}

const mostShown = 20

// ChannelSummary summarizes the states of all channels.
type ChannelSummary struct {
	// All counts the enabled channels, and Out those without calls: they are paused, or their circuits are open.
	All, Out int
	// FirstOut lists the first channels without calls, Faulty the channels with the last faults, the newest first.
	FirstOut, Faulty []health.ChannelState
}

// SummarizeChannels summarizes the states of all channels. It reads only the states of the listed channels.
func (s *Service) SummarizeChannels(ctx context.Context, by Actor) (sum ChannelSummary, err error) {
	if err := reads(by, nil); err != nil {
		return sum, err
	}
	var out []string
	for _, state := range s.Router.Health.States() { // processes share circuits and pauses
		if state.State != health.StateDisabled {
			sum.All++
		}
		if isOut(&state) {
			out = append(out, state.Name)
		}
	}
	sum.Out = len(out)
	out = out[:min(len(out), mostShown)]
	faulty, err := s.Channels.Faulty(ctx)
	if err != nil {
		return sum, StoreFault("channel", "", err)
	}
	faulty = faulty[:min(len(faulty), mostShown)]
	states, err := s.Channels.States(ctx, slices.Compact(slices.Sorted(slices.Values(slices.Concat(out, faulty)))))
	for i := range states {
		if isOut(&states[i]) {
			sum.FirstOut = append(sum.FirstOut, states[i])
		}
		if slices.Contains(faulty, states[i].Name) && states[i].Overall().LastFault != nil {
			sum.Faulty = append(sum.Faulty, states[i])
		}
	}
	slices.SortFunc(sum.Faulty, func(a, b health.ChannelState) int { return b.Overall().LastFault.At.Compare(a.Overall().LastFault.At) })
	return sum, StoreFault("channel", "", err)
}

// isOut reports whether the channel gets no calls now.
func isOut(state *health.ChannelState) bool {
	now := state.Overall().State
	return now == health.StateOpen || now == health.StatePaused
}
