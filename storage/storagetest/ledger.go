package storagetest

import (
	"cmp"
	"context"
	"maps"
	"slices"
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
func ReadUsage(t *testing.T, client redis.UniversalClient, from, to time.Time, token string) []ledger.Row {
	t.Helper()
	rows, err := ledger.NewReader(client).Read(t.Context(), from, to, token)
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

// Sum sums the rows that agree in all groups of by, sorted as Reader.Sums sorts them. Without groups there is one sum of all rows.
func Sum(rows []ledger.Row, by []string) []ledger.Row {
	sums := make(map[ledger.Row]ledger.Row)
	if len(by) == 0 {
		sums[ledger.Row{}] = ledger.Row{}
	}
	for _, row := range rows {
		var name ledger.Row
		for group, field := range map[string][2]*string{
			ledger.ByDay: {&name.Day, &row.Day}, ledger.ByToken: {&name.Token, &row.Token},
			ledger.ByModel: {&name.Model, &row.Model}, ledger.ByChannel: {&name.Channel, &row.Channel},
		} {
			if slices.Contains(by, group) {
				*field[0] = *field[1]
			}
		}
		sum, known := sums[name]
		if !known {
			sum = name
		}
		sum.Requests += row.Requests
		sum.Tasks += row.Tasks
		sum.Failed += row.Failed
		sum.InputTokens += row.InputTokens
		sum.CachedTokens += row.CachedTokens
		sum.OutputTokens += row.OutputTokens
		sum.Images += row.Images
		sum.Audio += row.Audio
		sum.Video += row.Video
		sum.Cost += row.Cost
		sums[name] = sum
	}
	return slices.SortedFunc(maps.Values(sums), func(a, b ledger.Row) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Token, b.Token), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Channel, b.Channel))
	})
}
