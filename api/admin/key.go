package api

import (
	"sync/atomic"

	"modelrelay/providers"
)

// AdminKey opens the operator's operations and may change while they are served. nil is none, which closes them. It is
// safe for concurrent use.
type AdminKey struct {
	key atomic.Pointer[providers.Secret]
}

// NewAdminKey starts with a key; "" is none.
func NewAdminKey(key providers.Secret) *AdminKey {
	k := new(AdminKey)
	k.Load(key)
	return k
}

// Load replaces the key, for requests that come from now on, and tells whether it is another.
func (k *AdminKey) Load(key providers.Secret) bool {
	before := k.key.Swap(&key)
	return before == nil || *before != key
}

// current is the key that counts now, "" for none.
func (k *AdminKey) current() providers.Secret {
	if k == nil {
		return ""
	}
	return *k.key.Load()
}
