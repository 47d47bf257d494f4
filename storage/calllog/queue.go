package calllog

const (
	// blockRecords are written in one step, which holds Redis for about a millisecond.
	blockRecords = 250
	// waitingMost is how many records wait for a Redis that is away; then the oldest go.
	waitingMost = 10_000
	// lostMost is how many blocks that Redis will not have wait for the history, which looks for them each second.
	lostMost = waitingMost / blockRecords
	// freeMost is how many blocks are kept for later.
	freeMost = 4
)

// block is records on their way, packed.
type block struct {
	packed  []byte
	ends    []int // of each record
	refused int   // times
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

// queue is the blocks that wait, and the one that is filled.
type queue struct {
	filling   *block
	full      []*block // the oldest first
	lost      []*block // that the history does not have, where there is one; few
	free      []*block
	keepsLost bool // there is a history
}

// ended notes that the block that is filled has another record, and begins the next one where it is full. dropped is how many
// records went for it: of too many blocks that wait the oldest goes.
func (q *queue) ended() (dropped int, full bool) {
	b := q.filling
	if b.ends = append(b.ends, len(b.packed)); len(b.ends) < blockRecords {
		return 0, false
	}
	return q.next(), true
}

func (q *queue) next() (dropped int) {
	q.full = append(q.full, q.filling)
	if len(q.full) > waitingMost/blockRecords {
		oldest := q.full[0]
		q.full = append(q.full[:0], q.full[1:]...)
		dropped = len(oldest.ends)
		if q.keepsLost && len(q.lost) < lostMost {
			q.lost = append(q.lost, oldest)
		} else {
			q.recycle(oldest)
		}
	}
	if n := len(q.free); n > 0 {
		q.filling, q.free = q.free[n-1], q.free[:n-1]
	} else {
		q.filling = newBlock()
	}
	return dropped
}

// take takes the oldest full block, and with all, where there is none, the one that is filled; nil: none has a record.
func (q *queue) take(all bool) *block {
	if len(q.full) == 0 && all && len(q.filling.ends) > 0 {
		q.next()
	}
	if len(q.full) == 0 {
		return nil
	}
	b := q.full[0]
	q.full = append(q.full[:0], q.full[1:]...)
	return b
}

// recycle keeps a block whose records are not needed any more for later ones.
func (q *queue) recycle(b *block) {
	if len(q.free) < freeMost {
		b.packed, b.ends, b.refused = b.packed[:0], b.ends[:0], 0
		q.free = append(q.free, b)
	}
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
