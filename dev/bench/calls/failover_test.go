package calls_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"modelrelay/dev/bench/calls"
)

// TestPaced: the load comes at its rate whatever the answers are, and wrong ones are counted, not fatal.
func TestPaced(t *testing.T) {
	t.Parallel()
	var served, refused atomic.Int64
	began := time.Now()
	addr := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		served.Add(1)
		if time.Since(began) > 500*time.Millisecond && served.Load()%4 == 0 {
			refused.Add(1)
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte(`{"right":1}`))
	})
	before, row, err := calls.Paced(t.Context(), addr, []byte(`"right":1}`), 100, time.Second, 400*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if got := int64(before + row.Calls); got != served.Load() || got > 101 || got < 5 {
		t.Errorf("got %d calls of %d served, want about 100", got, served.Load())
	}
	if int64(row.Errors) != refused.Load() || row.Errors > 0 && !strings.Contains(row.First, "503") {
		t.Errorf("got %d errors of %d, first %q", row.Errors, refused.Load(), row.First)
	}
	if row.After.P50 <= 0 || row.After.Max < row.After.P99 || row.After.P99 < row.After.P50 {
		t.Errorf("got %+v", row.After)
	}
}
