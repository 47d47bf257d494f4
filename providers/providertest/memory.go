package providertest

import (
	"runtime"
	"testing"
)

// Bounded runs a benchmark that may allocate at most so many bytes for each operation, including those of its upstream. So a large answer
// is never held whole.
func Bounded(b *testing.B, most uint64, do func()) {
	b.Helper()
	b.ReportAllocs()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n := uint64(0)
	for b.Loop() {
		do()
		n++
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / max(1, n); each > most {
		b.Fatalf("allocated %d bytes an operation, %d are allowed", each, most)
	}
}
