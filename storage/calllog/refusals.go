package calllog

const (
	// refusedMost is how many refused calls that no upstream saw each token, and all calls without one, may have in the log in a
	// second, in each process: a client that calls in a loop must not push the calls of others out of it.
	refusedMost = 10
	// refusersMost is how many tokens are counted separately for that; others count as calls without a token.
	refusersMost = 1000
)

// refusals are the tokens whose calls were refused in this second.
type refusals map[string]*refuser

type refuser struct {
	kept    int
	skipped int64
	last    []byte // the line of the last one skipped, open
}

// skip reports whether a refused call has no record of its own.
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
	who.last = r.appendOpen(who.last[:0])
	return true
}
