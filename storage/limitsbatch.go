package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	refusedMost = 10_000  // refusals remembered
	settleMost  = 2_000   // settlements in one round trip
	settleKept  = 100_000 // settlements kept while Redis is away; their leases expire anyway
)

// settlement is what a released call gives back, or with renew the sign that it still runs.
type settlement struct {
	token  bucketed
	lease  string
	renew  bool
	second int64
	delta  int
}

// building is the request of one batch, put together token by token. It is reused from batch to batch.
type building struct {
	at     map[bucketed]int
	groups []admitGroup
	json   []byte
	keys   []string
}

// admitGroup is the part of one token; its lists are JSON without brackets.
type admitGroup struct {
	token                              bucketed
	release, renew, corrections, calls []byte
	admissions                         []*admission
}

func (b *building) group(token bucketed) *admitGroup {
	i, ok := b.at[token]
	if !ok {
		i = len(b.groups)
		if i < cap(b.groups) {
			b.groups = b.groups[:i+1]
		} else {
			b.groups = append(b.groups, admitGroup{})
		}
		b.at[token] = i
		g := &b.groups[i]
		g.token = token
		g.release, g.renew, g.corrections, g.calls = g.release[:0], g.renew[:0], g.corrections[:0], g.calls[:0]
		g.admissions = g.admissions[:0]
	}
	return &b.groups[i]
}

func (b *building) reset() {
	for i := range b.groups {
		clear(b.groups[i].admissions)
	}
	clear(b.at)
	clear(b.keys)
	b.groups, b.json, b.keys = b.groups[:0], b.json[:0], b.keys[:0]
}

func (b *building) settle(s settlement) {
	g := b.group(s.token)
	switch {
	case s.renew:
		g.renew = appendLease(g.renew, s.lease)
		return
	case s.lease != "":
		g.release = appendLease(g.release, s.lease)
	}
	if s.delta != 0 {
		g.corrections = appendNumber(g.corrections, s.second)
		g.corrections = appendNumber(g.corrections, int64(s.delta))
	}
}

func (b *building) admit(a *admission) {
	g := b.group(a.token)
	g.calls = appendNumber(g.calls, int64(a.cost.Requests))
	g.calls = appendNumber(g.calls, int64(a.cost.Tokens))
	g.calls = appendLease(g.calls, a.lease)
	g.admissions = append(g.admissions, a)
}

func (b *building) encode(k keys) {
	b.json = append(b.json, '[')
	for i := range b.groups {
		g := &b.groups[i]
		b.keys = append(b.keys, k.limit(g.token.id), k.leases(g.token.id))
		if i > 0 {
			b.json = append(b.json, ',')
		}
		b.json = append(b.json, '[')
		b.json = strconv.AppendInt(b.json, int64(g.token.rpm), 10)
		b.json = append(b.json, ',')
		b.json = strconv.AppendInt(b.json, int64(g.token.tpm), 10)
		b.json = append(b.json, ',')
		b.json = strconv.AppendInt(b.json, int64(g.token.atOnce), 10)
		for _, list := range [][]byte{g.release, g.renew, g.corrections, g.calls} {
			b.json = append(b.json, ',', '[')
			b.json = append(b.json, list...)
			b.json = append(b.json, ']')
		}
		b.json = append(b.json, ']')
	}
	b.json = append(b.json, ']')
}

// appendLease takes letters and digits only, which need no escaping.
func appendLease(list []byte, lease string) []byte {
	if len(list) > 0 {
		list = append(list, ',')
	}
	list = append(list, '"')
	list = append(list, lease...)
	return append(list, '"')
}

func appendNumber(list []byte, n int64) []byte {
	if len(list) > 0 {
		list = append(list, ',')
	}
	return strconv.AppendInt(list, n, 10)
}

// admit is the work of one batch: settle what was released, then admit.
func (l *Limits) admit(ctx context.Context, asked []*admission) {
	now := time.Now()
	if !l.out.try(now) {
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
	b.encode(l.keys)
	answer, err := l.script.Run(ctx, l.client, b.keys, b.json, l.lease.Milliseconds()).Text()
	if err == nil {
		err = l.take(b, answer, now)
	} else {
		err = redisError("admit", err)
	}
	if err != nil && !errors.Is(err, ErrUnavailable) {
		err = fmt.Errorf("%w: %w", ErrUnavailable, err) // whatever it is, Redis does not limit now
	}
	if l.out.note(ctx, time.Now(), err) != nil {
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
func (l *Limits) unsettle(settles []settlement, asked []*admission) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range settles {
		if s.lease != "" && !s.renew && len(l.settles) < settleKept {
			l.settles = append(l.settles, settlement{token: s.token, lease: s.lease})
		}
	}
	for _, a := range asked {
		if a.lease != "" && len(l.settles) < settleKept {
			l.settles = append(l.settles, settlement{token: a.token, lease: a.lease})
			a.lease = l.process + strconv.FormatUint(l.leases.Add(1), 36)
		}
	}
}

// take reads the script's answer into the grants.
func (l *Limits) take(b *building, answer string, now time.Time) error {
	for i := range b.groups {
		g := &b.groups[i]
		line, rest, _ := strings.Cut(answer, "\n")
		answer = rest
		codes, numbers, _ := strings.Cut(line, " ")
		if len(codes) != len(g.admissions) {
			return fmt.Errorf("admit: unexpected answer %q", line)
		}
		var v [6]int64
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
			retryRequests: milliseconds(v[3]), retryTokens: milliseconds(v[4]), second: v[5],
		}
		for j, a := range g.admissions {
			l.grant(a, codes[j], state, false)
		}
		if g.token.atOnce > 0 || strings.IndexByte(codes, codeRequests) >= 0 {
			l.keepTrack(g, codes, now)
		}
	}
	return nil
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// keepTrack notes the calls that are in flight now, and a refusal that stays true for a while.
func (l *Limits) keepTrack(g *admitGroup, codes string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
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
)

// windowState is what a window says after a batch.
type windowState struct {
	requests, tokens           int
	reset                      time.Duration
	retryRequests, retryTokens time.Duration
	second                     int64
}

// grant writes the answer for one call.
func (l *Limits) grant(a *admission, code byte, s windowState, local bool) {
	g := &a.grant
	*g = Grant{Allowed: code == codeAdmitted}
	if a.token.rpm > 0 {
		g.Requests = Window{Limit: a.token.rpm, Remaining: max(0, a.token.rpm-s.requests), Reset: s.reset}
	}
	if a.token.tpm > 0 {
		g.Tokens = Window{Limit: a.token.tpm, Remaining: max(0, a.token.tpm-s.tokens), Reset: s.reset}
	}
	switch code {
	case codeAdmitted:
		if a.token.tpm > 0 || a.lease != "" {
			g.held = &held{limits: l, token: a.token, lease: a.lease, second: s.second, estimate: a.cost.Tokens, local: local}
		}
	case codeRequests:
		g.RetryAfter = max(time.Millisecond, s.retryRequests)
	case codeTokens:
		g.RetryAfter = max(time.Millisecond, s.retryTokens)
	default:
		g.RetryAfter = time.Second // nobody knows when a call ends
	}
}
