package config

// Memory is how the process deals with its own.
type Memory struct {
	LeastHeap Size `yaml:"least_heap" doc:"the garbage collector leaves a heap alone that is smaller, which saves short calls a tenth of their CPU; 0: Go's own rule, a collection at each doubling. GOGC overrules it. The collector keeps to nine tenths of the memory limit (see relay.max_body_memory), unless GOMEMLIMIT says otherwise"`
}

// defaultLeastHeap is three to four times what a gateway holds that has little to do, and less than 500 open streams hold.
const defaultLeastHeap = 48 << 20

// mostLeastHeap keeps a slip of the unit from becoming a process that never collects.
const mostLeastHeap = 16 << 30

// check refuses what is no size of a heap.
func (m Memory) check(add func(key, format string, args ...any)) {
	if m.LeastHeap < 0 || m.LeastHeap > mostLeastHeap {
		add("memory.least_heap", "wants a size from 0 to %s", Size(mostLeastHeap))
	}
}
