package router

import (
	"sync/atomic"
	"time"

	"modelrelay/providers"
)

// health is how one channel, or one of its keys, is doing. It outlives a reload of the channels.
type health struct {
	// cooldown and cooldowns are a key's alone: its own, and those for single upstream models.
	cooldown  keyCooldown
	cooldowns modelCooldowns
	// circuits are those of single upstream models, whole that of a channel with all its models.
	circuits circuits
	whole    circuit
	// answered is when the latest call was picked that a channel with a circuit answered, for any model.
	answered atomic.Int64

	// doubt is the last refusal of a key that the vendor did not name; nil for none since its last success.
	doubt atomic.Pointer[doubt]

	inFlight atomic.Int64
	pace     pace
	trouble  atomic.Pointer[Trouble]
}

// doubt is a refusal of a key that the content of one token's request may have brought about.
type doubt struct {
	token string
	key   providers.KeyTrouble
	at    time.Duration
}

// doubtLife is how long a refusal waits for that of another token: as long as a cooldown may last.
const doubtLife = maxCooldown

// doubted notes a refusal of the token's call, and reports whether another token saw the same.
func (h *health) doubted(token string, key providers.KeyTrouble, now time.Duration) bool {
	last := h.doubt.Load()
	if last != nil && last.token != token && last.key == key && now-last.at <= doubtLife {
		return true
	}
	h.doubt.Store(&doubt{token, key, now})
	return false
}

// Trouble is the last fault that spoke against a channel or a key, without the upstream's own text.
type Trouble struct {
	At time.Time `json:"at"`
	// Kind is that of the fault, Code the upstream's own error code, Status that of its answer, 0 when there was none.
	Kind   providers.Kind `json:"kind"`
	Code   string         `json:"code,omitempty"`
	Status int            `json:"status,omitempty"`
	// Key is "refused" or "exhausted" where the vendor said so of the key.
	Key string `json:"key,omitempty"`
}

func newTrouble(fault *providers.Fault, key providers.Secret) *Trouble {
	trouble := &Trouble{At: time.Now(), Kind: fault.Kind, Code: providers.Cut(providers.Reason(fault.Code, key), providers.WordLimit)}
	if fault.Upstream != nil {
		trouble.Status = fault.Upstream.Status
	}
	if fault.Blame == providers.BlameKey {
		switch fault.Key {
		case providers.KeyRefused:
			trouble.Key = "refused"
		case providers.KeyForbidden:
			trouble.Key = "forbidden"
		case providers.KeyExhausted:
			trouble.Key = "exhausted"
		case providers.KeyBusy:
		}
	}
	return trouble
}

// keyStanding is how a key stands for a call of the token: the worst of its own cooldown, that for the model, and the model's
// circuit. It also returns for how long.
func (h *health) keyStanding(now time.Duration, model, token string, rules *rules) (standing, time.Duration) {
	how, left := h.cooldown.standing(now)
	if apart := h.cooldowns.of(model); apart != nil {
		its, lasts := apart.standing(now)
		how, left = max(how, its), max(left, lasts)
	}
	its, stops := h.circuits.of(model).standing(now, token, rules)
	return max(how, its), max(left, stops)
}

// tryKey takes the turns of the one call after a cooldown; false when another has taken one.
func (h *health) tryKey(now time.Duration, model, token string, rules *rules) bool {
	apart := h.cooldowns.of(model)
	return h.cooldown.try(now) && (apart == nil || apart.try(now)) && h.circuits.of(model).try(now, token, rules)
}

// channelStanding is how a channel stands for a call of the token: the worse of its own circuit and the model's.
func (h *health) channelStanding(now time.Duration, model, token string, rules *rules) (standing, time.Duration) {
	how, left := h.whole.standing(now, token, rules)
	its, stops := h.circuits.of(model).standing(now, token, rules)
	return max(how, its), max(left, stops)
}

func (h *health) tryChannel(now time.Duration, model, token string, rules *rules) bool {
	return h.whole.try(now, token, rules) && h.circuits.of(model).try(now, token, rules)
}

// spans reports whether what fails is the channel rather than a model of it: several of its models are open for all, and
// nothing was answered since the first of them opened.
func (h *health) spans(now time.Duration) bool {
	open, first := 0, now
	for _, c := range h.circuits.all {
		if since, is := c.openSince(now); is {
			open++
			first = min(first, since)
		}
	}
	return open > 1 && time.Duration(h.answered.Load()) <= first
}

// pace counts the attempts of the last minute and those that failed, in slots of ten seconds, so that counting is one
// atomic operation. A slot holds, from the top, its number, faults and calls.
type pace struct{ slots [paceSlots]atomic.Uint64 }

const (
	paceSlot  = 10 * time.Second
	paceSlots = 6
	paceBits  = 20 // of each of the two counts: a million in ten seconds
	maxPace   = 1<<paceBits - 1
)

func (p *pace) count(now time.Duration, failed bool) {
	number := uint64(now / paceSlot)
	slot := &p.slots[number%paceSlots]
	for {
		old := slot.Load()
		word := old
		if old>>(2*paceBits) != number {
			word = number << (2 * paceBits)
		}
		if word&maxPace < maxPace {
			word++
		}
		if failed && word>>paceBits&maxPace < maxPace {
			word += 1 << paceBits
		}
		if word == old || slot.CompareAndSwap(old, word) {
			return
		}
	}
}

// lastMinute adds up the slots that are not older than a minute, the running one included.
func (p *pace) lastMinute(now time.Duration) (calls, faults int64) {
	number := uint64(now / paceSlot)
	for i := range p.slots {
		word := p.slots[i].Load()
		if number-word>>(2*paceBits) < paceSlots {
			calls += int64(word & maxPace)
			faults += int64(word >> paceBits & maxPace)
		}
	}
	return calls, faults
}

// InFlight is one call under way at a pick. The zero value is none.
type InFlight struct {
	channel, key *health
	done         func()
	ended        atomic.Bool
}

// Begin counts a call as under way at the pick, the earlier one having ended.
func (f *InFlight) Begin(to Pick) {
	f.ended.Store(false)
	f.done = to.Done
	if f.channel, f.key = to.channel, to.key; f.channel != nil {
		f.channel.inFlight.Add(1)
		f.key.inFlight.Add(1)
	}
}

// End counts it no more. It may be called again, and from any goroutine.
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
