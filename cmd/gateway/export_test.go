package main

import (
	"log/slog"

	"modelrelay/api"
	"modelrelay/providers/relay"
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
