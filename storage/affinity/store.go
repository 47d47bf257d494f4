// Package affinity remembers in Redis which channel and key made a response, so that calls that go on from it reach them
// again. It does not know what a response or a key is: both are names.
package affinity

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

const (
	// kept is how long the maker of a response is remembered: a conversation that was left for longer is gone on with elsewhere.
	kept = 24 * time.Hour
	// localMost bounds what one process remembers by itself, about 200 bytes each.
	localMost = 20_000
	// waitingMost bounds what waits for Redis while it is away, together what goes in one round trip.
	waitingMost = 20_000
	together    = 500
	// sendEvery is how often new ones go to Redis. The client has its response by then and a person reads it.
	sendEvery = 100 * time.Millisecond
	// findWithin bounds the wait for a response's maker. Without it the call goes where any call goes.
	findWithin = 250 * time.Millisecond
	// sendWithin bounds one round of writing, also the last one of Close.
	sendWithin = time.Second
	// idMost bounds the name of a response. Vendors' have about 60 bytes.
	idMost = 200
)

// Store remembers for a day who made a response that a later call may go on from: in this process at once, in the others
// a moment later. While Redis is away each process knows its own. Safe for concurrent use. Close it.
type Store struct {
	client redis.UniversalClient
	out    storage.Outage

	mu sync.Mutex
	// young and old are what this process remembers; when young is full it becomes old.
	young, old map[string]string
	waiting    []made

	sender *storage.Sender
}

// made is one response and who made it.
type made struct{ response, maker string }

// maker:<response id> is a string: which channel and key made a response, for a day.
func responseKey(response string) string { return storage.Prefix + "maker:" + response }

// New uses the client, which stays the caller's. log is told when Redis goes and comes; nil: nobody is.
func New(client redis.UniversalClient, log *slog.Logger) *Store {
	s := &Store{
		client: client, young: make(map[string]string),
		out: storage.Outage{Log: cmp.Or(log, slog.New(slog.DiscardHandler)), What: "who made which answer"},
	}
	s.sender = storage.NewSender(sendEvery, s.send)
	return s
}

// Remember stores the maker of a response: any text that names channel and key. The first maker stays. It never waits.
func (s *Store) Remember(response, maker string) {
	if response == "" || len(response) > idMost {
		return
	}
	s.mu.Lock()
	if _, known := s.local(response); known {
		s.mu.Unlock()
		return
	}
	s.keep(response, maker)
	if len(s.waiting) < waitingMost {
		s.waiting = append(s.waiting, made{response, maker})
	}
	s.mu.Unlock()
	s.sender.Wake()
}

// keep remembers here. The caller holds mu.
func (s *Store) keep(response, maker string) {
	if len(s.young) >= localMost/2 {
		s.young, s.old = make(map[string]string), s.young
	}
	s.young[response] = maker
}

// local is the maker of a response as far as this process knows it. The caller holds mu.
func (s *Store) local(response string) (maker string, known bool) {
	if maker, known = s.young[response]; !known {
		maker, known = s.old[response]
	}
	return maker, known
}

// Find returns the makers of responses, in their order; "" for one that is not known. Those that this process does not know cost one
// round trip together, and a Redis that is slow or away costs a moment.
func (s *Store) Find(ctx context.Context, responses ...string) []string {
	makers := make([]string, len(responses))
	var missing []int
	s.mu.Lock()
	for i, response := range responses {
		maker, known := s.local(response)
		if makers[i] = maker; !known && response != "" && len(response) <= idMost {
			missing = append(missing, i)
		}
	}
	s.mu.Unlock()
	if len(missing) == 0 || !s.out.Try(time.Now()) {
		return makers
	}
	ctx, cancel := context.WithTimeout(ctx, findWithin)
	defer cancel()
	pipe := s.client.Pipeline()
	answers := make([]*redis.StringCmd, len(missing))
	for n, i := range missing {
		answers[n] = pipe.Get(ctx, responseKey(responses[i]))
	}
	_, err := pipe.Exec(ctx)
	if err = storage.RedisError("find the makers of answers", err); errors.Is(err, storage.ErrNotFound) {
		err = nil
	}
	if s.out.Note(ctx, time.Now(), err) != nil {
		return makers
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, i := range missing {
		if maker := answers[n].Val(); maker != "" {
			makers[i] = maker
			s.keep(responses[i], maker)
		}
	}
	return makers
}

// Close writes what still waits, unless Redis is away, and ends.
func (s *Store) Close() { s.sender.Close() }

// send writes what waits. What Redis does not take is dropped: the process that made it knows.
func (s *Store) send() {
	ctx, cancel := context.WithTimeout(context.Background(), sendWithin) //nolint:forbidigo // of the goroutine that Close ends
	defer cancel()
	for {
		s.mu.Lock()
		n := min(len(s.waiting), together)
		some := s.waiting[:n:n]
		s.waiting = s.waiting[n:]
		s.mu.Unlock()
		if n == 0 || !s.out.Try(time.Now()) {
			return
		}
		_, err := s.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for _, one := range some {
				pipe.SetNX(ctx, responseKey(one.response), one.maker, kept)
			}
			return nil
		})
		if s.out.Note(ctx, time.Now(), storage.RedisError("remember makers", err)) != nil {
			return
		}
	}
}
