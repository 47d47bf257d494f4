package tokens

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"modelrelay/storage"
)

// writeTogether is the number of seeds that are written before changes are followed again. It is below the number of changes that Redis
// stores, so that a long write does not force its own process to read everything again.
const writeTogether = 100

// write writes the due seeds whose records differ from the file. So its cost depends on the file, not on the number of tokens in Redis.
// Processes with different files do not overwrite each other: only a Seed call writes all seeds. write calls between after each round trip
// of records, so that the caller follows changes during a long write. wrote: it put seeds into Redis, or tried to. The caller holds
// s.writing.
func (s *seeds) write(ctx context.Context, between func(context.Context) error) (wrote bool, err error) {
	due, list := s.take(), s.list.Load()
	if due == seedsWritten || due == seedsMissing && len(list.byID) == 0 {
		return false, nil
	}
	changed := false
	defer func() {
		if changed || err != nil {
			s.raise(due)
		}
	}()
	replace := func(all []replacement, err error) error {
		if err != nil {
			return err
		}
		again, err := s.records.replaceAll(ctx, all)
		wrote, changed = wrote || len(all) > 0, changed || again
		if err != nil {
			return err
		}
		return between(ctx)
	}
	for part := range slices.Chunk(slices.Collect(maps.Values(list.byID)), writeTogether) {
		if err := replace(s.changes(ctx, part, due)); err != nil {
			return wrote, err
		}
	}
	if due == seedsWhole {
		left, err := s.left(ctx, list)
		if err != nil {
			return wrote, err
		}
		for part := range slices.Chunk(left, writeTogether) {
			if err := replace(s.disabled(ctx, part)); err != nil {
				return wrote, err
			}
		}
	}
	return wrote, nil
}

// left returns the ids of seeded tokens that are not in the file.
func (s *seeds) left(ctx context.Context, list *seedList) (left []string, err error) {
	ids := s.records.client.SScan(ctx, seededTokensKey, 0, "", readTogether).Iterator()
	for ids.Next(ctx) {
		if list.byID[ids.Val()] == nil {
			left = append(left, ids.Val())
		}
	}
	return left, storage.RedisError("read tokens", ids.Err())
}

// changes returns the replacements that put seeds into Redis.
func (s *seeds) changes(ctx context.Context, part []*seeded, due seedsDue) (all []replacement, err error) {
	ids := make([]string, len(part))
	sums := make([]keySum, len(part))
	for i, one := range part {
		ids[i], sums[i] = one.token.Load().own.ID, one.sum
	}
	index, found, err := s.records.ofIDs(ctx, ids, sums...)
	if err != nil {
		return nil, err
	}
	at := make(map[keySum]record, len(found))
	for _, r := range found {
		at[r.sum] = r
	}
	for i, one := range part {
		if change, differs := s.change(ctx, one, index[i], at, due); differs {
			all = append(all, change)
		}
	}
	return all, nil
}

// change returns the replacement that puts a seed into Redis; false: there is nothing to write. index is the present key hash of its id.
func (s *seeds) change(ctx context.Context, one *seeded, index string, at map[keySum]record, due seedsDue) (replacement, bool) {
	here := at[one.sum]
	one.take(here)
	token := *one.token.Load().own
	if token.Revoked && due == seedsWhole {
		s.records.log.LogAttrs(ctx, slog.LevelWarn, "token of the configuration is revoked: give it another key",
			slog.String("token", token.Name))
	}
	old := record{sum: one.sum, raw: here.raw}
	var displaced Token // the file gave the key another name
	if here.raw != "" && here.token.ID != token.ID {
		displaced = here.token
	}
	if sum, ok := parseKeySum(index); ok && sum != one.sum && at[sum].token.ID == token.ID {
		old = at[sum]
	}
	if due == seedsMissing && (here.raw != "" || old.raw != "") || token.Revoked && here.raw != "" {
		return replacement{}, false // it is in Redis, possibly from another process's file
	}
	now := time.Now()
	token.CreatedAt = now.UTC().Truncate(time.Second)
	for _, known := range []record{here, at[old.sum]} {
		if known.raw != "" && known.token.ID == token.ID {
			token.CreatedAt = known.token.CreatedAt
			token.succeed(known.token, now, now.Add(SecretOverlap))
		}
	}
	if raw, err := encodeToken(token); err == nil && raw == here.raw && index == one.sum.String() {
		return replacement{}, false
	}
	return replacement{sum: one.sum, old: old, index: index, token: token, claim: claimTake, displaced: displaced, seed: true}, true
}

// disabled returns the replacements that disable tokens that left the file, by their ids. It forgets ids of other tokens.
func (s *seeds) disabled(ctx context.Context, ids []string) (all []replacement, err error) {
	_, found, err := s.records.ofIDs(ctx, ids)
	if err != nil {
		return nil, err
	}
	stale := make(map[string]bool, len(ids))
	for _, id := range ids {
		stale[id] = true
	}
	for _, r := range found {
		if r.raw == "" || !r.token.Seeded || r.token.Revoked || !stale[r.token.ID] {
			continue
		}
		delete(stale, r.token.ID)
		if !r.token.Disabled {
			s.records.log.LogAttrs(ctx, slog.LevelInfo, "token left the configuration", slog.String("token", r.token.Name))
		}
		gone := r.token
		gone.Disabled = true
		all = append(all, replacement{old: r, index: r.sum.String(), sum: r.sum, token: gone})
	}
	if len(stale) > 0 {
		err = s.records.client.SRem(ctx, seededTokensKey, slices.Collect(maps.Keys(stale))).Err()
	}
	return all, storage.RedisError("disable tokens", err)
}
