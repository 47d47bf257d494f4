package limits

import (
	"slices"
	"sync"
	"time"

	"modelrelay/storage"
)

const (
	refusedMost = 10_000  // cached refusals
	settleKept  = 100_000 // settlements that wait while Redis is unavailable; their leases expire anyway
)

// memory is this process's state: its calls, settlements that Redis lacks, and the tokens' last known use, to decide without Redis.
type memory struct {
	mu      sync.Mutex
	settles []settlement                              // not yet sent
	since   time.Time                                 // when the first of settles was added
	running map[storage.Allowance]map[string]struct{} // leases of concurrent calls
	atOnce  map[string]int                            // counted concurrent calls, by token id, above 0
	refused map[storage.Allowance]refusal             // tokens without requests left, by refusalKey
	windows map[string]*window                        // by token id, while Redis is unavailable
	used    map[string]int64                          // spent and reserved of budgets, by token id
}

// settlement is the release of a call, or with renew the renewal of a running call's lease.
type settlement struct {
	token  storage.Allowance
	lease  string
	renew  bool
	second int64
	delta  int
	// cost replaces the lease's reservation, or is refund; only with money.
	cost  int64
	money bool
}

// refusal is an answer that stays valid for a while, because used requests are freed only by time.
type refusal struct {
	grant Grant
	at    time.Time
}

func newMemory() *memory {
	return &memory{
		running: make(map[storage.Allowance]map[string]struct{}),
		atOnce:  make(map[string]int),
		refused: make(map[storage.Allowance]refusal),
		windows: make(map[string]*window),
		used:    make(map[string]int64),
	}
}

// refusalKey returns the key of a refusal: the budget does not matter for used requests.
func refusalKey(token storage.Allowance) storage.Allowance {
	token.Budget = 0
	return token
}

// refusal returns the cached answer for a token without requests left.
func (m *memory) refusal(token storage.Allowance, cost Cost, now time.Time) (Grant, bool) {
	if token.RequestsPerMinute == 0 || cost.Requests != 1 {
		return Grant{}, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	key := refusalKey(token)
	r, ok := m.refused[key]
	if !ok {
		return Grant{}, false
	}
	past := now.Sub(r.at)
	if past >= r.grant.RetryAfter {
		delete(m.refused, key)
		return Grant{}, false
	}
	r.grant.RetryAfter -= past
	r.grant.Requests.Reset = max(0, r.grant.Requests.Reset-past)
	r.grant.Tokens.Reset = max(0, r.grant.Tokens.Reset-past)
	return r.grant, true
}

func (m *memory) admit(a *admission, now time.Time) (code byte, state windowState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.windows[a.token.Token]
	if w == nil {
		w = new(window)
		m.windows[a.token.Token] = w
	}
	w.advance(now.Unix())
	code = w.admit(a.token, a.cost, m.atOnce[a.token.Token], m.used[a.token.Token])
	state = w.state(now, a.token, a.cost)
	if code != codeAdmitted {
		return code, state
	}
	if a.token.Budget > 0 {
		m.used[a.token.Token] += a.cost.Money
		state.used = m.used[a.token.Token]
	}
	m.start(a)
	return code, state
}

// start records a concurrent call, or one with a reservation. The caller holds m.mu.
func (m *memory) start(a *admission) {
	if a.lease == "" {
		return
	}
	calls := m.running[a.token]
	if calls == nil {
		calls = make(map[string]struct{})
		m.running[a.token] = calls
	}
	calls[a.lease] = struct{}{}
	if a.token.Concurrency > 0 {
		m.atOnce[a.token.Token]++
	}
}

// end records the end of a call. The caller holds m.mu.
func (m *memory) end(token storage.Allowance, lease string) {
	calls := m.running[token]
	if _, ok := calls[lease]; !ok {
		return
	}
	if delete(calls, lease); len(calls) == 0 {
		delete(m.running, token)
	}
	if token.Concurrency == 0 {
		return
	}
	if m.atOnce[token.Token]--; m.atOnce[token.Token] == 0 {
		delete(m.atOnce, token.Token)
	}
}

// note stores what Redis answered to the calls of one token: the admitted calls, the use of the budget, and a refusal.
func (m *memory) note(g *admitGroup, codes string, used int64, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if g.token.Budget > 0 && len(g.admissions) > 0 {
		if len(m.used) >= refusedMost {
			clear(m.used)
		}
		m.used[g.token.Token] = used
	}
	for i, a := range g.admissions {
		switch {
		case codes[i] == codeAdmitted:
			m.start(a)
		case codes[i] == codeRequests && a.cost.Requests == 1:
			if len(m.refused) >= refusedMost {
				clear(m.refused)
			}
			m.refused[refusalKey(a.token)] = refusal{grant: a.grant, at: now}
		}
	}
}

// redisAnswers ends the limits of this process, and reports whether settlements wait.
func (m *memory) redisAnswers() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.windows)
	return len(m.settles) > 0
}

// settle ends the call of a lease. first reports that no other settlement waits for Redis.
func (m *memory) settle(h *held, s settlement) (first bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.end(s.token, s.lease)
	if h.local {
		if w := m.windows[h.token.Token]; w != nil {
			w.correct(time.Now().Unix(), s.second, s.delta)
		}
		s.delta = 0
		if s.money {
			m.used[h.token.Token] += max(0, s.cost) - h.reserved
			s.money = false
		}
	}
	if !s.money && s.delta == 0 && (s.lease == "" || s.token.Concurrency == 0) {
		return false
	}
	m.keep(s)
	return len(m.settles) == 1
}

// keep stores a settlement. The caller holds m.mu.
func (m *memory) keep(s settlement) {
	if len(m.settles) == 0 {
		m.since = time.Now()
	}
	if len(m.settles) < settleKept {
		m.settles = append(m.settles, s)
	}
}

// take removes and returns the n oldest settlements, or all if there are fewer.
func (m *memory) take(n int) []settlement {
	m.mu.Lock()
	defer m.mu.Unlock()
	n = min(n, len(m.settles))
	taken := slices.Clone(m.settles[:n])
	m.settles = slices.Delete(m.settles, 0, n)
	return taken
}

// giveBack stores the releases of a failed batch again. It drops corrections: they may have been counted, and matter only for a minute.
func (m *memory) giveBack(settles []settlement) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range settles {
		if s.lease != "" && !s.renew {
			s.delta = 0
			m.keep(s)
		}
	}
}

// renew adds renewals for the leases of all concurrent calls, and reports whether some have reservations.
func (m *memory) renew() (reserved bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for token, calls := range m.running {
		reserved = reserved || token.Budget > 0
		if token.Concurrency == 0 {
			continue
		}
		for lease := range calls {
			m.keep(settlement{token: token, lease: lease, renew: true})
		}
	}
	return reserved
}

// unsettled returns the number of waiting settlements, and when the first of them was added.
func (m *memory) unsettled() (waiting int, since time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.settles), m.since
}
