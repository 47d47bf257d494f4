package limits

import (
	"time"

	"modelrelay/storage"
)

// window is one token's window in memory, with the same rule as the script. The caller holds the lock.
type window struct {
	second           int64 // last written
	requests, tokens int
	buckets          [windowSeconds]struct{ requests, tokens int }
}

// advance drops the buckets that are older than a minute.
func (w *window) advance(second int64) {
	if second <= w.second {
		return
	}
	if second-w.second >= windowSeconds {
		*w = window{second: second}
		return
	}
	for s := w.second + 1; s <= second; s++ {
		b := &w.buckets[s%windowSeconds]
		w.requests -= b.requests
		w.tokens -= b.tokens
		b.requests, b.tokens = 0, 0
	}
	w.second = second
}

func (w *window) admit(token storage.Allowance, cost Cost, running int, used int64) byte {
	switch {
	case token.RequestsPerMinute > 0 && w.requests+cost.Requests > token.RequestsPerMinute:
		return codeRequests
	case token.TokensPerMinute > 0 && w.tokens+max(cost.Tokens, 1) > token.TokensPerMinute:
		return codeTokens
	case token.Concurrency > 0 && running >= token.Concurrency:
		return codeAtOnce
	case token.Budget > 0 && used+cost.Money > token.Budget:
		return codeBudget
	}
	b := &w.buckets[w.second%windowSeconds]
	b.requests += cost.Requests
	w.requests += cost.Requests
	b.tokens += cost.Tokens
	w.tokens += cost.Tokens
	return codeAdmitted
}

// correct adds tokens to the second of the call. If that is no longer in the window, it adds a positive number to the current second.
func (w *window) correct(now, second int64, delta int) {
	w.advance(now)
	if second <= w.second-windowSeconds || second > w.second {
		if delta < 0 {
			return
		}
		second = w.second
	}
	b := &w.buckets[second%windowSeconds]
	delta = max(delta, -b.tokens)
	b.tokens += delta
	w.tokens += delta
}

// state returns the state after a call. Its waits count only if the call was refused for them.
func (w *window) state(now time.Time, token storage.Allowance, cost Cost) windowState {
	s := windowState{requests: w.requests, tokens: w.tokens, second: w.second}
	missingRequests := w.requests + cost.Requests - token.RequestsPerMinute
	missingTokens := w.tokens + max(cost.Tokens, 1) - token.TokensPerMinute
	for second := w.second - windowSeconds + 1; second <= w.second; second++ {
		b := w.buckets[(second+windowSeconds)%windowSeconds]
		until := time.Unix(second+windowSeconds, 0).Sub(now)
		if missingRequests > 0 {
			s.retryRequests = until
		}
		if missingTokens > 0 {
			s.retryTokens = until
		}
		missingRequests -= b.requests
		missingTokens -= b.tokens
		if b.requests > 0 || b.tokens > 0 {
			s.reset = until
		}
	}
	return s
}
