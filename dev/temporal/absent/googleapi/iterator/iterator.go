// Package iterator has the error that ends an iteration.
package iterator

import "errors"

// Done is returned by an iterator after its last value.
var Done = errors.New("no more items") //nolint:errname // the name in the replaced module
