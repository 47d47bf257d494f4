package loopback_test

import (
	"errors"
	"net/netip"
	"sync"
	"testing"

	"modelrelay/dev/loopback"
)

// TestPortsAreGivenOnce: with so many, chance alone would give some of them twice.
func TestPortsAreGivenOnce(t *testing.T) {
	t.Parallel()
	const callers, each = 8, 50
	var mu sync.Mutex
	given := make(map[netip.AddrPort]bool)
	var work sync.WaitGroup
	for range callers {
		work.Go(func() {
			for range each {
				addr, err := loopback.Address("127.0.0.1:0")
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if given[addr] {
					t.Errorf("%s was given twice", addr)
				}
				given[addr] = true
				mu.Unlock()
			}
		})
	}
	work.Wait()
}

func TestOutside(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{"0.0.0.0:0", "192.0.2.1:80", ":0"} {
		if addr, err := loopback.Address(listen); !errors.Is(err, loopback.ErrOutside) {
			t.Errorf("%s: got %v, %v", listen, addr, err)
		}
	}
}
