package health

import (
	"net/url"
	"time"

	"modelrelay/providers"
)

// Event is what processes share: the beginning, growth or end of a cooldown, an operator's pause or its end, or the end of all
// cooldowns of a channel. A circuit shares an opening for all tokens, not one for a single token.
type Event struct {
	Channel string `json:"channel,omitempty"`
	// Upstream identifies the vendor and base URL of the channel. Processes with another configuration ignore the event.
	Upstream string `json:"upstream,omitempty"`
	// Key is the fingerprint of the key, "" for the channel. Model is the upstream model, "" for all.
	Key   string `json:"key,omitempty"`
	Model string `json:"model,omitempty"`
	// Remaining is the rest of the cooldown or pause, 0 at its end. Length is the length of a key's cooldown, from which the next one grows.
	Remaining time.Duration `json:"-"`
	Length    time.Duration `json:"length,omitempty"`
	// until is the end of Remaining, of an event that a Sharer has not sent yet.
	until time.Time
	// Circuit: the cooldown is that of a circuit. Otherwise it is that of a key which the upstream refused.
	Circuit bool `json:"circuit,omitempty"`
	// Slow: the channel is used after others. HasRetryAfter: the upstream sent a Retry-After, so no call is sent.
	Slow          bool `json:"slow,omitempty"`
	HasRetryAfter bool `json:"asked,omitempty"`
	// LastFault is the cause of a cooldown; nil at its end.
	LastFault *LastFault `json:"last_fault,omitempty"`

	// Paused is the channel that an operator pauses. Resumed is the channel whose pause an operator ends; that event is stored as
	// long as a pause may last, for processes that missed it. CooldownsEnded is the channel whose cooldowns an operator ends.
	Paused         string `json:"paused,omitempty"`
	Resumed        string `json:"resumed,omitempty"`
	CooldownsEnded string `json:"cooldowns_ended,omitempty"`
	By             string `json:"by,omitempty"`
	Reason         string `json:"reason,omitempty"`
}

// Name identifies the subject of the event. A later event of the same name replaces it.
func (e *Event) Name() string {
	switch {
	case e.Paused != "", e.Resumed != "":
		return "pause " + url.QueryEscape(e.Paused+e.Resumed)
	case e.CooldownsEnded != "":
		return "wake " + url.QueryEscape(e.CooldownsEnded)
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

// ByOperator reports whether an operator caused the event. It then also replaces one of its name that ends later.
func (e *Event) ByOperator() bool { return e.Paused != "" || e.Resumed != "" }

func upstreamOf(c providers.Channel) string {
	return providers.Secret(c.Vendor + " " + c.BaseURL).Fingerprint()
}

func (m *Monitor) publishOf(c providers.Channel, e Event) {
	if m.publish != nil {
		e.Channel, e.Upstream = c.Name, upstreamOf(c)
		m.publish(e)
	}
}

// Learn applies an event of another process. It ignores events of channels, upstreams and keys that this process does not have.
func (m *Monitor) Learn(e Event) {
	switch {
	case e.Paused != "":
		m.Pause(e.Paused, &Pause{Until: time.Now().Add(e.Remaining).UTC(), By: e.By, Reason: e.Reason})
		return
	case e.Resumed != "":
		m.Pause(e.Resumed, nil)
		return
	case e.CooldownsEnded != "":
		m.EndCooldowns(e.CooldownsEnded)
		return
	}
	channel := m.channel(e.Channel)
	if channel == nil || upstreamOf(channel.Config) != e.Upstream {
		return
	}
	now, of := m.Now(), &channel.target
	var key *Key
	if e.Key != "" {
		if key = channel.key(func(k *Key) bool { return k.Fingerprint == e.Key }); key == nil {
			return
		}
		of = &key.target
	}
	if old := of.lastFault.Load(); e.LastFault != nil && (old == nil || old.At.Before(e.LastFault.At)) {
		of.lastFault.Store(e.LastFault)
	}
	switch {
	case e.Circuit:
		c := &channel.whole
		if key != nil || e.Model != "" {
			if c = of.circuits.of(e.Model); c == nil && e.Remaining > 0 {
				c = of.circuits.ensure(e.Model, now, "")
			}
		}
		access := LastResort
		switch {
		case e.Slow:
			access = Deferred
		case e.HasRetryAfter:
			access = Denied
		}
		c.learn(now, min(e.Remaining, maxRetryAfter), access)
	case key != nil:
		key.learn(now, e)
	}
}

func (k *Key) learn(now time.Duration, e Event) {
	cooldown := &k.cooldown
	if e.Model != "" {
		if cooldown = k.cooldowns.of(e.Model); cooldown == nil && e.Remaining > 0 {
			cooldown = k.cooldowns.ensure(e.Model, now)
		}
	}
	cooldown.learn(now, e.Remaining, e.Length)
}
