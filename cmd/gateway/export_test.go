package main

import (
	"modelrelay/providers/relay"
	"modelrelay/storage"
)

// NewMakers keeps makers in the store.
func NewMakers(store *storage.Makers) relay.Makers { return makers{store} }

// MemoryLimit is how much memory a process may take whose system has such files.
var MemoryLimit = memoryLimit

// PlacesWithin is how many connections of clients there are within a limit of open files.
func PlacesWithin(files int) (int, error) { return placesWithin(files) }
