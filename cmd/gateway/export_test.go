package main

import (
	"modelrelay/providers/relay"
	"modelrelay/storage"
)

// NewAffinity keeps in the store who made which response.
func NewAffinity(store *storage.Makers) relay.Makers { return affinity{store} }

// MemoryLimit is how much memory a process may take whose system has such files.
var MemoryLimit = memoryLimit

// ConnectionsWithin is how many connections of clients there are within a limit of open files.
func ConnectionsWithin(files int) (int, error) { return connectionsWithin(files) }
