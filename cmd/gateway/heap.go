package main

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

const (
	// memoryShare is the garbage collector's memory limit in percent of the process's memory. The rest is for memory that the collector does
	// not count, such as the program itself and the kernel's buffers in a control group.
	memoryShare = 90
	// heapPercent is Go's default growth between two collections, and mostPercent the maximum for a small heap.
	heapPercent, mostPercent = 100, 1000
	// percentStep is the minimum change of the percentage: each change stops the process for a moment.
	percentStep = 20
	// unknownMemory is used if neither the control group nor the machine reports its memory.
	unknownMemory = 4 << 30
)

// memoryLimit returns how much memory the process may use: the minimum of limit, which is Go's (math.MaxInt64 for none), the limit of its
// control group, and the memory of the machine.
func memoryLimit(limit int64) int64 {
	for _, report := range []memlimit.Provider{memlimit.FromCgroup, memlimit.FromSystem} {
		if n, err := report(); err == nil {
			limit = int64(min(uint64(limit), n))
		}
	}
	if limit == math.MaxInt64 {
		return unknownMemory
	}
	return limit
}

// collector reduces the collections of a small heap: the next one starts when the heap reaches floor bytes. If more than half of that is
// live, it starts when the heap has doubled, which is Go's default. Calls of a gateway allocate much and keep little. A heap of 15 MB would
// be collected for each 15 MB of garbage, which is a tenth of the cost of short calls.
type collector struct {
	floor   int64
	percent int64 // the last value; one goroutine tunes
	stopped atomic.Bool
}

// spareCollections tunes the garbage collector of this process until stop is called: it respects the process's memory, and collects no heap
// below memory.least_heap. GOGC and GOMEMLIMIT take precedence.
func (p *parts) spareCollections(env func(string) (string, bool)) (stop func()) {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 { // no limit is set yet
		debug.SetMemoryLimit(memoryLimit(math.MaxInt64) / 100 * memoryShare)
	}
	c := &collector{floor: int64(p.cfg.Memory.LeastHeap), percent: heapPercent}
	if percent, _ := env("GOGC"); percent == "" && c.floor > 0 {
		c.tune()
		c.follow()
	}
	return func() { c.stopped.Store(true) }
}

// follow tunes after each collection: the cleanup of a sentinel reports it.
func (c *collector) follow() {
	runtime.AddCleanup(new(sentinel), func(c *collector) {
		if !c.stopped.Load() {
			c.tune()
			c.follow()
		}
	}, c)
}

// sentinel is freed by the next collection. It is large enough to share no memory block with other values.
type sentinel struct{ _ [64]byte }

// tune sets the percentage for the heap after the last collection.
func (c *collector) tune() {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	metrics.Read(sample)
	live, roots := int64(sample[0].Value.Uint64()), int64(sample[1].Value.Uint64()+sample[2].Value.Uint64())
	percent := growth(c.floor, live, roots)
	if percent > c.percent+percentStep || percent < c.percent-percentStep {
		c.percent = percent
		debug.SetGCPercent(int(percent))
	}
}

// growth returns the percentage with which a heap with these live bytes, and other roots, grows to floor bytes, or doubles. Go's goal is
// live + (live + roots) * percent / 100: the stacks of a thousand waiting calls would let a heap of 75 MB grow to 265 MB.
func growth(floor, live, roots int64) int64 {
	live = max(live, 1<<20)
	return min(max((floor-live)*100, live*heapPercent)/(live+roots), mostPercent)
}
