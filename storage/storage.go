// Package storage is what the parts of the gateway's state share: the client of Redis and what its errors mean, the memory of
// an outage, calls that share a round trip, and what a token is allowed. The parts are the packages below it; each names its
// own keys. Storage knows no vendor and no HTTP format.
package storage

import "errors"

// Prefix stands before every key of this program in Redis, so that one Redis can be shared. A client may write another in its
// place.
const Prefix = "mr:"

var (
	// ErrUnavailable says that Redis or the S3 store could not be asked: it is away, too slow, or starting.
	// Nothing is known about the thing asked for, and a write may or may not have happened.
	ErrUnavailable = errors.New("storage is unavailable")
	// ErrNotFound says that the store was asked and has no such thing.
	ErrNotFound = errors.New("not found")
	// ErrExists says that a name is taken.
	ErrExists = errors.New("already exists")
)
