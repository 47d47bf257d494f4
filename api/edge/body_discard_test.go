package edge_test

import (
	"fmt"
	"testing"

	"modelrelay/api/edge"
)

// TestDiscardsAreBounded: neither all nor those of one source are more than there may be.
func TestDiscardsAreBounded(t *testing.T) {
	t.Parallel()
	var d edge.Discards
	var ends []func()
	begun := func(source string) (n int) {
		for ; ; n++ {
			done, ok := d.Begin(source)
			if !ok {
				return n
			}
			ends = append(ends, done)
		}
	}
	one := begun("one")
	all := one
	for i := range 100 {
		all += begun(fmt.Sprint(i))
	}
	if one != 16 || all != 128 {
		t.Errorf("one source has %d, all have %d, want 16 and 128", one, all)
	}
	for _, done := range ends {
		done()
	}
	if again := begun("one"); again != one {
		t.Errorf("after their end: %d", again)
	}
}
