package main

import (
	"github.com/alecthomas/kong"

	"modelrelay/cmd/gateway/internal/cli"
	"modelrelay/providers/relay"
	"modelrelay/storage/stickiness"
)

// NewStickiness stores which channel made which response.
func NewStickiness(store *stickiness.Store) relay.Origins { return stickyResponses{store} }

// Growth is the percentage at which a heap with so much live, and so many other roots, grows to floor bytes.
var Growth = growth

// ConnectionsWithin is how many connections of clients there are within a limit of open files.
func ConnectionsWithin(files int) (int, error) { return connectionsWithin(files) }

// CommandLine returns the commands with their flags, for the manual.
func CommandLine() (*kong.Kong, error) {
	return kong.New(new(commands), append([]kong.Option{kong.Name("gateway")},
		cli.Options(func(string) (string, bool) { return "", false })...)...)
}
