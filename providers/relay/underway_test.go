package relay_test

import (
	"io"
	"net/http"
	"slices"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/relay"
)

// TestInFlight: a call counts at its channel until its answer has ended or was closed. A channel that failed has no such call.
func TestInFlight(t *testing.T) {
	t.Parallel()
	seen := make(chan struct{})
	half := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, document[:20])
		_ = http.NewResponseController(w).Flush()
		<-seen
		_, _ = io.WriteString(w, document[20:])
	}
	type attempt struct {
		number  int
		channel string
		fault   providers.Kind
	}
	var tried []attempt
	b := newBench(t, &relay.Options{Tried: func(number int, a providers.Try) { tried = append(tried, attempt{number, a.Channel, a.Fault}) }},
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, half)
	inFlight := func() int64 {
		var n int64
		for _, state := range b.router.Health.States() {
			n += state.InFlight
		}
		return n
	}
	for name, end := range map[string]func(io.ReadCloser){
		"read":   func(body io.ReadCloser) { _, _ = io.Copy(io.Discard, body) },
		"closed": func(body io.ReadCloser) { _ = body.Close(); _ = body.Close() },
	} {
		answer, err := b.Do(t.Context(), "default", chatCall())
		if err != nil {
			t.Fatal(err)
		}
		if got := inFlight(); got != 1 {
			t.Errorf("%s: got %d in flight before the end of the answer", name, got)
		}
		seen <- struct{}{}
		end(answer.Body)
		if got := inFlight(); got != 0 {
			t.Errorf("%s: got %d in flight after it", name, got)
		}
		_ = answer.Body.Close()
	}
	want := []attempt{{1, "a", providers.Upstream}, {2, "b", ""}}
	want = slices.Concat(want, want)
	if !slices.Equal(tried, want) {
		t.Errorf("tried %v, want %v", tried, want)
	}
	states := b.router.Health.States()
	if got := states[0].FaultsPerMinute + states[1].FaultsPerMinute; got != 2 {
		t.Errorf("got %d faults, want those of the attempts at the broken channel", got)
	}
}
