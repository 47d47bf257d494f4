package router

import (
	"sync/atomic"
	"time"

	"modelrelay/providers"
)

// PauseMost is how long a pause may last: a channel that is to stay out for longer leaves the configuration.
const PauseMost = 30 * 24 * time.Hour

// Pause is a channel that an operator keeps out of routing for a while: no call goes there and no new job, while jobs that run
// are polled.
type Pause struct {
	// Until is its end.
	Until time.Time `json:"until"`
	// By is the operator, Reason why.
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// pauses are those of channels, by name. A channel that leaves the configuration and comes back is paused as long.
type pauses map[string]*atomic.Pointer[Pause]

// of is where the pause of a channel stands. The caller holds Router.load.
func (p pauses) of(name string) *atomic.Pointer[Pause] {
	of := p[name]
	if of == nil {
		of = new(atomic.Pointer[Pause])
		p[name] = of
	}
	return of
}

// Pause pauses a channel, or with nil ends its pause.
func (r *Router) Pause(channel string, pause *Pause) {
	r.load.Lock()
	defer r.load.Unlock()
	r.pauses.of(channel).Store(pause)
}

// pauseLeft is how long the channel is still paused, 0 where it is not.
func (c *channelState) pauseLeft() time.Duration {
	pause := c.pause.Load()
	if pause == nil {
		return 0
	}
	return max(0, time.Until(pause.Until))
}

// pausedNow is the channel's pause as long as it lasts, else nil.
func (c *channelState) pausedNow() *Pause {
	if c.pauseLeft() == 0 {
		return nil
	}
	return c.pause.Load()
}

// Channel is the one of this name; false: the configuration has none.
func (r *Router) Channel(name string) (providers.Channel, bool) {
	state := r.table.Load().channels[name]
	if state == nil {
		return providers.Channel{}, false
	}
	return state.Channel, true
}

// Wake ends every cooldown of a channel, its keys and models in this process, and tells of their ends. It tells whether the
// configuration has the channel.
func (r *Router) Wake(channel string) bool {
	state := r.table.Load().channels[channel]
	if state == nil {
		return false
	}
	now := r.now()
	of := Event{Channel: state.Name, Upstream: upstreamOf(state.Channel)}
	r.wake(now, state.health, of)
	for _, key := range state.keys {
		keyOf := of
		keyOf.Key = key.fingerprint
		r.wake(now, key.health, keyOf)
	}
	return true
}

// wake closes the circuit for all tokens.
func (c *circuit) wake(now time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.close(now)
}
