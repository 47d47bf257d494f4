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
	// memoryShare is what of the process's memory its garbage collector keeps to, in percent: the rest is for what it does not
	// see, such as the program itself and the buffers of the kernel that count in a control group.
	memoryShare = 90
	// heapPercent is Go's own growth between two collections, and mostPercent what a small heap may have at most.
	heapPercent, mostPercent = 100, 1000
	// percentStep is by how much a percentage must differ to be set: setting it stops the process for a moment.
	percentStep = 20
	// unknownMemory is used where neither a control group nor the machine reports its memory.
	unknownMemory = 4 << 30
)

// memoryLimit returns how much memory the process may take: the least of limit, which is Go's own (math.MaxInt64 for none), the
// limit of its control group, and the memory of the machine.
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

// collector spares a small heap collections: the next one comes when the heap has grown to floor bytes, and from half of
// that on when it has doubled, as is Go's own rule. A gateway's calls leave little behind and allocate much: a heap of 15 MB
// would be collected for each 15 MB of garbage, which is a tenth of what short calls cost.
type collector struct {
	floor   int64
	percent int64 // as set last; one goroutine tunes
	stopped atomic.Bool
}

// spareCollections tunes the garbage collector of this process until stop is called: it keeps to the process's memory, and
// collects no heap below memory.least_heap. What GOGC and GOMEMLIMIT say stands.
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

// follow tunes after each collection: the cleanup of a sentinel reports each one.
func (c *collector) follow() {
	runtime.AddCleanup(new(sentinel), func(c *collector) {
		if !c.stopped.Load() {
			c.tune()
			c.follow()
		}
	}, c)
}

// sentinel is found by the next collection. It is large enough to share no memory with other values.
type sentinel struct{ _ [64]byte }

// tune sets the percentage for the heap as the last collection left it.
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

// growth is the percentage at which a heap with so much live, and so many other roots, grows to floor bytes, or doubles. Go's own goal is
// live + (live + roots) * percent / 100: the stacks of a thousand waiting calls would let a heap of 75 MB grow to 265 MB.
func growth(floor, live, roots int64) int64 {
	live = max(live, 1<<20)
	return min(max((floor-live)*100, live*heapPercent)/(live+roots), mostPercent)
}
