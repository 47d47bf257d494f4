package edge

// Discards counts the bodies that are being discarded.
type Discards struct{ discards }

// Begin counts one more.
func (d *Discards) Begin(source string) (done func(), ok bool) { return d.begin(source) }
