package health

import (
	"cmp"
	"math"
	"math/bits"
	"time"
)

// The defaults of Options.
const (
	DefaultCooldown         = 30 * time.Second
	DefaultCooldownFailures = 5
	DefaultCooldownShare    = 0.5
	DefaultCooldownWindow   = 30 * time.Second
)

const (
	// MaxCooldownFailures bounds Options.CooldownFailures. A history holds 64 calls of a token, twice as many.
	MaxCooldownFailures = 32
	// maxHistories bounds the tokens with a history in a circuit. A further token replaces the one whose latest call is the oldest.
	maxHistories = 32
)

// rules define when a circuit opens, and for how long.
type rules struct {
	failures int
	share    float64
	window   time.Duration
	cooldown time.Duration
}

func newRules(opts *Options) rules {
	return rules{
		failures: min(cmp.Or(max(opts.CooldownFailures, 0), DefaultCooldownFailures), MaxCooldownFailures),
		share:    cmp.Or(max(opts.CooldownShare, 0), DefaultCooldownShare),
		window:   cmp.Or(max(opts.CooldownWindow, 0), DefaultCooldownWindow),
		cooldown: cmp.Or(max(opts.Cooldown, 0), DefaultCooldown),
	}
}

// history holds the outcomes of the latest calls of one token at an upstream. However many calls a token sends, it has one history.
type history struct {
	token string
	at    time.Duration // of the latest call
	// hard and soft have one bit for each of the latest n calls, the latest call in the lowest bit.
	hard, soft uint64
	n          int
	// own is the circuit for this token only.
	own opening
}

// add records a call that failed as a circuit counts it; nil: it succeeded.
func (h *history) add(now time.Duration, f *failure, rules *rules) {
	if now-h.at > rules.window {
		h.hard, h.soft, h.n = 0, 0, 0
	}
	h.at, h.n = now, min(h.n+1, bits.UintSize)
	h.hard, h.soft = h.hard<<1, h.soft<<1
	switch {
	case f == nil:
	case f.soft:
		h.soft |= 1
	default:
		h.hard |= 1
	}
}

func (h *history) recent(now time.Duration, rules *rules) bool {
	return h.n > 0 && now-h.at <= rules.window
}

func (h *history) succeededLast(now time.Duration, rules *rules) bool {
	return h.recent(now, rules) && (h.hard|h.soft)&1 == 0
}

// sample counts the failures among the latest calls. failing: the latest call failed, and the failures reach the share of the rules.
func (h *history) sample(failures uint64, calls int, rules *rules) (count int, failing bool) {
	calls = min(calls, h.n)
	count = bits.OnesCount64(failures & (1<<calls - 1))
	return count, failures&1 == 1 && float64(count) >= rules.share*float64(calls)
}

// verdict returns the access of this token by its own latest calls.
func (h *history) verdict(f failure, rules *rules) Access {
	enough := rules.failures
	if f.enough > 0 {
		enough = f.enough
	}
	if count, failing := h.sample(h.hard, 2*enough, rules); failing && count >= enough {
		return LastResort
	}
	if count, failing := h.sample(h.hard|h.soft, 2*enough, rules); failing && count >= enough {
		return Deferred
	}
	return Allowed
}

// verdict returns the access of all tokens. It samples the recent calls of each token evenly. The circuit opens when enough of
// these have failed, and the calls of enough tokens fail: the share of the rules, and at least two.
func (c *circuit) verdict(now time.Duration, rules *rules) Access {
	tokens := 0
	for i := range c.histories {
		if c.histories[i].recent(now, rules) {
			tokens++
		}
	}
	if tokens < 2 {
		return Allowed
	}
	each := (2*rules.failures + tokens - 1) / tokens
	enough := max(2, int(math.Ceil(rules.share*float64(tokens))))
	var hard, hardTokens, all, allTokens int
	for i := range c.histories {
		h := &c.histories[i]
		if !h.recent(now, rules) {
			continue
		}
		count, failing := h.sample(h.hard, each, rules)
		hard += count
		if failing {
			hardTokens++
		}
		count, failing = h.sample(h.hard|h.soft, each, rules)
		all += count
		if failing {
			allTokens++
		}
	}
	switch {
	case hard >= rules.failures && hardTokens >= enough:
		return LastResort
	case all >= rules.failures && allTokens >= enough:
		return Deferred
	default:
		return Allowed
	}
}

func (c *circuit) history(token string) *history {
	for i := range c.histories {
		if c.histories[i].token == token {
			return &c.histories[i]
		}
	}
	return nil
}

// historyOf returns the history of a token. It creates one if there is none.
func (c *circuit) historyOf(token string, now time.Duration, rules *rules) *history {
	if h := c.history(token); h != nil {
		return h
	}
	oldest := -1
	for i := range c.histories {
		h := &c.histories[i]
		if !h.recent(now, rules) && h.own.over(now) {
			*h = history{token: token}
			return h
		}
		if oldest < 0 || h.at < c.histories[oldest].at {
			oldest = i
		}
	}
	if len(c.histories) < maxHistories {
		c.histories = append(c.histories, history{token: token})
		return &c.histories[len(c.histories)-1]
	}
	c.histories[oldest] = history{token: token}
	return &c.histories[oldest]
}
