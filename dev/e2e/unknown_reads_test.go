package e2e_test

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/testwait"
)

// TestUnknownReadsBesideCreates: a token that asks for very many unknown ids is refused, and another token's creates are not.
func TestUnknownReadsBesideCreates(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	const creates = 50
	g := stack.Shared(t).StartGateway(stack.GatewayOptions{Args: []string{"serve", "--worker=false"}})
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: readersOfUnknown}}
	t.Cleanup(client.CloseIdleConnections)
	var reads unknownReads
	defer reads.begin(t, client, g)()
	for i := range creates {
		got := g.Call(t, stack.Request{
			Method: http.MethodPost, Path: "/v1/videos", Token: stack.Token + "-other", Client: client,
			Body: fmt.Sprintf(`{"model":"sora-2-manual","prompt":"create %d"}`, i),
		})
		if got.Status != http.StatusOK {
			t.Errorf("create: %d %s", got.Status, got.Body)
		}
	}
	testwait.Eventually(t, "some reads are 404 and some 429", stack.ReadyTimeout, func() bool {
		return reads.missing.Load() > 0 && reads.refused.Load() > 0
	})
}

// readersOfUnknown read at once, each as often as it is answered.
const readersOfUnknown = 16

// unknownReads counts how reads of ids that no task has were answered.
type unknownReads struct{ asked, missing, refused atomic.Int64 }

// begin reads until stop is called, which waits for the reads in progress.
func (u *unknownReads) begin(t *testing.T, client *http.Client, g *stack.Gateway) (stop func()) {
	t.Helper()
	var stopped atomic.Bool
	var all sync.WaitGroup
	for range readersOfUnknown {
		all.Go(func() {
			for !stopped.Load() {
				id := fmt.Sprintf("video_%025d0", u.asked.Add(1)) // of the form that the gateway makes
				got, err := g.Send(t.Context(), stack.Request{Path: "/v1/videos/" + id, Client: client})
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
		stopped.Store(true)
		all.Wait()
	}
}
