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
	token atomic.Pointer[Token]
}

// take learns from the record that an operator revoked the key, whatever the token was called then. Nothing else in Redis
// overrules the file.
func (s *seeded) take(r record) {
	now := s.token.Load()
	if r.raw == "" || !r.token.Revoked || now.Revoked {
		return
	}
	revoked := *now
	revoked.Disabled, revoked.Revoked = true, true
	s.token.Store(&revoked)
}

// Seed sets the tokens of the configuration file: from now on they are answered from memory, whatever happens to
// Redis, and are put into Redis, again whenever it lost them. A token that left the file since any process last
// called Seed is disabled; a key that changed replaces the old one, which is then unknown; a webhook secret that changed
// leaves the old one signing beside it for SecretOverlap. A token that an operator
// revoked stays revoked until the file gives it another key. Names and keys must be unique, else nothing is done.
// Redis being away is no error: the writing is made up for, and a revocation is learnt when it answers.
func (t *Store) Seed(ctx context.Context, seeds []Seed) error {
	before := *t.seeds.Load()
	next := make(map[keySum]*seeded, len(seeds))
	names := make(map[string]bool, len(seeds))
	for i, seed := range seeds {
		if err := validName(seed.Token.Name); err != nil {
			return fmt.Errorf("token %d: %w", i+1, err)
		}
		if err := validKey(seed.Key); err != nil {
			return fmt.Errorf("token %q: %w", seed.Token.Name, err)
		}
		sum := sumOf(seed.Key)
		if names[seed.Token.Name] {
			return fmt.Errorf("token %q: %w: two tokens have this name", seed.Token.Name, storage.ErrExists)
		}
		if next[sum] != nil {
			return fmt.Errorf("token %q: %w: it has the key of token %q", seed.Token.Name, storage.ErrExists, next[sum].token.Load().Name)
		}
		token := seed.Token
		token.ID, token.Seeded, token.Revoked, token.Hint = token.Name, true, false, hint(seed.Key)
		if was := before[sum]; was != nil && was.token.Load().Revoked {
			token.Disabled, token.Revoked = true, true
		}
		s := new(seeded)
		s.token.Store(&token)
		next[sum] = s
		names[token.Name] = true
	}

	t.following.Lock()
	defer t.following.Unlock()
	t.seeds.Store(&next)
	t.following.due = seedsWhole
	if !t.out.Try(time.Now()) {
		return nil
	}
	err := t.out.Note(ctx, time.Now(), t.writeSeeds(ctx))
	if errors.Is(err, storage.ErrUnavailable) {
		return nil
	}
	return err
}

// writeSeeds writes what is due. Processes with different files do not fight: only a Seed call writes the whole.
func (t *Store) writeSeeds(ctx context.Context) error {
	seeds := *t.seeds.Load()
	if t.following.due == seedsWritten || t.following.due == seedsMissing && len(seeds) == 0 {
		return nil
	}
	index, err := t.client.HGetAll(ctx, tokensKey).Result()
	if err != nil {
		return storage.RedisError("write seeded tokens", err)
	}
	var sums []keySum
	for sum := range seeds {
		sums = append(sums, sum)
	}
	for _, hash := range index {
		if sum, ok := parseKeySum(hash); ok && seeds[sum] == nil {
			sums = append(sums, sum)
		}
	}
	records, err := t.records(ctx, sums)
	if err != nil {
		return err
	}
	at := make(map[keySum]record, len(records))
	for _, r := range records {
		at[r.sum] = r
	}

	late := false
	for sum, s := range seeds {
		changed, err := t.writeSeed(ctx, sum, s, index, at)
		if err != nil {
			return err
		}
		late = late || changed
	}
	if t.following.due == seedsWhole {
		for _, r := range records {
			if seeds[r.sum] != nil || r.raw == "" || !r.token.Seeded || r.token.Disabled || supersededBy(seeds, r.token.ID) {
				continue
			}
			gone := r.token
			gone.Disabled = true
			if err := t.replace(ctx, replacement{old: r, index: r.sum.String(), sum: r.sum, token: gone}); err != nil && !errors.Is(err, errChanged) {
				return err
			}
			t.opts.Log.LogAttrs(ctx, slog.LevelInfo, "token left the configuration", slog.String("token", gone.Name))
		}
	}
	if !late {
		t.following.due = seedsWritten
	}
	return nil
}

// writeSeed puts one seed into Redis. late: somebody else changed it meanwhile, try again.
func (t *Store) writeSeed(ctx context.Context, sum keySum, s *seeded, index map[string]string, at map[keySum]record) (late bool, err error) {
	here := at[sum]
	s.take(here)
	token := *s.token.Load()
	if token.Revoked && t.following.due == seedsWhole {
		t.opts.Log.LogAttrs(ctx, slog.LevelWarn, "token of the configuration is revoked: give it another key", slog.String("token", token.Name))
	}
	old := record{sum: sum, raw: here.raw}
	var displaced Token // the file gave the key another name
	if here.raw != "" && here.token.ID != token.ID {
		displaced = here.token
	}
	if oldSum, ok := parseKeySum(index[token.ID]); ok && oldSum != sum && at[oldSum].token.ID == token.ID {
		old = at[oldSum]
	}
	if t.following.due == seedsMissing && (here.raw != "" || old.raw != "") || token.Revoked && here.raw != "" {
		return false, nil // it is there, maybe as another process's file has it
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
		return false, nil
	}
	t.following.begun = false // whatever happens to Redis now, the next look at it is a whole one
	err = t.replace(ctx, replacement{sum: sum, old: old, index: index[token.ID], token: token, claim: claimTake, displaced: displaced})
	if errors.Is(err, errChanged) {
		return true, nil
	}
	return false, err
}

func supersededBy(seeds map[keySum]*seeded, id string) bool {
	for _, s := range seeds {
		if s.token.Load().ID == id {
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
