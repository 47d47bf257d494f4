package limits

import (
	"slices"
	"sync"
	"time"

	"modelrelay/storage"
)

const (
	refusedMost = 10_000  // refusals remembered
	settleKept  = 100_000 // settlements kept while Redis is away; their leases expire anyway
)

// memory is what this process knows by itself: its calls in flight, what Redis is still to be told of them, and what
// tokens have used as last seen, by which it answers while Redis is away.
type memory struct {
	mu      sync.Mutex
	settles []settlement                              // not yet sent
	since   time.Time                                 // when the first of settles came
	running map[storage.Allowance]map[string]struct{} // leases of calls in flight
	atOnce  map[string]int                            // calls in flight that have a place, by token id, above 0
	refused map[storage.Allowance]refusal             // tokens whose requests are used up, by refusalKey
	windows map[string]*window                        // by token id, while Redis is away
	used    map[string]int64                          // of budgets, by token id: spent and reserved
}

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

// refusal is an answer that stays true for a while, because used requests come back by time alone.
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

// refusalKey is what a refusal holds for: used requests have nothing to do with money.
func refusalKey(token storage.Allowance) storage.Allowance {
	token.Budget = 0
	return token
}

// refusal answers for a token whose requests are used up.
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

// admit admits a call by the window of this process.
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
	state = w.state(now, a.token, a.cost, code)
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

// start notes a call in flight, or one with a reservation. m.mu is held.
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

// end notes that a call is over. m.mu is held.
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

// note keeps what Redis answered to the calls of one token: those that are in flight now, what is used of the budget, and a
// refusal that stays true for a while.
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

// redisAnswers ends the count in this process, and tells whether something is left to settle.
func (m *memory) redisAnswers() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.windows)
	return len(m.settles) > 0
}

// settle ends the call of a lease, counts the settlement here where the call was counted here, and keeps for Redis what
// that must be told; first tells that no other settlement waits.
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

// keep adds what is to be settled. m.mu is held.
func (m *memory) keep(s settlement) {
	if len(m.settles) == 0 {
		m.since = time.Now()
	}
	if len(m.settles) < settleKept {
		m.settles = append(m.settles, s)
	}
}

// take removes the n oldest settlements, or all where there are fewer.
func (m *memory) take(n int) []settlement {
	m.mu.Lock()
	defer m.mu.Unlock()
	n = min(n, len(m.settles))
	taken := slices.Clone(m.settles[:n])
	m.settles = slices.Delete(m.settles, 0, n)
	return taken
}

// giveBack keeps the releases of a batch that failed. Corrections are let go: they may have been counted, and matter for a
// minute only.
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

// renew asks Redis to hold the places of calls in flight for longer, and tells whether some hold reservations.
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

// unsettled is how many settlements wait, and since when the first of them does.
func (m *memory) unsettled() (waiting int, since time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.settles), m.since
}
