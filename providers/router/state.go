package router

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"time"

	"modelrelay/providers"
)

// Event is what processes report to one another of a channel: a cooldown that begins, grows or ends, of a circuit that the evidence has
// opened for all or of a key; or an operator's pause, its end, or the end of all cooldowns.
type Event struct {
	Channel string `json:"channel,omitempty"`
	// Upstream names what the channel of that name leads to.
	Upstream string `json:"upstream,omitempty"`
	// Model is the one upstream model that it is for, "" for all. Key is the fingerprint of the one key that it is for, ""
	// for the channel.
	Key   string `json:"key,omitempty"`
	Model string `json:"model,omitempty"`
	// Left is how much of it is to come, 0 when a success has ended it. Length is what the cooldown of a key measures, from which
	// the next one grows.
	Left   time.Duration `json:"-"`
	Length time.Duration `json:"length,omitempty"`
	// Circuit: the evidence decided, by the rules of circuits; else the upstream refused a key.
	Circuit bool `json:"circuit,omitempty"`
	// Slow: others merely come first. Asked: the upstream itself asked for it, so that it is not tried even where nothing else
	// is left.
	Slow  bool `json:"slow,omitempty"`
	Asked bool `json:"asked,omitempty"`
	// Trouble is why; nil when it has ended.
	Trouble *Trouble `json:"trouble,omitempty"`

	// Paused is a channel that an operator pauses for as long as Left. Resumed is one whose pause an operator ends; the event is stored
	// as long as a pause may last, for processes that missed it. Woken is one whose cooldowns an operator ends.
	Paused  string `json:"paused,omitempty"`
	Resumed string `json:"resumed,omitempty"`
	Woken   string `json:"woken,omitempty"`
	By      string `json:"by,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// Name names what the event is about: a later event of the same name replaces it. Channels of one name with different upstreams are
// different channels.
func (e *Event) Name() string {
	switch {
	case e.Paused != "", e.Resumed != "":
		return "pause " + url.QueryEscape(e.Paused+e.Resumed)
	case e.Woken != "":
		return "wake " + url.QueryEscape(e.Woken)
	}
	name := url.QueryEscape(e.Channel) + " " + e.Upstream + " " + e.Key
	if e.Model != "" {
		name += " " + url.QueryEscape(e.Model)
	}
	if e.Circuit {
		name = "circuit " + name
	}
	return name
}

// Firm reports whether the event replaces one of its name that ends later: an operator's word does.
func (e *Event) Firm() bool { return e.Paused != "" || e.Resumed != "" }

// upstreamOf names what the channel leads to, so that news of one of the same name in another configuration is not taken
// for this one's.
func upstreamOf(c providers.Channel) string {
	return providers.Secret(c.Vendor + " " + c.BaseURL).Fingerprint()
}

// Learn applies an event of another process. What this process's configuration does not have is ignored.
func (r *Router) Learn(news Event) {
	switch {
	case news.Paused != "":
		r.Pause(news.Paused, &Pause{Until: time.Now().Add(news.Left).UTC(), By: news.By, Reason: news.Reason})
		return
	case news.Resumed != "":
		r.Pause(news.Resumed, nil)
		return
	case news.Woken != "":
		r.Wake(news.Woken)
		return
	}
	channel := r.table.Load().channels[news.Channel]
	if channel == nil || upstreamOf(channel.Channel) != news.Upstream {
		return
	}
	what, now := channel.health, r.now()
	if news.Key != "" {
		i := slices.IndexFunc(channel.keys, func(key *keyState) bool { return key.fingerprint == news.Key })
		if i < 0 {
			return
		}
		what = channel.keys[i].health
	}
	if old := what.trouble.Load(); news.Trouble != nil && (old == nil || old.At.Before(news.Trouble.At)) {
		what.trouble.Store(news.Trouble)
	}
	if news.Circuit {
		what.learnOpening(now, news)
	} else {
		what.learnKeyCooldown(now, news)
	}
}

func (h *health) learnKeyCooldown(now time.Duration, news Event) {
	whole := &h.cooldown
	if news.Model != "" {
		if whole = h.cooldowns.of(news.Model); whole == nil && news.Left > 0 {
			whole = h.cooldowns.begin(news.Model, now)
		}
	}
	if whole != nil { // else there is nothing to end
		whole.learn(now, news.Left, news.Length)
	}
}

func (h *health) learnOpening(now time.Duration, news Event) {
	of := &h.whole
	if news.Model != "" {
		if of = h.circuits.of(news.Model); of == nil && news.Left > 0 {
			of = h.circuits.begin(news.Model, now, "")
		}
	}
	level := open
	switch {
	case news.Slow:
		level = deferred
	case news.Asked:
		level = barred
	}
	if of != nil {
		of.learn(now, min(news.Left, maxRetryAfter), level)
	}
}

// The states of a channel, a model or a key, as an operator reads them.
const (
	StateClosed = "closed"
	StateOpen   = "open"
	// StateHalfOpen: the cooldown is over, and nothing has been answered since.
	StateHalfOpen = "half-open"
	StateDisabled = "disabled"
	// StatePaused: an operator keeps it out of routing for a while.
	StatePaused = "paused"
)

// CircuitState is how it stands with a circuit, or of a key that is cooling down.
type CircuitState struct {
	// State is closed, open or half-open; that of a channel may be disabled or paused.
	State string `json:"state"`
	// RestLeft is how long the cooldown lasts, in seconds; 0 where it is not open.
	RestLeft float64 `json:"rest_left"`
	// Slow: it is closed, but others come first, because it is slow or answers oddly.
	Slow bool `json:"slow,omitempty"`
	// Tokens are for how many tokens it is open, by their own calls alone, while it is closed for others.
	Tokens int `json:"tokens,omitempty"`
}

// HealthState is how a channel or a key is doing.
type HealthState struct {
	CircuitState
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
	// Models are those for which alone the key is not closed.
	Models []ModelHealth `json:"models,omitempty"`
}

// ModelHealth is one upstream model of a channel or a key that is not closed, or not for all.
type ModelHealth struct {
	Model string `json:"model"`
	CircuitState
}

// ChannelState is a channel and its keys as an operator sees them. It holds no secret.
type ChannelState struct {
	Name     string   `json:"name"`
	Vendor   string   `json:"vendor"`
	Groups   []string `json:"groups"`
	Priority int      `json:"priority"`
	Weight   int      `json:"weight"`
	// MaxCalls is how many calls each process may have in flight, 0 for any number.
	MaxCalls int `json:"max_calls,omitempty"`
	// Processes is how many processes the figures are of.
	Processes int `json:"processes"`
	HealthState
	// Pause is nil where it is not paused.
	Pause *Pause `json:"pause,omitempty"`
	// Served are the public names of its models, patterns among them. States leaves them out, and the slots.
	Served []string `json:"served,omitempty"`
	// Slots are the jobs at a channel whose jobs in flight are limited.
	Slots *Slots `json:"slots,omitempty"`
	// Models are those of its models that are not closed; the state of the channel is that of all of them.
	Models []ModelHealth `json:"models,omitempty"`
	Keys   []KeyHealth   `json:"keys"`
	// Videos are those of its models that make videos, by name, where the vendor's table knows them. States leaves them out.
	Videos []ChannelVideo `json:"videos,omitempty"`
}

// Overall is the health of the channel with its keys: while all of its keys cool down it is open until the first of them is back, and
// the last fault is that of the channel or of a key.
func (s *ChannelState) Overall() HealthState {
	overall := s.HealthState
	open, left := 0, 0.0
	for _, key := range s.Keys {
		if f := key.LastFault; f != nil && (overall.LastFault == nil || f.At.After(overall.LastFault.At)) {
			overall.LastFault = f
		}
		if key.State == StateOpen {
			if open++; open == 1 || key.RestLeft < left {
				left = key.RestLeft
			}
		}
	}
	if overall.State == StateClosed && open > 0 && open == len(s.Keys) {
		overall.State, overall.RestLeft = StateOpen, left
	}
	return overall
}

// Slots are the places for jobs at a channel.
type Slots struct {
	// Max is how many there are, Taken how many jobs have one, Line how many tasks wait.
	Max   int `json:"max"`
	Taken int `json:"taken"`
	Line  int `json:"line"`
}

// ChannelVideo is one model of a channel that makes videos, and what it takes.
type ChannelVideo struct {
	Model    string               `json:"model"`
	Upstream string               `json:"upstream"`
	Video    providers.VideoTable `json:"video"`
}

// Describe gives each of the channels its Videos, the names of its models and how many slots it has, as far as this
// process's configuration has it.
func (r *Router) Describe(states []ChannelState) {
	channels := r.table.Load().channels
	for i := range states {
		if channel := channels[states[i].Name]; channel != nil {
			states[i].Videos = channel.videos()
			states[i].Served = slices.Sorted(maps.Keys(channel.Models))
			if channel.MaxJobs > 0 {
				states[i].Slots = &Slots{Max: channel.MaxJobs}
			}
		}
	}
}

// videos lists the models of a channel that the vendor's table of videos knows. Patterns name none.
func (c *channelState) videos() []ChannelVideo {
	if c.vendor.Video == nil {
		return nil
	}
	var videos []ChannelVideo
	for _, model := range slices.Sorted(maps.Keys(c.Models)) {
		upstream := cmp.Or(c.Models[model], model)
		known, ok := c.vendor.VideoModel(c.Channel, upstream)
		if ok && !providers.IsPattern(model) {
			videos = append(videos, ChannelVideo{model, upstream, known.Table()})
		}
	}
	return videos
}

// ChannelNames lists the names of all channels in their order. The caller must not change the list.
func (r *Router) ChannelNames() []string { return r.table.Load().channelNames }

// States lists the channels as this process sees them, in the order of their names.
func (r *Router) States() []ChannelState { return r.StatesOf(r.ChannelNames()) }

// StatesOf lists the channels of these names that the configuration has, as this process sees them.
func (r *Router) StatesOf(names []string) []ChannelState {
	now := r.now()
	channels := r.table.Load().channels
	states := make([]ChannelState, 0, len(names))
	for _, name := range names {
		if channel := channels[name]; channel != nil {
			states = append(states, channel.state(now, &r.rules))
		}
	}
	return states
}

func (c *channelState) state(now time.Duration, rules *rules) ChannelState {
	state := ChannelState{
		Name: c.Name, Vendor: c.Vendor, Groups: c.Groups, Priority: c.Priority, Weight: max(c.Weight, 1),
		MaxCalls: c.MaxCalls, Processes: 1, HealthState: c.health.state(now, rules), Models: c.health.models(now, rules),
		Keys: make([]KeyHealth, 0, len(c.keys)),
	}
	if state.Pause = c.pausedNow(); state.Pause != nil {
		state.State = StatePaused
	}
	if c.Disabled {
		state.State = StateDisabled
	}
	for _, key := range c.keys {
		state.Keys = append(state.Keys, KeyHealth{key.fingerprint, key.health.state(now, rules), key.health.models(now, rules)})
	}
	return state
}

func (h *health) state(now time.Duration, rules *rules) HealthState {
	state := HealthState{CircuitState: h.cooldown.state(now).worse(h.whole.state(now, rules)), InFlight: h.inFlight.Load(), LastFault: h.trouble.Load()}
	state.CallsPerMinute, state.FaultsPerMinute = h.pace.lastMinute(now)
	return state
}

// models lists the models that are not closed, by name.
func (h *health) models(now time.Duration, rules *rules) []ModelHealth {
	var models []ModelHealth
	for model, c := range h.circuits.all {
		models = addModel(models, ModelHealth{model, c.state(now, rules)})
	}
	for model, cooldown := range h.cooldowns.all {
		models = addModel(models, ModelHealth{model, cooldown.state(now)})
	}
	return slices.DeleteFunc(models, func(m ModelHealth) bool { return m.CircuitState == CircuitState{State: StateClosed} })
}

func (r *keyCooldown) state(now time.Duration) CircuitState {
	switch how, left := r.standing(now); {
	case how == barred:
		return CircuitState{State: StateOpen, RestLeft: left.Seconds()}
	case how != closed:
		return CircuitState{State: StateHalfOpen}
	}
	return CircuitState{State: StateClosed}
}

func (s *opening) state(now time.Duration) CircuitState {
	switch {
	case s.over(now):
		return CircuitState{State: StateClosed}
	case s.level == deferred:
		return CircuitState{State: StateClosed, Slow: true}
	case now < s.until:
		return CircuitState{State: StateOpen, RestLeft: (s.until - now).Seconds()}
	default:
		return CircuitState{State: StateHalfOpen}
	}
}

// state is that for all. Where no token but those for which alone it is open has called lately, it is theirs.
func (c *circuit) state(now time.Duration, rules *rules) CircuitState {
	state := CircuitState{State: StateClosed}
	if c.quiet(now) {
		return state
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var own CircuitState
	others := false
	for i := range c.records {
		switch v := &c.records[i]; {
		case !v.own.over(now):
			one := v.own.state(now)
			if state.Tokens++; one.Slow {
				state.Tokens--
			}
			own = one.worse(own)
		case v.recent(now, rules):
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

// MergeStates adds up what several processes see. Of a channel, a model or a key on which they differ it shows the worst:
// they tell one another within moments. What one does not configure is of the others alone.
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
			known.add(state.HealthState)
			known.Pause = cmp.Or(known.Pause, state.Pause)
			known.Models = addModels(known.Models, state.Models)
			for _, key := range state.Keys {
				at := slices.IndexFunc(known.Keys, func(other KeyHealth) bool { return other.Fingerprint == key.Fingerprint })
				if at < 0 {
					known.Keys = append(known.Keys, key)
					continue
				}
				known.Keys[at].add(key.HealthState)
				known.Keys[at].Models = addModels(known.Keys[at].Models, key.Models)
			}
		}
	}
	slices.SortFunc(merged, func(a, b ChannelState) int { return cmp.Compare(a.Name, b.Name) })
	return merged
}

// addModels takes over another process's view of the models.
func addModels(models, others []ModelHealth) []ModelHealth {
	models = slices.Clone(models)
	for _, other := range others {
		models = addModel(models, other)
	}
	return models
}

// addModel puts one into a list that is ordered by name.
func addModel(models []ModelHealth, other ModelHealth) []ModelHealth {
	at, known := slices.BinarySearchFunc(models, other, func(a, b ModelHealth) int { return cmp.Compare(a.Model, b.Model) })
	if !known {
		return slices.Insert(models, at, other)
	}
	models[at].CircuitState = models[at].worse(other.CircuitState)
	return models
}

// worse is what an operator should see of two views.
func (c CircuitState) worse(other CircuitState) CircuitState {
	order := []string{StateClosed, StateHalfOpen, StateOpen, StatePaused, StateDisabled}
	if slices.Index(order, other.State) > slices.Index(order, c.State) {
		c.State = other.State
	}
	c.RestLeft, c.Tokens, c.Slow = max(c.RestLeft, other.RestLeft), max(c.Tokens, other.Tokens), c.Slow || other.Slow
	return c
}

// add takes over another process's view.
func (h *HealthState) add(other HealthState) {
	h.InFlight += other.InFlight
	h.CallsPerMinute += other.CallsPerMinute
	h.FaultsPerMinute += other.FaultsPerMinute
	if other.LastFault != nil && (h.LastFault == nil || h.LastFault.At.Before(other.LastFault.At)) {
		h.LastFault = other.LastFault
	}
	h.CircuitState = h.worse(other.CircuitState)
}
