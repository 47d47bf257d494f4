package workflows

// Seams for the external tests of pure functions.
var (
	Read        = read
	KeyedID     = keyedID
	RandomID    = randomID
	RequestHash = requestHash
	Inline      = inline
	Canonical   = canonical
)

// MemoFields are the memo's field names.
const (
	MemoTask   = memoTask
	MemoResult = memoResult
	// SignalShown is the signal of a progress that was seen.
	SignalShown = signalShown
)

// Memo is the memo at a task's start.
type Memo = memo
