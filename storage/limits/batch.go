package limits

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"modelrelay/storage"
)

const (
	refusedMost = 10_000  // refusals remembered
	settleMost  = 2_000   // settlements in one round trip
	settleKept  = 100_000 // settlements kept while Redis is away; their leases expire anyway
	// answerKept is how long Redis remembers what it answered: longer than a command may be on its way.
	answerKept = 10 * time.Minute
	// budgetRetry is what a caller without money is told to wait: an operator needs about that to give it more.
	budgetRetry = time.Minute
)

// settlement is what a released call gives back, or with renew the sign that it still runs.
type settlement struct {
	token  storage.Allowance
	lease  string
	renew  bool
	second int64
	delta  int
	// cost is what the lease's reservation becomes, refund: nothing; read where money is set.
	cost  int64
	money bool
}

// admit is the work of one batch: settle what was released, then admit.
func (l *Limiter) admit(ctx context.Context, asked []*admission) {
	now := time.Now()
	if !l.out.Try(now) {
		l.admitAllLocally(asked, now)
		return
	}
	l.mu.Lock()
	n := min(len(l.settles), settleMost)
	settles := slices.Clone(l.settles[:n])
	l.settles = slices.Delete(l.settles, 0, n)
	l.mu.Unlock()

	b := &l.building
	defer b.reset()
	for _, s := range settles {
		b.settle(s)
	}
	for _, a := range asked {
		if !a.settle {
			b.admit(a)
		}
	}
	if len(b.groups) == 0 {
		return
	}
	b.encode(l.alive, l.last)
	l.number++
	answer, err := l.script.Run(ctx, l.client, b.keys, b.json, l.args[0], l.number, l.args[1]).Text()
	if err == nil {
		err = l.take(b, answer, now)
	} else {
		err = storage.RedisError("admit", err)
	}
	if err != nil && !errors.Is(err, storage.ErrUnavailable) {
		err = fmt.Errorf("%w: %w", storage.ErrUnavailable, err) // whatever it is, Redis does not limit now
	}
	if l.out.Note(ctx, time.Now(), err) != nil {
		l.failures.Add(1)
		l.unsettle(settles, asked)
		l.wakeUpkeep()
		l.admitAllLocally(asked, now)
		return
	}
	l.mu.Lock()
	clear(l.local) // Redis counts again
	more := len(l.settles) > 0
	l.mu.Unlock()
	if more {
		l.wakeUpkeep()
	}
}

// unsettle keeps the releases of a batch that failed, and releases what it may have admitted all the same.
// Corrections are let go: they may have been counted, and matter for a minute only.
func (l *Limiter) unsettle(settles []settlement, asked []*admission) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range settles {
		if s.lease != "" && !s.renew && len(l.settles) < settleKept {
			s.delta = 0
			l.settles = append(l.settles, s)
		}
	}
	for _, a := range asked {
		if a.lease != "" && len(l.settles) < settleKept {
			l.settles = append(l.settles, settlement{token: a.token, lease: a.lease, money: a.token.Budget > 0, cost: refund})
			a.lease = l.process + strconv.FormatUint(l.leases.Add(1), 36)
		}
	}
}

// take reads the script's answer into the grants.
func (l *Limiter) take(b *building, answer string, now time.Time) error {
	for i := range b.groups {
		g := &b.groups[i]
		line, rest, _ := strings.Cut(answer, "\n")
		answer = rest
		codes, numbers, _ := strings.Cut(line, " ")
		if len(codes) != len(g.admissions) {
			return fmt.Errorf("admit: unexpected answer %q", line)
		}
		var v [7]int64
		for j := range v {
			text, rest, _ := strings.Cut(numbers, " ")
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return fmt.Errorf("admit: unexpected answer %q", line)
			}
			v[j], numbers = n, rest
		}
		state := windowState{
			requests: int(v[0]), tokens: int(v[1]), reset: milliseconds(v[2]),
			retryRequests: milliseconds(v[3]), retryTokens: milliseconds(v[4]), second: v[5], used: v[6],
		}
		for j, a := range g.admissions {
			l.grant(a, codes[j], state, false)
		}
		if g.token.Concurrency > 0 || g.token.Budget > 0 || strings.IndexByte(codes, codeRequests) >= 0 {
			l.keepTrack(g, codes, v[6], now)
		}
	}
	return nil
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// keepTrack notes the calls that are in flight now, what is used of a budget, and a refusal that stays true for a while.
func (l *Limiter) keepTrack(g *admitGroup, codes string, used int64, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g.token.Budget > 0 && len(g.admissions) > 0 {
		if len(l.used) >= refusedMost {
			clear(l.used)
		}
		l.used[g.token.Token] = used
	}
	for i, a := range g.admissions {
		switch {
		case codes[i] == codeAdmitted && a.lease != "":
			l.start(a.token, a.lease)
		case codes[i] == codeRequests && a.cost.Requests == 1:
			if len(l.refused) >= refusedMost {
				clear(l.refused)
			}
			l.refused[a.token] = refusal{grant: a.grant, at: now}
		}
	}
}

const (
	codeAdmitted = '0' + iota
	codeRequests
	codeTokens
	codeAtOnce
	codeBudget
)

// windowState is what a window says after a batch.
type windowState struct {
	requests, tokens           int
	reset                      time.Duration
	retryRequests, retryTokens time.Duration
	second                     int64
	used                       int64 // of the budget
}

// grant writes the answer for one call.
func (l *Limiter) grant(a *admission, code byte, s windowState, local bool) {
	g := &a.grant
	*g = Grant{Allowed: code == codeAdmitted}
	if a.token.RequestsPerMinute > 0 {
		g.Requests = Window{Limit: a.token.RequestsPerMinute, Remaining: max(0, a.token.RequestsPerMinute-s.requests), Reset: s.reset}
	}
	if a.token.TokensPerMinute > 0 {
		g.Tokens = Window{Limit: a.token.TokensPerMinute, Remaining: max(0, a.token.TokensPerMinute-s.tokens), Reset: s.reset}
	}
	switch code {
	case codeAdmitted:
		if a.token.Budget > 0 {
			g.Left = max(0, a.token.Budget-s.used) + a.cost.Money
		}
		if a.token.TokensPerMinute > 0 || a.lease != "" {
			g.held = &held{
				limits: l, token: a.token, lease: a.lease, second: s.second, estimate: a.cost.Tokens, reserved: a.cost.Money, local: local,
			}
		}
	case codeRequests:
		g.RetryAfter = max(time.Millisecond, s.retryRequests)
	case codeTokens:
		g.RetryAfter = max(time.Millisecond, s.retryTokens)
	case codeBudget:
		g.Spent, g.RetryAfter = true, budgetRetry
	default:
		g.Busy, g.RetryAfter = true, time.Second // nobody knows when a call ends
	}
}
