package storage_test

import (
	"sync/atomic"
	"testing"
	"time"

	"modelrelay/storage"
)

// TestSender: nothing is sent unasked, what is woken for is sent once however often that was, and Close sends what is left.
func TestSender(t *testing.T) {
	t.Parallel()
	var sends atomic.Int64
	sent := make(chan struct{}, 100)
	s := storage.NewSender(time.Millisecond, func() {
		sends.Add(1)
		sent <- struct{}{}
	})
	for range 3 {
		s.Wake()
		<-sent
	}
	s.Close()
	if got := sends.Load(); got != 4 {
		t.Errorf("sent %d times, want once for each time that it was woken and once at the end", got)
	}
	hourly := storage.NewSender(time.Hour, func() { sent <- struct{}{} })
	for range 100 {
		hourly.Wake()
	}
	hourly.Close()
	if len(sent) != 2 { // that of the first sender's end, and this one's
		t.Errorf("sent %d times, want once at each end", len(sent))
	}
}
