package router

import (
	"cmp"
	"math"
	"math/bits"
	"time"
)

const (
	// DefaultCooldownFailures is how many of the recent calls must have failed before a circuit opens.
	DefaultCooldownFailures = 5
	// DefaultCooldownShare is the share of them that must have failed.
	DefaultCooldownShare = 0.5
	// DefaultCooldownWindow is how long a call is recent.
	DefaultCooldownWindow = 30 * time.Second
	// MaxCooldownFailures bounds the first: of each token's calls the last sixty-four are remembered, twice as many as may
	// have to fail.
	MaxCooldownFailures = 32
	// maxRecords is how many tokens a circuit remembers. Where more call, those that called last count for all.
	maxRecords = 32
)

// rules say when a circuit opens, and for how long.
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

// outcome of a call, as a circuit counts it.
type outcome int

const (
	success outcome = iota
	strong
	weak
)

func failure(isWeak bool) outcome {
	if isWeak {
		return weak
	}
	return strong
}

// record is what the last calls of one token say of an upstream. A flood of calls is no more than one record.
type record struct {
	token string
	at    time.Duration // of the last call
	// bad and slow have a bit for each of the last n calls, the latest lowest: it failed, or was slow or odd.
	bad, slow uint64
	n         int
	// own is the circuit for this token alone.
	own opening
}

func (v *record) add(now time.Duration, what outcome, rules *rules) {
	if now-v.at > rules.window {
		v.bad, v.slow, v.n = 0, 0, 0
	}
	v.at, v.n = now, min(v.n+1, bits.UintSize)
	v.bad, v.slow = v.bad<<1, v.slow<<1
	switch what {
	case strong:
		v.bad |= 1
	case weak:
		v.slow |= 1
	case success:
	}
}

func (v *record) recent(now time.Duration, rules *rules) bool {
	return v.n > 0 && now-v.at <= rules.window
}

// well tells whether its last call was answered, a moment ago.
func (v *record) well(now time.Duration, rules *rules) bool {
	return v.recent(now, rules) && (v.bad|v.slow)&1 == 0
}

// sample counts the failures among the latest calls, at most so many, and tells whether they are the share that it takes, the
// very last one among them.
func (v *record) sample(history uint64, most int, rules *rules) (faults int, fails bool) {
	most = min(most, v.n)
	faults = bits.OnesCount64(history & (1<<most - 1))
	return faults, history&1 == 1 && float64(faults) >= rules.share*float64(most)
}

// verdict is what the circuit should be for this token alone: its own last calls decide.
func (v *record) verdict(e evidence, rules *rules) standing {
	enough := rules.failures
	if e.enough > 0 {
		enough = e.enough
	}
	if faults, fails := v.sample(v.bad, 2*enough, rules); fails && faults >= enough {
		return open
	}
	if faults, fails := v.sample(v.bad|v.slow, 2*enough, rules); fails && faults >= enough {
		return deferred
	}
	return closed
}

// verdict is what the circuit should be for all. The recent calls are taken evenly from the tokens that made them. It opens
// where enough of these have failed, and where of the tokens the share sees its calls fail, at least two: one alone proves
// nothing to the others.
func (c *circuit) verdict(now time.Duration, rules *rules) standing {
	tokens := 0
	for i := range c.records {
		if c.records[i].recent(now, rules) {
			tokens++
		}
	}
	if tokens < 2 {
		return closed
	}
	each := (2*rules.failures + tokens - 1) / tokens
	failing := max(2, int(math.Ceil(rules.share*float64(tokens))))
	var badFaults, badTokens, slowFaults, slowTokens int
	for i := range c.records {
		v := &c.records[i]
		if !v.recent(now, rules) {
			continue
		}
		faults, fails := v.sample(v.bad, each, rules)
		badFaults += faults
		if fails {
			badTokens++
		}
		faults, fails = v.sample(v.bad|v.slow, each, rules)
		slowFaults += faults
		if fails {
			slowTokens++
		}
	}
	switch {
	case badFaults >= rules.failures && badTokens >= failing:
		return open
	case slowFaults >= rules.failures && slowTokens >= failing:
		return deferred
	default:
		return closed
	}
}

// record is the token's, nil where it has not called.
func (c *circuit) record(token string) *record {
	for i := range c.records {
		if c.records[i].token == token {
			return &c.records[i]
		}
	}
	return nil
}

// recordOf is record for a token that is about to say something. Where too many have, the one that was silent longest leaves.
func (c *circuit) recordOf(token string, now time.Duration, rules *rules) *record {
	if v := c.record(token); v != nil {
		return v
	}
	oldest := -1
	for i := range c.records {
		v := &c.records[i]
		if !v.recent(now, rules) && v.own.over(now) {
			*v = record{token: token}
			return v
		}
		if oldest < 0 || v.at < c.records[oldest].at {
			oldest = i
		}
	}
	if len(c.records) < maxRecords {
		c.records = append(c.records, record{token: token})
		return &c.records[len(c.records)-1]
	}
	c.records[oldest] = record{token: token}
	return &c.records[oldest]
}
