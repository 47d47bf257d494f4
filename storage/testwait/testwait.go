// Package testwait waits in tests for conditions without a signal. It is only for tests and imports nothing of the product.
package testwait

import (
	"context"
	"testing"
	"time"
)

// A condition is checked again after firstPause, then after twice as long each time, up to longestPause.
const firstPause, longestPause = time.Millisecond, 25 * time.Millisecond

// Eventually polls until the condition holds, and fails the test if it does not within the limit. Only a failing test waits so long, so the
// limit may be generous.
func Eventually(tb testing.TB, what string, limit time.Duration, holds func() bool) {
	tb.Helper()
	if !InTime(tb, limit, holds) {
		tb.Fatalf("%s: not within %v", what, limit)
	}
}

// InTime polls until the condition holds; false: it does not within the limit.
func InTime(tb testing.TB, limit time.Duration, holds func() bool) bool {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), limit)
	defer cancel()
	pause := firstPause
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for !holds() {
		select {
		case <-timer.C:
			pause = min(2*pause, longestPause)
			timer.Reset(pause)
		case <-ctx.Done():
			return false
		}
	}
	return true
}
