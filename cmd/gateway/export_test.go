package main

import (
	"modelrelay/providers/relay"
	"modelrelay/storage/affinity"
)

// NewAffinity keeps in the store who made which response.
func NewAffinity(store *affinity.Store) relay.Makers { return responseAffinity{store} }

// MemoryLimit is how much memory a process may take whose system has such files.
var MemoryLimit = memoryLimit

// ConnectionsWithin is how many connections of clients there are within a limit of open files.
func ConnectionsWithin(files int) (int, error) { return connectionsWithin(files) }
