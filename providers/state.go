package providers

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Rest is what processes tell one another of a cool-down.
type Rest struct {
	Channel string
	// Upstream names what the channel of that name leads to.
	Upstream string
	// Key is the fingerprint of the one key that rests, "" where the whole channel does; Model the one upstream model for
	// which the key does, "" where it does for all.
	Key, Model string
	// Left is how much of the rest is to come, 0 when a success has ended it. Length is what it measures, from which the
	// next one grows.
	Left, Length time.Duration
	// Trouble is why; nil when it has ended.
	Trouble *Trouble
}

// Learn takes over another process's news. What this process's configuration does not have is ignored.
func (r *Router) Learn(rest Rest) {
	channel := r.table.Load().channels[rest.Channel]
	if channel == nil || channel.upstream() != rest.Upstream {
		return
	}
	what, now := channel.health, r.now()
	if rest.Key != "" {
		i := slices.IndexFunc(channel.keys, func(key *keyState) bool { return key.fingerprint == rest.Key })
		if i < 0 {
			return
		}
		what = channel.keys[i].health
	}
	if old := what.trouble.Load(); rest.Trouble != nil && (old == nil || old.At.Before(rest.Trouble.At)) {
		what.trouble.Store(rest.Trouble)
	}
	whole := &what.rest
	if rest.Key != "" && rest.Model != "" {
		apart := what.models.of(rest.Model)
		if apart == nil && rest.Left > 0 {
			apart = what.models.begin(rest.Model, now)
		}
		if apart == nil {
			return // there is nothing to end, or no room
		}
		whole = apart
	}
	whole.learn(now, rest.Left, rest.Length)
}

// The states of a channel or key, as an operator reads them.
const (
	StateOK       = "ok"
	StateResting  = "resting"
	StateTrial    = "trial" // rested, and not proven yet
	StateDisabled = "disabled"
)

// HealthState is how a channel or a key is doing.
type HealthState struct {
	State string `json:"state"`
	// RestLeft is in seconds, 0 when it does not rest.
	RestLeft float64 `json:"rest_left"`
	// InFlight are relayed calls and conversations under way.
	InFlight int64 `json:"in_flight"`
	// CallsPerMinute are the attempts of the last minute, FaultsPerMinute those of them that spoke against the channel or
	// the key.
	CallsPerMinute  int64 `json:"calls_per_minute"`
	FaultsPerMinute int64 `json:"faults_per_minute"`
	// LastFault is nil when there was none yet.
	LastFault *Trouble `json:"last_fault,omitempty"`
}

// KeyHealth is one key of a channel, by its fingerprint.
type KeyHealth struct {
	Fingerprint string `json:"fingerprint"`
	HealthState
	// Models are those for which alone the key rests, or is on trial, by their upstream names.
	Models []ModelHealth `json:"models,omitempty"`
}

// ModelHealth is an upstream model for which a key is over the vendor's limit.
type ModelHealth struct {
	Model string `json:"model"`
	State string `json:"state"`
	// RestLeft is in seconds, 0 when it does not rest.
	RestLeft float64 `json:"rest_left"`
}

// ChannelState is a channel and its keys as an operator sees them. It holds no secret.
type ChannelState struct {
	Name     string   `json:"name"`
	Vendor   string   `json:"vendor"`
	Groups   []string `json:"groups"`
	Priority int      `json:"priority"`
	Weight   int      `json:"weight"`
	// Processes is how many processes the figures are of.
	Processes int `json:"processes"`
	HealthState
	Keys []KeyHealth `json:"keys"`
}

// States lists the channels as this process sees them, in the order of their names.
func (r *Router) States() []ChannelState {
	now := r.now()
	channels := r.table.Load().channels
	states := make([]ChannelState, 0, len(channels))
	for _, channel := range channels {
		state := ChannelState{
			Name: channel.Name, Vendor: channel.Vendor, Groups: channel.Groups, Priority: channel.Priority, Weight: max(channel.Weight, 1),
			Processes: 1, HealthState: channel.health.state(now), Keys: make([]KeyHealth, 0, len(channel.keys)),
		}
		if channel.Disabled {
			state.State = StateDisabled
		}
		for _, key := range channel.keys {
			state.Keys = append(state.Keys, KeyHealth{key.fingerprint, key.health.state(now), key.health.models.states(now)})
		}
		states = append(states, state)
	}
	slices.SortFunc(states, func(a, b ChannelState) int { return cmp.Compare(a.Name, b.Name) })
	return states
}

func (h *health) state(now time.Duration) HealthState {
	state := HealthState{State: StateOK, InFlight: h.inFlight.Load(), LastFault: h.trouble.Load()}
	state.CallsPerMinute, state.FaultsPerMinute = h.pace.lastMinute(now)
	state.State, state.RestLeft = h.rest.state(now)
	return state
}

// state is how it stands, and how many seconds are left.
func (r *rest) state(now time.Duration) (string, float64) {
	switch how, left := r.standing(now); how {
	case resting:
		return StateResting, left.Seconds()
	case due, onTrial:
		return StateTrial, 0
	case fit:
	}
	return StateOK, 0
}

// states lists the models that are not fit, by name.
func (m *modelRests) states(now time.Duration) []ModelHealth {
	known := m.known.Load()
	if known == nil {
		return nil
	}
	var states []ModelHealth
	for _, model := range slices.Sorted(maps.Keys(*known)) {
		if state, left := (*known)[model].state(now); state != StateOK {
			states = append(states, ModelHealth{model, state, left})
		}
	}
	return states
}

// MergeStates adds up what several processes see. Of a channel, or key, on which they differ it shows the worst: they
// tell one another within moments. What one does not configure is of the others alone.
func MergeStates(lists ...[]ChannelState) []ChannelState {
	merged := []ChannelState{}
	for _, list := range lists {
		for _, state := range list {
			i := slices.IndexFunc(merged, func(known ChannelState) bool { return known.Name == state.Name })
			if i < 0 {
				state.Keys = slices.Clone(state.Keys)
				merged = append(merged, state)
				continue
			}
			known := &merged[i]
			known.Processes += state.Processes
			known.add(state.HealthState)
			for _, key := range state.Keys {
				at := slices.IndexFunc(known.Keys, func(other KeyHealth) bool { return other.Fingerprint == key.Fingerprint })
				if at < 0 {
					known.Keys = append(known.Keys, key)
					continue
				}
				known.Keys[at].add(key.HealthState)
				known.Keys[at].addModels(key.Models)
			}
		}
	}
	slices.SortFunc(merged, func(a, b ChannelState) int { return cmp.Compare(a.Name, b.Name) })
	return merged
}

// addModels takes over another process's view of the models.
func (k *KeyHealth) addModels(others []ModelHealth) {
	models := slices.Clone(k.Models)
	for _, other := range others {
		at := slices.IndexFunc(models, func(model ModelHealth) bool { return model.Model == other.Model })
		if at < 0 {
			models = append(models, other)
			continue
		}
		models[at].State, models[at].RestLeft = worse(models[at].State, other.State), max(models[at].RestLeft, other.RestLeft)
	}
	slices.SortFunc(models, func(a, b ModelHealth) int { return cmp.Compare(a.Model, b.Model) })
	k.Models = models
}

// worse is the state of two that an operator should see.
func worse(a, b string) string {
	order := []string{StateOK, StateTrial, StateResting, StateDisabled}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}

// add takes over another process's view.
func (h *HealthState) add(other HealthState) {
	h.InFlight += other.InFlight
	h.CallsPerMinute += other.CallsPerMinute
	h.FaultsPerMinute += other.FaultsPerMinute
	if other.LastFault != nil && (h.LastFault == nil || h.LastFault.At.Before(other.LastFault.At)) {
		h.LastFault = other.LastFault
	}
	h.State = worse(h.State, other.State)
	h.RestLeft = max(h.RestLeft, other.RestLeft)
}
