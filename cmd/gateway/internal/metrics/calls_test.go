package metrics_test

import (
	"log/slog"
	"maps"
	"net/http"
	"testing"
	"time"

	"modelrelay/api/edge"
	"modelrelay/cmd/gateway/internal/metrics"
	"modelrelay/providers"
)

// oneCall counts a relayed call with everything that can be counted of one.
func oneCall(tb testing.TB) func() {
	tb.Helper()
	m, err := metrics.New(metrics.Options{Log: slog.New(slog.DiscardHandler), Models: 200})
	if err != nil {
		tb.Fatal(err)
	}
	m.Learn([]providers.Channel{{Name: "main", Vendor: "openai", Models: map[string]string{"m": ""}}}, maps.Keys(map[string]bool{}),
		providers.Catalog{"openai": {Name: "openai"}})
	seen, tried := m.Seen, m.Tried
	call := edge.Seen{
		Method: http.MethodPost, Route: "/v1/chat/completions", Status: http.StatusOK,
		Times: edge.Times{Took: time.Second, Sent: time.Millisecond, First: 100 * time.Millisecond},
		Counted: edge.Counted{
			Operation: providers.Chat, Model: "m", Channel: "main", Stream: true,
			Bill: edge.Bill{Usage: providers.Usage{Input: 1000, Cached: 500, Output: 100}, Cost: 1000},
		},
	}
	return func() {
		tried(1, providers.Try{Channel: "main"})
		seen(call)
	}
}

// BenchmarkCountCall is what the metrics add to a relayed call.
func BenchmarkCountCall(b *testing.B) {
	count := oneCall(b)
	b.ReportAllocs()
	for b.Loop() {
		count()
	}
}

// TestCountingAllocatesNothing: labels are worked out once. It is alone while it runs, since it counts the process's
// allocations.
func TestCountingAllocatesNothing(t *testing.T) {
	if got := testing.AllocsPerRun(1000, oneCall(t)); got > 0 {
		t.Errorf("counting a call allocates %v times", got)
	}
}
