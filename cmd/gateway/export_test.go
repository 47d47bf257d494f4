package main

import (
	"log/slog"

	"modelrelay/api"
	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/providers/relay"
	"modelrelay/storage"
)

// Counters returns what counts the requests and attempts of a gateway with the configuration.
func Counters(cfg config.Config) (seen func(api.Seen), tried func(relay.Attempt), err error) {
	m, err := newMetrics(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, nil, err
	}
	m.learn(cfg, vendors())
	return m.seen(), m.tried(), nil
}

// NewMakers keeps makers in the store.
func NewMakers(store *storage.Makers) relay.Makers { return makers{store} }

// MemoryLimit is how much memory a process may take whose system has such files.
var MemoryLimit = memoryLimit

// PlacesWithin is how many connections of clients there are within a limit of open files.
func PlacesWithin(files int) (int, error) { return placesWithin(files) }
