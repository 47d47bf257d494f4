// Package stickiness remembers in Redis where a response came from, so that calls that continue it reach the same channel and key.
// It does not know what a response or a key is: both are names.
package stickiness

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
	"modelrelay/storage/writebehind"
)

const (
	// ttl is how long the origin of a response is remembered: a conversation that was left for longer continues elsewhere.
	ttl = 24 * time.Hour
	// entriesMost bounds what one process remembers by itself, about 200 bytes each, and what waits for Redis.
	entriesMost = 20_000
	// delay is how long new entries wait for others. The client has its response by then, and a person reads it.
	delay = 100 * time.Millisecond
	// readMost is how many entries are read in one round trip.
	readMost = 500
	// idMost bounds the name of a response. Vendors' have about 60 bytes.
	idMost = 200
)

// Store remembers for a day the origins of responses that a later call may continue: in this process at once, in the others a
// moment later. While Redis is away each process knows its own. Safe for concurrent use. The caller closes it.
type Store struct {
	client  redis.UniversalClient
	origins *writebehind.Map[string, string]
}

// originKey is a string: channel and key of a response, for a day.
func originKey(response string) string { return storage.Prefix + "origin:" + response }

// New uses the client, which stays the caller's. log may be nil: silent.
func New(client redis.UniversalClient, log *slog.Logger) *Store {
	s := &Store{client: client}
	s.origins = writebehind.New(writebehind.Options[string, string]{
		Part: "the origins of responses", Log: log, Delay: delay, Waiting: entriesMost, Recent: entriesMost,
		Write: s.write, Read: s.read, ReadMost: readMost,
	})
	return s
}

// Remember stores the origin of a response: any text that names channel and key. The first origin stays. It never waits.
func (s *Store) Remember(response, origin string) {
	if valid(response) && !s.origins.Has(response) {
		s.origins.Put(response, origin)
	}
}

func valid(response string) bool { return response != "" && len(response) <= idMost }

// Find returns the origins of responses, in their order; "" for one that is not known. Those that this process does not know cost
// one round trip together, and a Redis that is slow or away costs a moment.
func (s *Store) Find(ctx context.Context, responses ...string) []string {
	var keys []string
	for _, response := range responses {
		if valid(response) {
			keys = append(keys, response)
		}
	}
	found := s.origins.Find(ctx, keys)
	origins := make([]string, len(responses))
	for i, response := range responses {
		origins[i] = found[response]
	}
	return origins
}

// Close writes what still waits, unless Redis is away, and ends.
func (s *Store) Close() { s.origins.Close() }

func (s *Store) read(ctx context.Context, responses []string) (map[string]string, error) {
	pipe := s.client.Pipeline()
	for _, response := range responses {
		pipe.Get(ctx, originKey(response))
	}
	answers, err := pipe.Exec(ctx)
	if err = storage.RedisError("find the origins of responses", err); err != nil && !errors.Is(err, storage.ErrNotFound) {
		return nil, err
	}
	found := make(map[string]string)
	for i, answer := range answers {
		if get, is := answer.(*redis.StringCmd); is && get.Val() != "" {
			found[responses[i]] = get.Val()
		}
	}
	return found, nil
}

func (s *Store) write(ctx context.Context, origins map[string]string) error {
	_, err := s.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for response, origin := range origins {
			pipe.SetNX(ctx, originKey(response), origin, ttl)
		}
		return nil
	})
	return storage.RedisError("remember the origins of responses", err)
}
