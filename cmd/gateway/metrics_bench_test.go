package main_test

import (
	"net/http"
	"testing"
	"time"

	"modelrelay/api"
	main "modelrelay/cmd/gateway"
	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/providers"
	"modelrelay/providers/relay"
)

// oneCall counts a relayed call with everything that can be counted of one.
func oneCall(tb testing.TB) func() {
	tb.Helper()
	cfg := config.Default()
	cfg.Channels = []config.Channel{{Name: "main", Vendor: "openai", Models: map[string]string{"m": ""}}}
	seen, tried, err := main.Counters(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	call := api.Seen{
		Method: http.MethodPost, Route: "/v1/chat/completions", Status: http.StatusOK, Took: time.Second, Operation: providers.Chat,
		Model: "m", Channel: "main", Attempts: 1, Sent: time.Millisecond, First: 100 * time.Millisecond, Stream: true,
		Usage: providers.Usage{Input: 1000, Cached: 500, Output: 100}, Cost: 1000,
	}
	return func() {
		tried(relay.Attempt{Channel: "main", Number: 1})
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
