package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"modelrelay/dev/e2e/stack"
)

// TestUnknownReadsBesideCreates measures (-v) what a token that asks for 2,000 unknown ids a second adds to another's
// creates. Nothing about time is asserted, only how both are answered. No worker runs: its own load would be measured too.
func TestUnknownReadsBesideCreates(t *testing.T) {
	t.Parallel()
	const rounds, creates = 4, 100
	g := stack.New(t).StartGateway(stack.GatewayOptions{Args: []string{"serve", "--worker=false"}})
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: readersOfUnknown}}
	t.Cleanup(client.CloseIdleConnections)
	measure := func(round string) (took []time.Duration) {
		for i := range creates {
			start := time.Now()
			got := g.Call(t, stack.Request{ // past the SDKs, whose own work would be measured too
				Method: http.MethodPost, Path: "/v1/videos", Token: stack.Token + "-other", Client: client,
				Body: fmt.Sprintf(`{"model":"sora-2-manual","prompt":"%s %d"}`, round, i),
			})
			took = append(took, time.Since(start))
			if got.Status != http.StatusOK {
				t.Fatalf("create: %d %s", got.Status, got.Body)
			}
		}
		return took
	}
	measure("warm")
	var alone, beside []time.Duration
	var reads unknownReads
	var reading time.Duration
	for round := range rounds { // in turns, so that whatever else the machine does weighs on both
		alone = append(alone, measure(fmt.Sprintf("alone %d", round))...)
		start := time.Now()
		stop := reads.begin(t, client, g)
		beside = append(beside, measure(fmt.Sprintf("beside %d", round))...)
		stop()
		reading += time.Since(start)
	}
	if reads.missing.Load() == 0 || reads.refused.Load() == 0 {
		t.Errorf("%d reads were 404 and %d 429, want some of both", reads.missing.Load(), reads.refused.Load())
	}
	for _, took := range [][]time.Duration{alone, beside} {
		slices.Sort(took)
	}
	middle, last := len(alone)/2, len(alone)*9/10
	t.Logf("%.0f reads a second (%d were 404, %d 429); creates alone p50 %v p90 %v, beside p50 %v p90 %v; p50 ratio %.2f",
		float64(reads.missing.Load()+reads.refused.Load())/reading.Seconds(), reads.missing.Load(), reads.refused.Load(),
		alone[middle], alone[last], beside[middle], beside[last], float64(beside[middle])/float64(alone[middle]))
}

const (
	// Reads of unknown ids come in bursts, so that a ticker keeps up with them: 2,000 a second over 48 connections.
	readersOfUnknown = 48
	burstsEvery      = 10 * time.Millisecond
	burst            = 20
)

// unknownReads counts how reads of ids that nobody has were answered.
type unknownReads struct{ asked, missing, refused atomic.Int64 }

// begin reads until stop is called, which waits for those under way.
func (u *unknownReads) begin(t *testing.T, client *http.Client, g *stack.Gateway) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	due := make(chan struct{}, burst)
	var all sync.WaitGroup
	all.Go(func() {
		defer close(due)
		tick := time.NewTicker(burstsEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			for range burst {
				select {
				case due <- struct{}{}:
				case <-ctx.Done():
					return
				}
			}
		}
	})
	for range readersOfUnknown {
		all.Go(func() {
			for range due {
				id := fmt.Sprintf("video_%025d0", u.asked.Add(1)) // of the form that the gateway makes
				got, err := g.Send(context.WithoutCancel(ctx), stack.Request{Path: "/v1/videos/" + id, Client: client})
				switch {
				case err != nil:
					t.Errorf("read: %v", err)
				case got.Status == http.StatusNotFound:
					u.missing.Add(1)
				case got.Status == http.StatusTooManyRequests:
					u.refused.Add(1)
				default:
					t.Errorf("read: %d %s", got.Status, got.Body)
				}
			}
		})
	}
	return func() {
		cancel()
		all.Wait()
	}
}
