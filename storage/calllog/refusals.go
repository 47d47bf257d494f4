package calllog

const (
	// refusedMost bounds the records of calls that were refused before any upstream got them: per second, process and token, and for all
	// calls without a token. A client that calls in a loop must not displace the calls of others.
	refusedMost = 10
	// refusersMost is the number of tokens that are counted separately; others count as calls without a token.
	refusersMost = 1000
)

// refusals counts the refused calls of this second by token.
type refusals map[string]*refused

type refused struct {
	recorded int
	skipped  int64
	last     []byte // of appendOpen for the last skipped call
}

// skip counts a refused call, and reports whether it gets no record.
func (f refusals) skip(r *Record) bool {
	token := r.Token
	of, known := f[token]
	if !known && len(f) >= refusersMost {
		token = ""
		of, known = f[token]
	}
	if !known {
		of = new(refused)
		f[token] = of
	}
	if of.recorded < refusedMost {
		of.recorded++
		return false
	}
	of.skipped++
	of.last = r.appendOpen(of.last[:0])
	return true
}
