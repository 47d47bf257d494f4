package router

import (
	"time"

	"modelrelay/providers"
)

// monitor weighs how attempts ended, by its rules and on its clock, and tells other processes which cooldowns begin and end
// by that.
type monitor struct {
	rules rules
	tell  func(Event) // nil: nobody is told
	start time.Time
}

// now reads the clock. It never shows 0.
func (m *monitor) now() time.Duration { return time.Since(m.start) + 1 }

// Report tells how the attempt at a pick ended; nil is success. The fault's Blame says against what it speaks.
//
// A fault of the channel speaks against the one model, or, where no connection came about, against the channel. A key cools down
// for all tokens when the vendor names it, or the balance of its account, or when it refuses the calls of two tokens. One that is
// merely busy, may not use the model, or is refused to one token, is left alone for that model by the evidence. Of a canceled call
// only its probe ends.
func (m *monitor) Report(to Pick, fault *providers.Fault) {
	now := m.now()
	m.count(to, now, fault)
	channel := to.channel
	switch {
	case fault == nil:
		m.succeeded(to, now)
		return
	case fault.Blame == providers.BlameChannel:
		trouble := newTrouble(fault, to.Key)
		channel.trouble.Store(trouble)
		if to.blamed {
			break
		}
		if fault.Unreached {
			m.countFault(to, &channel.whole, Event{Circuit: true}, now, fault, trouble)
			break
		}
		m.countFault(to, channel.circuits.begin(to.Model, now, to.token), Event{Circuit: true, Model: to.Model}, now, fault, trouble)
		if _, is := channel.whole.openSince(now); !is && channel.spans(now) {
			channel.whole.learn(now, m.rules.cooldown, open)
			m.began(to, Event{Circuit: true}, m.rules.cooldown, open, trouble)
		}
	case fault.Blame == providers.BlameKey && to.key != nil:
		m.refused(to, now, fault)
	}
	// What does not speak against the two ends a probe there.
	channel.whole.leave(now, to.token, to.picked)
	channel.circuits.of(to.Model).leave(now, to.token, to.picked)
}

// ReportPoll tells how a look at a job under way ended. That says whether the channel is there and the key is good, and nothing
// of how it takes new work.
func (m *monitor) ReportPoll(to Pick, fault *providers.Fault) {
	now := m.now()
	m.count(to, now, fault)
	switch {
	case fault == nil:
		if to.channel.whole.succeeded(now, to.token, to.picked, &m.rules) {
			m.ended(to, Event{Circuit: true})
		}
	case fault.Blame == providers.BlameChannel:
		trouble := newTrouble(fault, to.Key)
		to.channel.trouble.Store(trouble)
		if fault.Unreached {
			m.countFault(to, &to.channel.whole, Event{Circuit: true}, now, fault, trouble)
		}
	case fault.Blame == providers.BlameKey && to.key != nil && !sparesKey(fault):
		m.refused(to, now, fault)
	}
}

// count puts the attempt into the figures of the last minute.
func (m *monitor) count(to Pick, now time.Duration, fault *providers.Fault) {
	if fault != nil && fault.Kind == providers.Canceled {
		return
	}
	failed := fault != nil && fault.Blame != providers.BlameNone
	to.channel.pace.count(now, failed)
	if to.key != nil {
		to.key.pace.count(now, failed)
	}
}

// evidence is what the fault of a call says.
func (p Pick) evidence(fault *providers.Fault) evidence {
	e := evidence{token: p.token, picked: p.picked, weak: fault.Blame == providers.BlameChannel && isWeak(fault), retryAfter: fault.RetryAfter}
	if fault.Blame == providers.BlameKey && (fault.Kind == providers.RateLimited || fault.Key == providers.KeyRefused || fault.Key == providers.KeyExhausted) {
		e.enough = 1 // a token that is told to slow down, or is refused, goes elsewhere at once
	}
	return e
}

// stop counts a fault against a circuit, and tells others when that opens it for all.
func (m *monitor) countFault(to Pick, of *circuit, what Event, now time.Duration, fault *providers.Fault, trouble *Trouble) {
	if left, level := of.failed(now, to.evidence(fault), &m.rules); level > closed {
		m.began(to, what, left, level, trouble)
	}
}

// refused leaves a key alone, or a model of it.
func (m *monitor) refused(to Pick, now time.Duration, fault *providers.Fault) {
	trouble := newTrouble(fault, to.Key)
	to.key.trouble.Store(trouble)
	what := Event{Key: to.Key.Fingerprint()}
	if sparesKey(fault) || !fault.NamesKey() && !to.key.doubted(to.token, fault.Key, now) {
		if to.blamed && fault.Key == providers.KeyForbidden {
			return
		}
		what.Circuit, what.Model = true, to.Model
		m.countFault(to, to.key.circuits.begin(to.Model, now, to.token), what, now, fault, trouble)
		return
	}
	cooldown := &to.key.cooldown
	if ofModel(fault) && to.Model != "" {
		what.Model, cooldown = to.Model, to.key.cooldowns.begin(to.Model, now)
	}
	if left, news := cooldown.failed(now, to.picked, m.rules.cooldown, fault); news {
		what.Length = cooldown.measure()
		m.began(to, what, left, barred, trouble)
	}
}

// succeeded ends what an answer proves wrong.
func (m *monitor) succeeded(to Pick, now time.Duration) {
	channel := to.channel
	if channel.circuits.known.Load() != nil {
		channel.answered.Store(int64(to.picked))
	}
	if channel.whole.succeeded(now, to.token, to.picked, &m.rules) {
		m.ended(to, Event{Circuit: true})
	}
	if channel.circuits.of(to.Model).succeeded(now, to.token, to.picked, &m.rules) {
		m.ended(to, Event{Circuit: true, Model: to.Model})
	}
	if to.key == nil {
		return
	}
	if to.key.doubt.Load() != nil {
		to.key.doubt.Store(nil)
	}
	if to.key.cooldown.succeeded(to.picked) {
		m.ended(to, Event{Key: to.Key.Fingerprint()})
	}
	if cooldown := to.key.cooldowns.of(to.Model); cooldown != nil && cooldown.succeeded(to.picked) {
		m.ended(to, Event{Key: to.Key.Fingerprint(), Model: to.Model})
	}
	if to.key.circuits.of(to.Model).succeeded(now, to.token, to.picked, &m.rules) {
		m.ended(to, Event{Circuit: true, Key: to.Key.Fingerprint(), Model: to.Model})
	}
}

// began and ended tell others of a cooldown.
func (m *monitor) began(to Pick, what Event, left time.Duration, level standing, trouble *Trouble) {
	if m.tell == nil {
		return
	}
	what.Channel, what.Upstream, what.Left, what.Trouble = to.Channel.Name, upstreamOf(to.Channel), left, trouble
	what.Slow, what.Asked = level == deferred, level == barred
	m.tell(what)
}

func (m *monitor) ended(to Pick, what Event) {
	if m.tell == nil {
		return
	}
	what.Channel, what.Upstream = to.Channel.Name, upstreamOf(to.Channel)
	m.tell(what)
}

// wake ends the cooldowns of a channel or a key.
func (m *monitor) wake(now time.Duration, h *health, of Event) {
	told := func(model string, circuit bool) {
		if m.tell != nil {
			news := of
			news.Model, news.Circuit = model, circuit
			m.tell(news)
		}
	}
	h.whole.wake(now)
	told("", true)
	for model, c := range h.circuits.all {
		c.wake(now)
		told(model, true)
	}
	if of.Key == "" { // cooldowns are keys' alone
		return
	}
	h.cooldown.learn(now, 0, 0)
	told("", false)
	for model, cooldown := range h.cooldowns.all {
		cooldown.learn(now, 0, 0)
		told(model, false)
	}
}

// isWeak tells whether a fault of the channel is one that requests alone can bring about: an answer that takes too long, or an
// odd one.
func isWeak(f *providers.Fault) bool { return f.Odd || f.Kind == providers.Timeout && !f.Unreached }

// sparesKey tells whether a fault of a key leaves it as it is: it is busy, or may not do this. The evidence decides whether it
// is left alone for the one model.
func sparesKey(f *providers.Fault) bool {
	return f.Key == providers.KeyForbidden || f.Key == providers.KeyBusy && f.Kind == providers.RateLimited
}

// ofModel tells whether a fault of a key is one of its model alone: rates, and a day's quota, are limited for each model,
// while a key that is refused or out of money is so for all.
func ofModel(f *providers.Fault) bool { return f.Kind == providers.RateLimited }
