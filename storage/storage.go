// Package storage is shared by the packages below it, which store the gateway's state: the Redis client and its errors, the circuit for
// outages, batches of calls, and a token's allowance. Each of those packages documents its keys. Storage depends on no vendor and no HTTP
// format.
package storage

import "errors"

// Prefix begins every key of this program in Redis, so that programs can share one Redis. RedisOptions.Prefix replaces it.
const Prefix = "mr:"

var (
	// ErrUnavailable reports that Redis or the S3 store did not serve a request: it is down, too slow, or starting. A read has no
	// result, and a write may or may not have happened.
	ErrUnavailable = errors.New("storage is unavailable")
	// ErrNotFound reports that the store answered and does not have the entry.
	ErrNotFound = errors.New("not found")
	// ErrExists reports that a name is in use.
	ErrExists = errors.New("already exists")
)
