package storagetest

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage/ledger"
)

// Usage returns a ledger with a short flush interval, closed at the end of the test.
func Usage(tb testing.TB, client redis.UniversalClient) *ledger.Usage {
	tb.Helper()
	usage := ledger.NewUsage(client, &ledger.UsageOptions{FlushEvery: 20 * time.Millisecond})
	ctx := context.WithoutCancel(tb.Context())
	tb.Cleanup(func() { _ = usage.Close(ctx) })
	return usage
}

// ReadUsage reads a token's rows of the days.
func ReadUsage(t *testing.T, usage *ledger.Usage, from, to time.Time, token string) []ledger.Row {
	t.Helper()
	rows, err := usage.Read(t.Context(), from, to, token)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// FlushUsage flushes the ledger.
func FlushUsage(t *testing.T, usage *ledger.Usage) {
	t.Helper()
	if err := usage.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Balance returns a token's balance.
func Balance(t *testing.T, client redis.UniversalClient, token string) ledger.Balance {
	t.Helper()
	b, err := ledger.NewBudgets(client, 0).Balance(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
