package calllog

const (
	// blockRecords are written in one step, which holds Redis for about a millisecond.
	blockRecords = 250
	// waitingMost is how many records wait for a Redis that is away; then the oldest go.
	waitingMost = 10_000
	// freeMost is how many blocks are kept for later.
	freeMost = 4
)

// block is records on their way, packed.
type block struct {
	packed []byte
	ends   []int // of each record
}

func newBlock() *block { return &block{ends: make([]int, 0, blockRecords)} }

// unpack writes the lines of the records, each with its line feed.
func (b *block) unpack(lines []byte) []byte {
	from := 0
	for _, at := range b.ends {
		lines, _ = unpack(lines, string(b.packed[from:at])) // they are ours
		lines = append(lines, '}', '\n')
		from = at
	}
	return lines
}

const (
	// refusedMost is how many refused calls that no upstream saw each token, and nobody's as one, may have in the log in a
	// second, in each process: who calls in a loop must not push the calls of others out of it.
	refusedMost = 10
	// refusersMost is how many tokens are told apart for that; others count as nobody's.
	refusersMost = 1000
)

// refusals are the tokens whose calls were refused in this second.
type refusals map[string]*refuser

type refuser struct {
	kept    int
	skipped int64
	last    []byte // the last one skipped, packed
}

// skip tells whether a refused call has no record of its own.
func (f refusals) skip(r *Record) bool {
	token := r.Token
	who, known := f[token]
	if !known && len(f) >= refusersMost {
		token = ""
		who, known = f[token]
	}
	if !known {
		who = new(refuser)
		f[token] = who
	}
	if who.kept < refusedMost {
		who.kept++
		return false
	}
	who.skipped++
	who.last = r.pack(who.last[:0])
	return true
}
