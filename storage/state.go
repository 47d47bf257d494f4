package storage

// What those who watch a process ask of its parts. None of it asks Redis.

// Away tells whether Redis did not answer last time: each process keeps to the limits for itself.
func (l *Limits) Away() bool { return l.out.Away() }

// Failures counts the batches of admissions and settlements that Redis did not take. Settlements are sent again.
func (l *Limits) Failures() int64 { return l.failures.Load() }

// Away tells whether Redis did not answer last time: the ledger keeps what it is told.
func (u *Usage) Away() bool { return u.out.Away() }

// Failures counts the flushes that did not write everything. What was not written is sent again.
func (u *Usage) Failures() int64 { return u.failures.Load() }

// Refused counts the parts of the ledger's rows that Redis refused. They are not sent again: the log has them.
func (u *Usage) Refused() int64 { return u.refused.Load() }

// Away tells whether Redis did not answer last time: known tokens go on from memory.
func (t *Tokens) Away() bool { return t.out.Away() }

// Ready tells whether keys can be checked: Redis has answered once, and not been away for longer than the grace since.
func (t *Tokens) Ready() bool { return t.met.Load() && !t.stale.Load() }
