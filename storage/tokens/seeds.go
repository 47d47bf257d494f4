package tokens

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"modelrelay/storage"
)

// Seed is one token of the configuration file with its key.
type Seed struct {
	Token Token // ID, Seeded, Revoked, Hint and CreatedAt are set by Seed
	Key   string
}

// seedsDue is the part of the seeds that is still to be written.
type seedsDue int

const (
	seedsWritten seedsDue = iota
	seedsMissing          // seeds that are not in Redis
	seedsWhole            // all that differ; tokens that left the file are disabled
)

// seeded is a seed in memory, without its key.
type seeded struct {
	sum   keySum
	token atomic.Pointer[held]
}

// take records that an operator revoked the key, even under another name of the token. Nothing else in Redis overrides the file.
func (s *seeded) take(r record) {
	now := s.token.Load().own
	if r.raw == "" || !r.token.Revoked || now.Revoked {
		return
	}
	revoked := *now
	revoked.Disabled, revoked.Revoked = true, true
	s.token.Store(hold(&revoked))
}

// Seed sets the tokens of the configuration file. They are then served from memory, even without Redis, and written to Redis, again
// whenever it lost them. A token that left the file since any process last called Seed is disabled. A changed key replaces the old one,
// which is then unknown. A replaced webhook secret signs with its successor for SecretOverlap. A token that an operator revoked stays
// revoked until the file gives it another key. Names and keys must be unique, otherwise Seed does nothing. While Redis is unavailable,
// Seed returns nil: the seeds are written, and revocations are read, when Redis answers.
func (t *Store) Seed(ctx context.Context, seeds []Seed) error {
	return t.SeedGroups(ctx, seeds, *t.groups.Load())
}

// SeedGroups is Seed and SetGroups in one step, for a changed file: no new token has the previous limits of its group.
func (t *Store) SeedGroups(ctx context.Context, seeds []Seed, limits map[string]GroupLimits) error {
	next, err := t.seeds.build(seeds)
	if err != nil {
		return err
	}
	return t.follower.seed(ctx, next, func() { t.SetGroups(limits) })
}

// seeds are the tokens of the configuration file.
type seeds struct {
	records *records
	list    atomic.Pointer[seedList]

	// writing is held while seeds are written, which may take long.
	writing sync.Mutex

	mu  sync.Mutex
	due seedsDue
}

// seedList is the seeds of one file. It is not modified.
type seedList struct {
	bySum map[keySum]*seeded
	byID  map[string]*seeded
}

func newSeeds(in *records) *seeds {
	s := &seeds{records: in}
	s.list.Store(new(seedList))
	return s
}

func (s *seeds) raise(due seedsDue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due = max(s.due, due)
}

// take returns the due part and resets it.
func (s *seeds) take() seedsDue {
	s.mu.Lock()
	defer s.mu.Unlock()
	due := s.due
	s.due = seedsWritten
	return due
}

// build checks the seeds of a file and converts them. A seed whose key is revoked stays revoked.
func (s *seeds) build(given []Seed) (*seedList, error) {
	before := s.list.Load()
	next := &seedList{bySum: make(map[keySum]*seeded, len(given)), byID: make(map[string]*seeded, len(given))}
	for i, seed := range given {
		if err := validName(seed.Token.Name); err != nil {
			return nil, fmt.Errorf("token %d: %w", i+1, err)
		}
		if err := validKey(seed.Key); err != nil {
			return nil, fmt.Errorf("token %q: %w", seed.Token.Name, err)
		}
		one := &seeded{sum: sumOf(seed.Key)}
		if next.byID[seed.Token.Name] != nil {
			return nil, fmt.Errorf("token %q: %w: two tokens have this name", seed.Token.Name, storage.ErrExists)
		}
		if other := next.bySum[one.sum]; other != nil {
			return nil, fmt.Errorf("token %q: %w: it has the key of token %q", seed.Token.Name, storage.ErrExists, other.token.Load().own.Name)
		}
		token := seed.Token
		token.ID, token.Seeded, token.Revoked, token.Hint, token.CreatedAt = token.Name, true, false, hint(seed.Key), time.Time{}
		if was := before.bySum[one.sum]; was != nil && was.token.Load().own.Revoked {
			token.Disabled, token.Revoked = true, true
		}
		one.token.Store(hold(&token))
		next.bySum[one.sum], next.byID[token.ID] = one, one
	}
	return next, nil
}

// bySum returns the seed of a key; false: there is none.
func (s *seeds) bySum(sum keySum) (*seeded, bool) {
	one, ok := s.list.Load().bySum[sum]
	return one, ok
}

// byID returns the present token of a seed by its id, which is its name, and the sum of its key; false: there is none.
func (s *seeds) byID(id string) (Token, keySum, bool) {
	one, ok := s.list.Load().byID[id]
	if !ok {
		return Token{}, keySum{}, false
	}
	return *one.token.Load().own, one.sum, true
}

func validName(name string) error {
	switch {
	case name == "":
		return errors.New("name is missing")
	case len(name) > 128:
		return errors.New("name is longer than 128 bytes")
	case strings.HasPrefix(name, idPrefix):
		return fmt.Errorf("name must not begin with %q", idPrefix)
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return errors.New("name contains a control character")
	}
	return nil
}

func validKey(key string) error {
	switch {
	case key == "":
		return errors.New("key is missing")
	case len(key) > maxKey:
		return fmt.Errorf("key is longer than %d bytes", maxKey)
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("key must be visible ASCII")
	}
	return nil
}
