package health

import (
	"sync/atomic"
	"time"

	"modelrelay/providers"
)

// Access is how a call may use a channel or a key. The order is that of preference.
type Access int

// The values of Access.
const (
	// Allowed: without restriction.
	Allowed Access = iota
	// Probe: the cooldown has ended, and this call may probe the upstream.
	Probe
	// Deferred: after others. It is slow, or another call probes the key.
	Deferred
	// LastResort: its circuit is open. A few calls at a time may try it if there is no other channel.
	LastResort
	// Denied: the upstream refuses the key or sent a Retry-After, or an operator has paused the channel.
	Denied
)

// Channel is one configured channel and its health. A reload replaces the Channel; its health stays.
type Channel struct {
	// Config has the base URL of the vendor if the configuration has none.
	Config providers.Channel
	Keys   []*Key

	pause *atomic.Pointer[Pause]
	*channelHealth
}

// channelHealth is the part of a Channel that a reload keeps.
type channelHealth struct {
	target

	// whole is the circuit of the channel with all its models.
	whole circuit
	// answered is when the latest call was picked that the channel answered, counted while any model has a circuit.
	answered atomic.Int64
}

// Key is one key of a channel and its health.
type Key struct {
	Secret      providers.Secret
	Fingerprint string

	target

	cooldown  keyCooldown
	cooldowns modelCooldowns
	// refusal is the latest refusal that did not name the key; nil for none since the latest success.
	refusal atomic.Pointer[refusal]
}

// target is what channels and keys have in common.
type target struct {
	monitor   *Monitor
	circuits  circuits // of single upstream models
	inFlight  atomic.Int64
	pace      pace
	lastFault atomic.Pointer[LastFault]
}

// refusal is the refusal of a key that the content of one token's request may have caused.
type refusal struct {
	token string
	key   providers.KeyFault
	at    time.Duration
}

// refusalTTL is how long a refusal counts: as long as a cooldown may last.
const refusalTTL = maxCooldown

// refusedToTwo records a refusal of the token's call. It reports whether another token received the same.
func (k *Key) refusedToTwo(token string, fault providers.KeyFault, now time.Duration) bool {
	last := k.refusal.Load()
	if last != nil && last.token != token && last.key == fault && now-last.at <= refusalTTL {
		return true
	}
	k.refusal.Store(&refusal{token, fault, now})
	return false
}

// Allows returns how a call of the token may use the key for an upstream model, and the rest of its cooldown.
func (k *Key) Allows(now time.Duration, model, token string) (Access, time.Duration) {
	whole, wholeLeft := k.cooldown.allows(now)
	ofModel, modelLeft := k.cooldowns.of(model).allows(now)
	circuit, circuitLeft := k.circuits.of(model).allows(now, token, &k.monitor.rules)
	return max(whole, ofModel, circuit), max(wholeLeft, modelLeft, circuitLeft)
}

// TryProbe takes the probes that the call requires. It reports whether the call may use the key.
func (k *Key) TryProbe(now time.Duration, model, token string) bool {
	return k.cooldown.tryProbe(now) && k.cooldowns.of(model).tryProbe(now) && k.circuits.of(model).tryProbe(now, token, &k.monitor.rules)
}

// Allows returns how a call of the token may use the channel for an upstream model, and the rest of its pause or cooldown.
func (c *Channel) Allows(now time.Duration, model, token string) (Access, time.Duration) {
	if left := c.PauseLeft(); left > 0 {
		return Denied, left
	}
	whole, wholeLeft := c.whole.allows(now, token, &c.monitor.rules)
	ofModel, modelLeft := c.circuits.of(model).allows(now, token, &c.monitor.rules)
	return max(whole, ofModel), max(wholeLeft, modelLeft)
}

// TryProbe takes the probes that the call requires. It reports whether the call may use the channel.
func (c *Channel) TryProbe(now time.Duration, model, token string) bool {
	return c.whole.tryProbe(now, token, &c.monitor.rules) && c.circuits.of(model).tryProbe(now, token, &c.monitor.rules)
}

// TryLastResort takes one of the few slots for calls without another channel. It reports whether there was one.
func (c *Channel) TryLastResort(now time.Duration, model, token string) bool {
	return c.circuits.ensure(model, now, token).tryLastResort(now, token, &c.monitor.rules)
}

// failsAltogether reports whether the channel fails, not only a model of it: the circuits of several models are open for all
// tokens, and no call was answered since the first of them opened.
func (c *channelHealth) failsAltogether(now time.Duration) bool {
	open, first := 0, now
	for _, circuit := range c.circuits.all {
		if since, is := circuit.openSince(now); is {
			open++
			first = min(first, since)
		}
	}
	return open > 1 && time.Duration(c.answered.Load()) <= first
}

// InFlight counts one call in progress at a channel and a key. The zero value is none.
type InFlight struct {
	channel, key *target
	done         func()
	ended        atomic.Bool
}

// Begin counts the call of an attempt. An earlier one must have ended. End calls done, which may be nil.
func (f *InFlight) Begin(a Attempt, done func()) {
	f.ended.Store(false)
	f.done = done
	if a.channel == nil {
		return
	}
	f.channel, f.key = &a.channel.target, &a.key.target
	f.channel.inFlight.Add(1)
	f.key.inFlight.Add(1)
}

// End ends the count. Further calls do nothing. It is safe for concurrent use.
func (f *InFlight) End() {
	if f.channel == nil && f.done == nil || !f.ended.CompareAndSwap(false, true) {
		return
	}
	if f.channel != nil {
		f.channel.inFlight.Add(-1)
		f.key.inFlight.Add(-1)
	}
	if f.done != nil {
		f.done()
	}
}
