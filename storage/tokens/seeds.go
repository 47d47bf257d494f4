package tokens

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"modelrelay/storage"
)

// Seed is one token of the configuration file with its key.
type Seed struct {
	Token Token // ID, Seeded, Revoked, Hint and CreatedAt are set by Seed
	Key   string
}

// seedsDue says what is still to be written of the seeds.
type seedsDue int

const (
	seedsWritten seedsDue = iota
	seedsMissing          // those that Redis lacks
	seedsWhole            // all that differ, and tokens that left the file are disabled
)

// seeded is a seed in memory, without its key.
type seeded struct {
	token atomic.Pointer[held]
}

// take learns from the record that an operator revoked the key, whatever the token was called then. Nothing else in Redis
// overrules the file.
func (s *seeded) take(r record) {
	now := s.token.Load().own
	if r.raw == "" || !r.token.Revoked || now.Revoked {
		return
	}
	revoked := *now
	revoked.Disabled, revoked.Revoked = true, true
	s.token.Store(hold(&revoked))
}

// Seed sets the tokens of the configuration file: from now on they are answered from memory, whatever happens to
// Redis, and are put into Redis, again whenever it lost them. A token that left the file since any process last
// called Seed is disabled; a key that changed replaces the old one, which is then unknown; a webhook secret that changed
// leaves the old one signing beside it for SecretOverlap. A token that an operator
// revoked stays revoked until the file gives it another key. Names and keys must be unique, else nothing is done.
// Redis being away is no error: the writing is made up for, and a revocation is learnt when it answers.
func (t *Store) Seed(ctx context.Context, seeds []Seed) error {
	return t.seed(ctx, seeds, func() {})
}

// SeedGroups is Seed and SetGroups at once, for a file that has changed: no token is used with the limits that its group had in
// the file before.
func (t *Store) SeedGroups(ctx context.Context, seeds []Seed, limits map[string]GroupLimits) error {
	return t.seed(ctx, seeds, func() { t.SetGroups(limits) })
}

func (t *Store) seed(ctx context.Context, seeds []Seed, before func()) error {
	next, err := t.seeds.made(seeds)
	if err != nil {
		return err
	}
	return t.follower.seed(ctx, next, before)
}

// seeds are the tokens of the configuration file.
type seeds struct {
	records *records
	list    atomic.Pointer[map[keySum]*seeded]
	// due is what is still to be written of them. The follower's lock guards it.
	due seedsDue
}

func newSeeds(in *records) *seeds {
	s := &seeds{records: in}
	s.list.Store(&map[keySum]*seeded{})
	return s
}

// made makes seeds of those of a file, and finds what is wrong with them. One whose key was revoked stays revoked.
func (s *seeds) made(given []Seed) (map[keySum]*seeded, error) {
	before := *s.list.Load()
	next := make(map[keySum]*seeded, len(given))
	names := make(map[string]bool, len(given))
	for i, seed := range given {
		if err := validName(seed.Token.Name); err != nil {
			return nil, fmt.Errorf("token %d: %w", i+1, err)
		}
		if err := validKey(seed.Key); err != nil {
			return nil, fmt.Errorf("token %q: %w", seed.Token.Name, err)
		}
		sum := sumOf(seed.Key)
		if names[seed.Token.Name] {
			return nil, fmt.Errorf("token %q: %w: two tokens have this name", seed.Token.Name, storage.ErrExists)
		}
		if next[sum] != nil {
			return nil, fmt.Errorf("token %q: %w: it has the key of token %q", seed.Token.Name, storage.ErrExists, next[sum].token.Load().own.Name)
		}
		token := seed.Token
		token.ID, token.Seeded, token.Revoked, token.Hint = token.Name, true, false, hint(seed.Key)
		if was := before[sum]; was != nil && was.token.Load().own.Revoked {
			token.Disabled, token.Revoked = true, true
		}
		one := new(seeded)
		one.token.Store(hold(&token))
		next[sum] = one
		names[token.Name] = true
	}
	return next, nil
}

// bySum is the seed of a key; false: there is none.
func (s *seeds) bySum(sum keySum) (*seeded, bool) {
	one, ok := (*s.list.Load())[sum]
	return one, ok
}

// byID is the seed of an id, which is its name, as it is now, and the sum of its key; false: there is none.
func (s *seeds) byID(id string) (Token, keySum, bool) {
	for sum, one := range *s.list.Load() {
		if token := one.token.Load().own; token.ID == id {
			return *token, sum, true
		}
	}
	return Token{}, keySum{}, false
}

// write writes what is due, under the follower's lock. Processes with different files do not fight: only a Seed call writes
// the whole. wrote: it put seeds into Redis, or tried to.
func (s *seeds) write(ctx context.Context) (wrote bool, err error) {
	list := *s.list.Load()
	if s.due == seedsWritten || s.due == seedsMissing && len(list) == 0 {
		return false, nil
	}
	index, err := s.records.hashes(ctx)
	if err != nil {
		return false, err
	}
	var sums []keySum
	for sum := range list {
		sums = append(sums, sum)
	}
	for _, hash := range index {
		if sum, ok := parseKeySum(hash); ok && list[sum] == nil {
			sums = append(sums, sum)
		}
	}
	found, err := s.records.read(ctx, sums)
	if err != nil {
		return false, err
	}
	at := make(map[keySum]record, len(found))
	for _, r := range found {
		at[r.sum] = r
	}

	late := false
	for sum, one := range list {
		changed, touched, err := s.writeOne(ctx, sum, one, index, at)
		wrote = wrote || touched
		if err != nil {
			return wrote, err
		}
		late = late || changed
	}
	if s.due == seedsWhole {
		for _, r := range found {
			if list[r.sum] != nil || r.raw == "" || !r.token.Seeded || r.token.Disabled || supersededBy(list, r.token.ID) {
				continue
			}
			gone := r.token
			gone.Disabled = true
			if err := s.records.replace(ctx, replacement{old: r, index: r.sum.String(), sum: r.sum, token: gone}); err != nil && !errors.Is(err, errChanged) {
				return wrote, err
			}
			s.records.log.LogAttrs(ctx, slog.LevelInfo, "token left the configuration", slog.String("token", gone.Name))
		}
	}
	if !late {
		s.due = seedsWritten
	}
	return wrote, nil
}

// writeOne puts one seed into Redis. late: somebody else changed it meanwhile, try again. wrote: it was tried.
func (s *seeds) writeOne(
	ctx context.Context, sum keySum, one *seeded, index map[string]string, at map[keySum]record,
) (late, wrote bool, err error) {
	here := at[sum]
	one.take(here)
	token := *one.token.Load().own
	if token.Revoked && s.due == seedsWhole {
		s.records.log.LogAttrs(ctx, slog.LevelWarn, "token of the configuration is revoked: give it another key", slog.String("token", token.Name))
	}
	old := record{sum: sum, raw: here.raw}
	var displaced Token // the file gave the key another name
	if here.raw != "" && here.token.ID != token.ID {
		displaced = here.token
	}
	if oldSum, ok := parseKeySum(index[token.ID]); ok && oldSum != sum && at[oldSum].token.ID == token.ID {
		old = at[oldSum]
	}
	if s.due == seedsMissing && (here.raw != "" || old.raw != "") || token.Revoked && here.raw != "" {
		return false, false, nil // it is there, maybe as another process's file has it
	}
	now := time.Now()
	token.CreatedAt = now.UTC().Truncate(time.Second)
	for _, known := range []record{here, at[old.sum]} {
		if known.raw != "" && known.token.ID == token.ID {
			token.CreatedAt = known.token.CreatedAt
			token.succeed(known.token, now, now.Add(SecretOverlap))
		}
	}
	if same, err := encodeToken(token); err == nil && same == here.raw && index[token.ID] == sum.String() {
		return false, false, nil
	}
	err = s.records.replace(ctx, replacement{sum: sum, old: old, index: index[token.ID], token: token, claim: claimTake, displaced: displaced})
	if errors.Is(err, errChanged) {
		return true, true, nil
	}
	return false, true, err
}

func supersededBy(list map[keySum]*seeded, id string) bool {
	for _, s := range list {
		if s.token.Load().own.ID == id {
			return true
		}
	}
	return false
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
		return errors.New("name holds a control character")
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
