package health

import (
	"time"

	"modelrelay/providers"
)

// Attempt is one request to a channel with one of its keys. The caller reports its outcome.
type Attempt struct {
	providers.Target

	// Token is the stable id of the calling token.
	Token string
	// Blamed: a fault of the call was counted against another channel. A further one is not, because the content of the call may be the cause.
	Blamed bool

	picked  time.Duration // on the monitor's clock
	channel *Channel
	key     *Key
}

// Attempt returns an attempt that was picked now, with the upstream model.
func (c *Channel) Attempt(now time.Duration, key *Key, model string) Attempt {
	return Attempt{
		Target: providers.Target{Channel: c.Config, Key: key.Secret, Model: model},
		picked: now, channel: c, key: key,
	}
}

// Fingerprint returns that of the key, computed when the configuration was read.
func (a Attempt) Fingerprint() string {
	if a.key == nil {
		return ""
	}
	return a.key.Fingerprint
}

// Report records the outcome of an attempt; nil is success. The fault's Blame decides what it counts against.
//
// A fault of the channel counts against the model, or against the channel if there was no connection. A key cools down for all tokens if
// the vendor names the key or the balance of its account, or if it refuses calls of two tokens. A key that is busy, may not use the model,
// or is refused to one token, counts as a failure of that key with the model. A canceled call only releases its probe.
func (m *Monitor) Report(a Attempt, fault *providers.Fault) {
	now := m.Now()
	a.count(now, fault)
	switch {
	case fault == nil:
		m.succeeded(a, now)
		return
	case fault.Blame == providers.BlameChannel:
		m.channelFailed(a, now, fault)
	case fault.Blame == providers.BlameKey:
		m.keyFailed(a, now, fault)
	}
	a.channel.whole.release(now, a.Token, a.picked)
	a.channel.circuits.of(a.Model).release(now, a.Token, a.picked)
}

// ReportPoll records the outcome of a request about a job in progress. It shows nothing about new work.
func (m *Monitor) ReportPoll(a Attempt, fault *providers.Fault) {
	now := m.Now()
	a.count(now, fault)
	switch {
	case fault == nil:
		if a.channel.whole.succeeded(now, a.Token, a.picked, &m.rules) {
			m.publishOf(a.Channel, Event{Circuit: true})
		}
	case fault.Blame == providers.BlameChannel:
		last := newLastFault(fault, a.Key)
		a.channel.lastFault.Store(last)
		if fault.Unreached {
			m.countFault(a, &a.channel.whole, Event{Circuit: true, LastFault: last}, now, fault)
		}
	case fault.Blame == providers.BlameKey && !sparesKey(fault):
		m.keyFailed(a, now, fault)
	}
}

// count adds the attempt to the figures of the last minute.
func (a Attempt) count(now time.Duration, fault *providers.Fault) {
	if fault != nil && fault.Kind == providers.Canceled {
		return
	}
	failed := fault != nil && fault.Blame != providers.BlameNone
	a.channel.pace.count(now, failed)
	a.key.pace.count(now, failed)
}

func (m *Monitor) succeeded(a Attempt, now time.Duration) {
	channel, key := a.channel, a.key
	if channel.circuits.known.Load() != nil {
		channel.answered.Store(int64(a.picked))
	}
	if channel.whole.succeeded(now, a.Token, a.picked, &m.rules) {
		m.publishOf(a.Channel, Event{Circuit: true})
	}
	if channel.circuits.of(a.Model).succeeded(now, a.Token, a.picked, &m.rules) {
		m.publishOf(a.Channel, Event{Circuit: true, Model: a.Model})
	}
	if key.refusal.Load() != nil {
		key.refusal.Store(nil)
	}
	if key.cooldown.succeeded(a.picked) {
		m.publishOf(a.Channel, Event{Key: key.Fingerprint})
	}
	if key.cooldowns.of(a.Model).succeeded(a.picked) {
		m.publishOf(a.Channel, Event{Key: key.Fingerprint, Model: a.Model})
	}
	if key.circuits.of(a.Model).succeeded(now, a.Token, a.picked, &m.rules) {
		m.publishOf(a.Channel, Event{Circuit: true, Key: key.Fingerprint, Model: a.Model})
	}
}

func (m *Monitor) channelFailed(a Attempt, now time.Duration, fault *providers.Fault) {
	channel, last := a.channel, newLastFault(fault, a.Key)
	channel.lastFault.Store(last)
	if a.Blamed {
		return
	}
	of, what := &channel.whole, Event{Circuit: true, LastFault: last}
	if fault.Unreached {
		m.countFault(a, of, what, now, fault)
		return
	}
	ofModel := what
	ofModel.Model = a.Model
	m.countFault(a, channel.circuits.ensure(a.Model, now, a.Token), ofModel, now, fault)
	if _, open := of.openSince(now); !open && channel.failsAltogether(now) {
		of.learn(now, m.rules.cooldown, LastResort)
		what.Remaining = m.rules.cooldown
		m.publishOf(a.Channel, what)
	}
}

// keyFailed starts a cooldown of the key or of one of its models, or counts the fault against that model.
func (m *Monitor) keyFailed(a Attempt, now time.Duration, fault *providers.Fault) {
	key, last := a.key, newLastFault(fault, a.Key)
	key.lastFault.Store(last)
	what := Event{Key: key.Fingerprint, LastFault: last}
	if sparesKey(fault) || !fault.NamesKey() && !key.refusedToTwo(a.Token, fault.Key, now) {
		if a.Blamed && fault.Key == providers.KeyForbidden {
			return
		}
		what.Circuit, what.Model = true, a.Model
		m.countFault(a, key.circuits.ensure(a.Model, now, a.Token), what, now, fault)
		return
	}
	cooldown := &key.cooldown
	if fault.Kind == providers.RateLimited && a.Model != "" { // rates and daily quotas are limited for each model
		what.Model, cooldown = a.Model, key.cooldowns.ensure(a.Model, now)
	}
	var changed bool
	if what.Remaining, changed = cooldown.failed(now, a.picked, m.rules.cooldown, fault); changed {
		what.Length, what.HasRetryAfter = cooldown.lastLength(), true
		m.publishOf(a.Channel, what)
	}
}

// countFault counts a fault against a circuit, and publishes the event if that opens it for all tokens.
func (m *Monitor) countFault(a Attempt, of *circuit, what Event, now time.Duration, fault *providers.Fault) {
	f := failure{token: a.Token, picked: a.picked, soft: fault.Blame == providers.BlameChannel && isSoft(fault), retryAfter: fault.RetryAfter}
	if fault.Blame == providers.BlameKey && (fault.Kind == providers.RateLimited || fault.Key == providers.KeyRefused ||
		fault.Key == providers.KeyExhausted) {
		f.enough = 1 // a token that is limited or refused uses another key at once
	}
	left, access := of.failed(now, f, &m.rules)
	if access > Allowed {
		what.Remaining, what.Slow, what.HasRetryAfter = left, access == Deferred, access == Denied
		m.publishOf(a.Channel, what)
	}
}

// isSoft reports whether the content of requests can cause a fault of the channel: a late or malformed answer.
func isSoft(f *providers.Fault) bool {
	return f.Malformed || f.Kind == providers.Timeout && !f.Unreached
}

// sparesKey reports whether a fault of a key starts no cooldown of the whole key: it is busy, or may not use the model.
func sparesKey(f *providers.Fault) bool {
	return f.Key == providers.KeyForbidden || f.Key == providers.KeyBusy && f.Kind == providers.RateLimited
}
