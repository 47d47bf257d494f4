// Package health decides which channels and keys may be used. Circuits open when calls of several tokens fail; a key cools down
// when the vendor refuses it; operators pause channels. A Monitor does this for one process. A Sharer shares its events with other
// processes through Redis. Without Redis each process decides for itself.
//
// It sends nothing upstream, and it does not choose: package router does.
package health

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"modelrelay/providers"
)

// Options tune a Monitor. The zero value of a field means its default.
type Options struct {
	Cooldown         time.Duration `yaml:"cooldown" range:"0-" doc:"how long the circuit of a failing model or channel is open; also the first cooldown of a refused key"`
	CooldownFailures int           `yaml:"cooldown_failures" range:"1-32" doc:"failures among the recent calls that open a circuit, 1 to 32"`
	CooldownShare    float64       `yaml:"cooldown_share" doc:"share of the recent calls, and of their tokens, that must fail to open a circuit; at most 1"`
	CooldownWindow   time.Duration `yaml:"cooldown_window" range:"1-" doc:"how long a call counts as recent"`
	// Publish receives the events of this process; nil: they are not published. It must not block.
	Publish func(Event)
}

// Monitor holds the health of the channels of one process. It is safe for concurrent use and never waits for other processes.
type Monitor struct {
	catalog providers.Catalog
	rules   rules
	publish func(Event)
	start   time.Time

	channels atomic.Pointer[map[string]*Channel] // by name
	mu       sync.Mutex                          // held by Load, and by Pause
	// pauses are by channel name. They outlast a configuration without the channel.
	pauses map[string]*atomic.Pointer[Pause]
}

// NewMonitor returns a Monitor without channels. nil options are the defaults.
func NewMonitor(catalog providers.Catalog, opts *Options) *Monitor {
	if opts == nil {
		opts = new(Options)
	}
	m := &Monitor{
		catalog: catalog, rules: newRules(opts), publish: opts.Publish, start: time.Now(), pauses: make(map[string]*atomic.Pointer[Pause]),
	}
	m.Load(nil)
	return m
}

// Now reads the monitor's clock, which never shows 0.
func (m *Monitor) Now() time.Duration { return time.Since(m.start) + 1 }

// Load replaces the channels and returns the new ones in the same order. A channel that keeps its name, vendor and base URL keeps
// its health, and so does each of its keys that stays.
func (m *Monitor) Load(channels []providers.Channel) []*Channel {
	m.mu.Lock()
	defer m.mu.Unlock()
	loaded := make([]*Channel, len(channels))
	byName := make(map[string]*Channel, len(channels))
	for i, config := range channels {
		config.BaseURL = cmp.Or(config.BaseURL, m.catalog[config.Vendor].BaseURL)
		loaded[i] = m.newChannel(config)
		byName[config.Name] = loaded[i]
	}
	m.channels.Store(&byName)
	return loaded
}

func (m *Monitor) newChannel(config providers.Channel) *Channel {
	c := &Channel{Config: config, pause: m.pauseOf(config.Name)}
	old := m.channel(config.Name)
	if old != nil && old.Config.Vendor == config.Vendor && old.Config.BaseURL == config.BaseURL {
		c.channelHealth = old.channelHealth
	} else {
		c.channelHealth, old = &channelHealth{target: target{monitor: m}}, nil
	}
	for _, secret := range config.Keys {
		key := old.key(func(k *Key) bool { return k.Secret == secret })
		if key == nil {
			key = &Key{Secret: secret, Fingerprint: secret.Fingerprint(), target: target{monitor: m}}
		}
		c.Keys = append(c.Keys, key)
	}
	return c
}

func (m *Monitor) channel(name string) *Channel {
	if channels := m.channels.Load(); channels != nil {
		return (*channels)[name]
	}
	return nil
}

func (c *Channel) key(matches func(*Key) bool) *Key {
	if c == nil {
		return nil
	}
	if i := slices.IndexFunc(c.Keys, matches); i >= 0 {
		return c.Keys[i]
	}
	return nil
}

// MaxPause is the longest pause. An operator who needs a longer one removes the channel from the configuration.
const MaxPause = 30 * 24 * time.Hour

// Pause is how long an operator keeps a channel out of routing. Paused channels receive no calls and no new jobs. Jobs are still polled.
type Pause struct {
	// Until is its end.
	Until time.Time `json:"until"`
	// By is the name of the operator, Reason the operator's reason.
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// pauseOf returns the storage of a channel's pause. The caller holds mu.
func (m *Monitor) pauseOf(channel string) *atomic.Pointer[Pause] {
	pause := m.pauses[channel]
	if pause == nil {
		pause = new(atomic.Pointer[Pause])
		m.pauses[channel] = pause
	}
	return pause
}

// Pause pauses a channel in this process. nil ends its pause.
func (m *Monitor) Pause(channel string, pause *Pause) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pauseOf(channel).Store(pause)
}

// PauseLeft returns the rest of the channel's pause, 0 if it is not paused.
func (c *Channel) PauseLeft() time.Duration {
	pause := c.pause.Load()
	if pause == nil {
		return 0
	}
	return max(0, time.Until(pause.Until))
}

// EndCooldowns ends the cooldowns of a channel, its keys and models, and publishes the ends. It reports whether there is such a channel.
func (m *Monitor) EndCooldowns(channel string) bool {
	c := m.channel(channel)
	if c == nil {
		return false
	}
	now := m.Now()
	c.whole.reset(now)
	m.publishOf(c.Config, Event{Circuit: true})
	c.resetCircuits(now, c.Config, "")
	for _, key := range c.Keys {
		key.resetCircuits(now, c.Config, key.Fingerprint)
		key.cooldown.learn(now, 0, 0)
		m.publishOf(c.Config, Event{Key: key.Fingerprint})
		for model, cooldown := range key.cooldowns.all {
			cooldown.learn(now, 0, 0)
			m.publishOf(c.Config, Event{Key: key.Fingerprint, Model: model})
		}
	}
	return true
}

func (t *target) resetCircuits(now time.Duration, of providers.Channel, key string) {
	for model, circuit := range t.circuits.all {
		circuit.reset(now)
		t.monitor.publishOf(of, Event{Circuit: true, Key: key, Model: model})
	}
}
