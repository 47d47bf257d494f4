package ledger

// Occupy takes all places of readers of all tokens until release is called.
func Occupy(r *Reader) (release func()) {
	for range readersMost {
		_ = r.all.Try(struct{}{}, 1)
	}
	return func() { r.all.Release(struct{}{}, readersMost) }
}
