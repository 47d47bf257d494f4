package fair

// Kept is how many keys the Semaphore remembers.
func (s *Semaphore[K]) Kept() int { return len(s.held) + len(s.lines) }

// Kept is how many keys the Rate remembers.
func (r *Rate[K]) Kept() int { return len(r.full) }
