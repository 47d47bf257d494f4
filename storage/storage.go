// Package storage keeps the gateway's state: tokens, limits, usage and small memories in Redis, objects in an S3
// store. It knows no vendor and no HTTP format, and imports nothing else of this module.
package storage

import "errors"

var (
	// ErrUnavailable says that Redis or the S3 store could not be asked: it is away, too slow, or starting.
	// Nothing is known about the thing asked for, and a write may or may not have happened.
	ErrUnavailable = errors.New("storage is unavailable")
	// ErrNotFound says that the store was asked and has no such thing.
	ErrNotFound = errors.New("not found")
	// ErrExists says that a name is taken.
	ErrExists = errors.New("already exists")
)
