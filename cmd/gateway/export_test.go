package main

import (
	"log/slog"

	"modelrelay/api"
	"modelrelay/providers/relay"
	"modelrelay/storage"
)

// Counters returns what counts the requests and attempts of a gateway with the configuration.
func Counters(cfg Config) (seen func(api.Seen), tried func(relay.Attempt), err error) {
	m, err := newMetrics(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, nil, err
	}
	m.learn(cfg, vendors())
	return m.seen(), m.tried(), nil
}

// NewMakers keeps makers in the store.
func NewMakers(store *storage.Makers) relay.Makers { return makers{store} }

// Seams for the tests of what the memory for bodies is.
var (
	MemoryLimit = memoryLimit
	BodyMemory  = Relay.bodyMemory
)

// PlacesWithin is how many connections of clients there are within a limit of open files.
func PlacesWithin(files int) (int, error) { return placesWithin(files) }
