package relay_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/relay"
	"modelrelay/providers/router"
	"modelrelay/storage/testwait"
)

// bounded returns a channel that may have most calls at a time.
func bounded(t *testing.T, name string, priority, most int, serve http.HandlerFunc) providers.Channel {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	return providers.Channel{
		Name: name, Vendor: "openai", BaseURL: server.URL, Keys: []providers.Secret{providers.Secret("hush-" + name)},
		Models: map[string]string{"m": ""}, Groups: []string{"default"}, Priority: priority, Capacity: providers.Capacity{MaxCalls: most},
	}
}

// halved sends half of an answer, and the rest of one per message.
func halved(rest <-chan struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, document[:20])
		_ = http.NewResponseController(w).Flush()
		select {
		case <-rest:
			_, _ = io.WriteString(w, document[20:])
		case <-r.Context().Done():
		}
	}
}

func ofToken(token string) func(*providers.Call) {
	return func(c *providers.Call) { c.Token = token }
}

// TestSlots: a full channel is skipped. If all are full, a call waits for a slot; the token with the fewest slots goes first. A call
// holds its slot until its answer has ended, and a failed call holds none.
func TestSlots(t *testing.T) {
	t.Parallel()
	const patience = time.Minute
	rest := make(chan struct{})
	b := benchOf(t, &relay.Options{SlotWait: patience}, []providers.Channel{
		bounded(t, "broken", 3, 1, status(http.StatusBadGateway)), bounded(t, "a", 2, 1, halved(nil)), bounded(t, "b", 1, 2, halved(rest)),
	})
	do := func(ctx context.Context, token string) (*relay.Answer, error) {
		return b.Do(ctx, "default", chatCall(ofToken(token)))
	}
	held := map[string][]*relay.Answer{}
	for range 3 {
		answer, err := do(t.Context(), "greedy")
		if err != nil {
			t.Fatal(err)
		}
		held[answer.Channel] = append(held[answer.Channel], answer)
	}
	if len(held["a"]) != 1 || len(held["b"]) != 2 {
		t.Fatalf("got %d calls at a and %d at b, want one and two", len(held["a"]), len(held["b"]))
	}
	type outcome struct {
		answer *relay.Answer
		err    error
	}
	wait := func(token string, line int) chan outcome {
		t.Helper()
		done := make(chan outcome, 1)
		go func() {
			answer, err := do(t.Context(), token)
			done <- outcome{answer, err}
		}()
		testwait.Eventually(t, "the call waits", patience, func() bool { return b.Waiting("b") == line && b.Waiting("a") == line })
		return done
	}
	greedy, other := wait("greedy", 1), wait("other", 2)
	gone, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := do(gone, "third")
		left <- err
	}()
	testwait.Eventually(t, "a third waits", patience, func() bool { return b.Waiting("a") == 3 })
	cancel()
	if err := <-left; providers.AsFault(err).Kind != providers.Canceled {
		t.Errorf("the canceled call got %v", err)
	}
	rest <- struct{}{}
	for _, answer := range held["b"] { // one of them ends before it is closed
		go func() { _, _ = io.Copy(io.Discard, answer.Body) }()
	}
	got := <-other
	if got.err != nil || got.answer.Channel != "b" {
		t.Fatalf("got %+v, want an answer for the token without a slot", got)
	}
	_ = held["a"][0].Body.Close()
	if got := <-greedy; got.err != nil || got.answer.Channel != "a" {
		t.Errorf("got %+v", got)
	} else {
		_ = got.answer.Body.Close()
	}
	if answer, err := do(t.Context(), "other"); err != nil || answer.Channel != "a" {
		t.Errorf("after the end of an answer at a: got %+v, %v", answer, err)
	}
	if b.Waiting("a")+b.Waiting("b") != 0 {
		t.Error("a call still waits")
	}
	close(rest)
}

// TestSlotsFull: a call that gets no slot within SlotWait is refused with Retry-After, and the channel does not cool down.
func TestSlotsFull(t *testing.T) {
	t.Parallel()
	b := benchOf(t, &relay.Options{SlotWait: 10 * time.Millisecond}, []providers.Channel{bounded(t, "a", 1, 1, halved(nil))})
	first, err := b.Do(t.Context(), "default", chatCall(ofToken("one")))
	if err != nil {
		t.Fatal(err)
	}
	fault := b.fault(t.Context(), t, chatCall(ofToken("two")))
	if fault.Kind != providers.Overloaded || fault.RetryAfter != time.Second || fault.Accepted != providers.NotAccepted {
		t.Errorf("got %+v", fault)
	}
	_ = first.Body.Close()
	again, err := b.Do(t.Context(), "default", chatCall(ofToken("two")))
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Body.Close()
	if b.coolsDown("a") {
		t.Error("the channel cools down")
	}
}

// TestSlotOfCoolingChannel: a call waits for two channels. When a slot of one becomes free while that channel cools down, the call
// waits on for the other channel alone.
func TestSlotOfCoolingChannel(t *testing.T) {
	t.Parallel()
	const patience = time.Minute
	b := benchOf(t, &relay.Options{SlotWait: patience}, []providers.Channel{
		bounded(t, "a", 2, 1, halved(nil)), bounded(t, "b", 1, 1, halved(nil)),
	})
	do := func() (*relay.Answer, error) { return b.Do(t.Context(), "default", chatCall(ofToken("anna"))) }
	atA, err := do()
	if err != nil {
		t.Fatal(err)
	}
	atB, err := do()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan string, 1)
	go func() {
		answer, err := do()
		if err != nil {
			done <- err.Error()
			return
		}
		_ = answer.Body.Close()
		done <- answer.Channel
	}()
	testwait.Eventually(t, "the call waits", patience, func() bool { return b.Waiting("a") == 1 && b.Waiting("b") == 1 })
	to, _ := b.router.Resolve("a", providers.Secret("hush-a").Fingerprint(), "m")
	b.router.Report(to, &providers.Fault{
		Kind: providers.RateLimited, Blame: providers.BlameKey, Key: providers.KeyExhausted, KeyNamed: true,
		RetryAfter: time.Hour,
	})
	_ = atA.Body.Close()
	testwait.Eventually(t, "it waits only for the other channel", patience,
		func() bool { return b.Waiting("a") == 0 && b.Waiting("b") == 1 || len(done) > 0 })
	_ = atB.Body.Close()
	if got := <-done; got != "b" {
		t.Errorf("got %s, want an answer of b", got)
	}
}

// TestSlotOutlivesPanic: an attempt that panics releases its slot.
func TestSlotOutlivesPanic(t *testing.T) {
	t.Parallel()
	broken := true
	catalog := providers.Catalog{"openai": {
		Name: "openai", Endpoints: []providers.Endpoint{chatCall().Endpoint},
		Relay: relayFunc(func(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
			if broken {
				panic("a defect")
			}
			return &http.Response{
				StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(strings.NewReader("{}")),
			}, nil
		}),
	}}
	routes := router.New(catalog, []providers.Channel{{
		Name: "a", Vendor: "openai", BaseURL: "http://upstream.invalid", Keys: []providers.Secret{"k"}, Models: map[string]string{"m": ""},
		Groups: []string{"default"}, Capacity: providers.Capacity{MaxCalls: 1},
	}}, nil)
	r := relay.New(routes, catalog, &relay.Options{SlotWait: time.Millisecond})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not reach its caller")
			}
		}()
		_, _ = r.Do(t.Context(), "default", chatCall())
	}()
	broken = false
	answer, err := r.Do(t.Context(), "default", chatCall())
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
}
