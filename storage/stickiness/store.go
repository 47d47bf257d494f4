// Package stickiness stores in Redis the channel and key of each response, so that calls that continue it reach the same ones.
// Responses and origins are only names to it.
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
	// ttl is how long the origin of a response is stored. A conversation with a longer pause may continue on another channel.
	ttl = 24 * time.Hour
	// entriesMost bounds the entries in one process, about 200 bytes each, and those that wait for Redis.
	entriesMost = 20_000
	// delay is how long new entries wait for others. A client needs longer for its next request.
	delay = 100 * time.Millisecond
	// readMost is the number of entries in one round trip.
	readMost = 500
	// idMost bounds the id of a response, in bytes. Vendors' ids have about 60.
	idMost = 200
)

// Store stores for a day the origins of responses that a later call may continue: in this process immediately, for others a moment later.
// While Redis is unavailable, each process has only its own. It is safe for concurrent use. The caller closes it.
type Store struct {
	client  redis.UniversalClient
	origins *writebehind.Map[string, string]
}

// originKey returns the key of a string: channel and key of a response, for a day.
func originKey(response string) string { return storage.Prefix + "origin:" + response }

// New returns a Store over the client, which the caller closes. log may be nil.
func New(client redis.UniversalClient, log *slog.Logger) *Store {
	s := &Store{client: client}
	s.origins = writebehind.New(writebehind.Options[string, string]{
		Part: "the origins of responses", Log: log, Delay: delay, Waiting: entriesMost, Recent: entriesMost,
		Write: s.write, Read: s.read, ReadMost: readMost,
	})
	return s
}

// Remember stores the origin of a response: any text that names channel and key. The first origin stays. It does not block.
func (s *Store) Remember(response, origin string) {
	if valid(response) && !s.origins.Has(response) {
		s.origins.Put(response, origin)
	}
}

func valid(response string) bool { return response != "" && len(response) <= idMost }

// Find returns the origins of responses, in their order; "" for an unknown one. The ids that this process does not know cost one round trip
// together. If Redis is slow or unavailable, it returns soon without them.
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

// Close writes the waiting origins, unless Redis is unavailable, and stops.
func (s *Store) Close() { s.origins.Close() }

func (s *Store) read(ctx context.Context, responses []string) (map[string]string, error) {
	answers, err := storage.Pipelined(ctx, s.client, "find the origins of responses", responses,
		func(pipe redis.Pipeliner, response string) *redis.StringCmd {
			return pipe.Get(ctx, originKey(response))
		})
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return nil, err
	}
	found := make(map[string]string)
	for i, answer := range answers {
		if answer.Val() != "" {
			found[responses[i]] = answer.Val()
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
	return storage.RedisError("store the origins of responses", err)
}
