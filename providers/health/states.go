package health

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"modelrelay/providers"
)

// The states that operators see.
const (
	StateClosed = "closed"
	StateOpen   = "open"
	// StateHalfOpen: the cooldown has ended, and no call has succeeded since.
	StateHalfOpen = "half-open"
	StateDisabled = "disabled"
	// StatePaused: an operator has paused the channel.
	StatePaused = "paused"
)

// CircuitState is the state of a circuit, or of a key that cools down.
type CircuitState struct {
	// State is closed, open or half-open; that of a channel may be disabled or paused.
	State string `json:"state"`
	// CooldownLeft is the rest of the cooldown in seconds, 0 if it is not open.
	CooldownLeft float64 `json:"cooldown_left"`
	// Slow: it is closed, but used after others, because its answers are late or malformed.
	Slow bool `json:"slow,omitempty"`
	// Tokens is the number of tokens for which only their own calls opened it.
	Tokens int `json:"tokens,omitempty"`
}

// TargetState is the state of a channel or a key.
type TargetState struct {
	CircuitState
	// InFlight is the number of relayed calls and conversations in progress.
	InFlight int64 `json:"in_flight"`
	// CallsPerMinute is the number of attempts in the last minute. FaultsPerMinute is how many of them counted against the channel or the key.
	CallsPerMinute  int64 `json:"calls_per_minute"`
	FaultsPerMinute int64 `json:"faults_per_minute"`
	// LastFault is nil if there was none.
	LastFault *LastFault `json:"last_fault,omitempty"`
}

// LastFault is the latest fault that counted against a channel or a key, without the upstream's text.
type LastFault struct {
	At time.Time `json:"at"`
	// Kind is that of the fault. Code is the upstream's error code. Status is that of its answer, 0 if there was none.
	Kind   providers.Kind `json:"kind"`
	Code   string         `json:"code,omitempty"`
	Status int            `json:"status,omitempty"`
	// Key is "refused", "forbidden" or "exhausted" for a fault of a key with that KeyFault, otherwise "".
	Key string `json:"key,omitempty"`
}

func newLastFault(fault *providers.Fault, key providers.Secret) *LastFault {
	last := &LastFault{At: time.Now(), Kind: fault.Kind, Code: providers.Cut(providers.Reason(fault.Code, key), providers.WordLimit)}
	if fault.Upstream != nil {
		last.Status = fault.Upstream.Status
	}
	if fault.Blame == providers.BlameKey {
		switch fault.Key {
		case providers.KeyRefused:
			last.Key = "refused"
		case providers.KeyForbidden:
			last.Key = "forbidden"
		case providers.KeyExhausted:
			last.Key = "exhausted"
		case providers.KeyBusy:
		}
	}
	return last
}

// KeyState is the state of one key of a channel.
type KeyState struct {
	Fingerprint string `json:"fingerprint"`
	TargetState
	// Models are those for which the key is not closed, while it is closed for others.
	Models []ModelState `json:"models,omitempty"`
}

// ModelState is the state of one upstream model of a channel or a key that is not closed, or not for all tokens.
type ModelState struct {
	Model string `json:"model"`
	CircuitState
}

// ChannelState is the state of a channel and its keys. It holds no secret.
type ChannelState struct {
	Name     string   `json:"name"`
	Vendor   string   `json:"vendor"`
	Groups   []string `json:"groups"`
	Priority int      `json:"priority"`
	Weight   int      `json:"weight"`
	// MaxCalls is how many calls each process may have in flight, 0 for no limit.
	MaxCalls int `json:"max_calls,omitempty"`
	// Processes is the number of processes whose figures are added up.
	Processes int `json:"processes"`
	TargetState
	// Pause is nil if the channel is not paused.
	Pause *Pause `json:"pause,omitempty"`
	// Served are the public names and patterns of its models, describedMost at most. Describe adds them.
	Served []string `json:"served,omitempty"`
	// Slots are the jobs of a channel whose jobs in flight are limited. Describe adds them.
	Slots *Slots `json:"slots,omitempty"`
	// Models are those that are not closed. The state of the channel is that of all its models.
	Models []ModelState `json:"models,omitempty"`
	Keys   []KeyState   `json:"keys"`
	// Videos are its models in the vendor's table of video models, describedMost at most. Describe adds them.
	Videos []ChannelVideo `json:"videos,omitempty"`
}

// Overall returns the state of the channel with its keys. While all of its keys cool down it is open until the first is back.
func (s *ChannelState) Overall() TargetState {
	overall := s.TargetState
	open, left := 0, 0.0
	for _, key := range s.Keys {
		if f := key.LastFault; f != nil && (overall.LastFault == nil || f.At.After(overall.LastFault.At)) {
			overall.LastFault = f
		}
		if key.State == StateOpen {
			if open++; open == 1 || key.CooldownLeft < left {
				left = key.CooldownLeft
			}
		}
	}
	if overall.State == StateClosed && open > 0 && open == len(s.Keys) {
		overall.State, overall.CooldownLeft = StateOpen, left
	}
	return overall
}

// Slots are the slots for jobs at a channel.
type Slots struct {
	// Max is how many there are. Taken is how many jobs hold one. Line is how many tasks wait.
	Max   int `json:"max"`
	Taken int `json:"taken"`
	Line  int `json:"line"`
}

// ChannelVideo is a model of a channel that makes videos, and what it accepts.
type ChannelVideo struct {
	Model    string               `json:"model"`
	Upstream string               `json:"upstream"`
	Video    providers.VideoTable `json:"video"`
}

// describedMost bounds the models of a channel that Describe adds: an answer has those of a hundred channels.
const describedMost = 500

// Describe adds what the configuration of this process states of the channels: Videos, Served and the maximum of Slots.
func (m *Monitor) Describe(states []ChannelState) {
	for i := range states {
		c := m.channel(states[i].Name)
		if c == nil {
			continue
		}
		states[i].Videos = m.videos(c.Config)
		served := slices.Sorted(maps.Keys(c.Config.Models))
		states[i].Served = served[:min(len(served), describedMost)]
		if c.Config.MaxJobs > 0 {
			states[i].Slots = &Slots{Max: c.Config.MaxJobs}
		}
	}
}

// videos lists the models of a channel in the vendor's table of video models. Patterns are not in it.
func (m *Monitor) videos(c providers.Channel) []ChannelVideo {
	var videos []ChannelVideo
	vendor := m.catalog[c.Vendor]
	if vendor.Video == nil {
		return nil
	}
	for _, model := range slices.Sorted(maps.Keys(c.Models)) {
		upstream := cmp.Or(c.Models[model], model)
		known, ok := vendor.VideoModel(c, upstream)
		if ok && !providers.IsPattern(model) && len(videos) < describedMost {
			videos = append(videos, ChannelVideo{model, upstream, known.Table()})
		}
	}
	return videos
}

// States lists the channels by name, with the states of this process.
func (m *Monitor) States() []ChannelState {
	return m.StatesOf(slices.Sorted(maps.Keys(*m.channels.Load())))
}

// StatesOf lists the named channels of the configuration, with the states of this process.
func (m *Monitor) StatesOf(names []string) []ChannelState {
	now := m.Now()
	states := make([]ChannelState, 0, len(names))
	for _, name := range names {
		if c := m.channel(name); c != nil {
			states = append(states, c.channelState(now))
		}
	}
	return states
}

func (c *Channel) channelState(now time.Duration) ChannelState {
	config := c.Config
	state := ChannelState{
		Name: config.Name, Vendor: config.Vendor, Groups: config.Groups, Priority: config.Priority, Weight: max(config.Weight, 1),
		MaxCalls: config.MaxCalls, Processes: 1, TargetState: c.state(now, c.whole.state(now, &c.monitor.rules)), Models: c.models(now),
		Keys: make([]KeyState, 0, len(c.Keys)),
	}
	if c.PauseLeft() > 0 {
		state.Pause, state.State = c.pause.Load(), StatePaused
	}
	if config.Disabled {
		state.State = StateDisabled
	}
	for _, key := range c.Keys {
		models := key.models(now)
		for model, cooldown := range key.cooldowns.all {
			if its := cooldown.state(now); its.State != StateClosed {
				models = addModel(models, ModelState{model, its})
			}
		}
		state.Keys = append(state.Keys, KeyState{key.Fingerprint, key.state(now, key.cooldown.state(now)), models})
	}
	return state
}

func (t *target) state(now time.Duration, circuit CircuitState) TargetState {
	state := TargetState{CircuitState: circuit, InFlight: t.inFlight.Load(), LastFault: t.lastFault.Load()}
	state.CallsPerMinute, state.FaultsPerMinute = t.pace.lastMinute(now)
	return state
}

func (t *target) models(now time.Duration) []ModelState {
	var models []ModelState
	for model, c := range t.circuits.all {
		if state := c.state(now, &t.monitor.rules); state != (CircuitState{State: StateClosed}) {
			models = append(models, ModelState{model, state})
		}
	}
	return models
}

func (c *keyCooldown) state(now time.Duration) CircuitState {
	switch access, left := c.allows(now); access {
	case Allowed:
		return CircuitState{State: StateClosed}
	case Denied:
		return CircuitState{State: StateOpen, CooldownLeft: left.Seconds()}
	default:
		return CircuitState{State: StateHalfOpen}
	}
}

func (o *opening) state(now time.Duration) CircuitState {
	switch {
	case o.over(now):
		return CircuitState{State: StateClosed}
	case o.access == Deferred:
		return CircuitState{State: StateClosed, Slow: true}
	case now < o.until:
		return CircuitState{State: StateOpen, CooldownLeft: (o.until - now).Seconds()}
	default:
		return CircuitState{State: StateHalfOpen}
	}
}

// state returns the state for all tokens. If only tokens for which it is open have called recently, it returns theirs.
func (c *circuit) state(now time.Duration, rules *rules) CircuitState {
	state := CircuitState{State: StateClosed}
	if c.quiet(now) {
		return state
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var own CircuitState
	others := false
	for i := range c.histories {
		switch h := &c.histories[i]; {
		case !h.own.over(now):
			one := h.own.state(now)
			if !one.Slow {
				state.Tokens++
			}
			own = one.worse(own)
		case h.recent(now, rules):
			others = true
		}
	}
	if all := c.all.state(now); all.State != StateClosed || all.Slow {
		return all
	}
	if !others && own.State != "" {
		return own
	}
	return state
}

// MergeStates adds up the states of several processes. Where the processes differ on a channel, a model or a key, the worst counts.
func MergeStates(lists ...[]ChannelState) []ChannelState {
	merged := []ChannelState{}
	index := make(map[string]int)
	for _, list := range lists {
		for _, state := range list {
			i, is := index[state.Name]
			if !is {
				index[state.Name] = len(merged)
				state.Keys = slices.Clone(state.Keys)
				merged = append(merged, state)
				continue
			}
			known := &merged[i]
			known.Processes += state.Processes
			known.add(state.TargetState)
			known.Pause = cmp.Or(known.Pause, state.Pause)
			known.Models = addModels(known.Models, state.Models)
			for _, key := range state.Keys {
				at := slices.IndexFunc(known.Keys, func(other KeyState) bool { return other.Fingerprint == key.Fingerprint })
				if at < 0 {
					known.Keys = append(known.Keys, key)
					continue
				}
				known.Keys[at].add(key.TargetState)
				known.Keys[at].Models = addModels(known.Keys[at].Models, key.Models)
			}
		}
	}
	slices.SortFunc(merged, func(a, b ChannelState) int { return cmp.Compare(a.Name, b.Name) })
	return merged
}

func addModels(models, others []ModelState) []ModelState {
	models = slices.Clone(models)
	for _, other := range others {
		models = addModel(models, other)
	}
	return models
}

func addModel(models []ModelState, other ModelState) []ModelState {
	at, known := slices.BinarySearchFunc(models, other, func(a, b ModelState) int { return cmp.Compare(a.Model, b.Model) })
	if !known {
		return slices.Insert(models, at, other)
	}
	models[at].CircuitState = models[at].worse(other.CircuitState)
	return models
}

func (c CircuitState) worse(other CircuitState) CircuitState {
	order := []string{StateClosed, StateHalfOpen, StateOpen, StatePaused, StateDisabled}
	if slices.Index(order, other.State) > slices.Index(order, c.State) {
		c.State = other.State
	}
	c.CooldownLeft, c.Tokens, c.Slow = max(c.CooldownLeft, other.CooldownLeft), max(c.Tokens, other.Tokens), c.Slow || other.Slow
	return c
}

func (h *TargetState) add(other TargetState) {
	h.InFlight += other.InFlight
	h.CallsPerMinute += other.CallsPerMinute
	h.FaultsPerMinute += other.FaultsPerMinute
	if other.LastFault != nil && (h.LastFault == nil || h.LastFault.At.Before(other.LastFault.At)) {
		h.LastFault = other.LastFault
	}
	h.CircuitState = h.worse(other.CircuitState)
}
