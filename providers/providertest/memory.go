package providertest

import (
	"runtime"
	"testing"
)

// Bounded runs a benchmark that may allocate so many bytes an operation at most, what its upstream allocates included:
// nothing of a large answer is kept whole.
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
