package storage

import (
	"net/netip"
	"slices"
)

// The words of Token.Operations.
const (
	OperationRelay    = "relay"    // every call that is relayed at once
	OperationVideo    = "video"    // all that is done with video tasks
	OperationRealtime = "realtime" // realtime conversations
)

// Operations lists the words that a token's operations are made of.
func Operations() []string { return []string{OperationRelay, OperationVideo, OperationRealtime} }

// Permits tells whether the token may be used for operations of a word.
func (t *Token) Permits(operation string) bool {
	return len(t.Operations) == 0 || slices.Contains(t.Operations, operation)
}

// Admits tells whether a call may come from an address. One that is not known comes from no network.
func (t *Token) Admits(source netip.Addr) bool {
	if len(t.Networks) == 0 {
		return true
	}
	source = source.Unmap().WithZone("")
	return slices.ContainsFunc(t.Networks, func(network string) bool {
		prefix, err := netip.ParsePrefix(network)
		return err == nil && prefix.Contains(source)
	})
}
