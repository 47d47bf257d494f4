package tokens

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"modelrelay/storage"
)

const (
	// writeTogether is the number of seeds that are written before changes are followed again. It is below the number of changes that
	// Redis stores, so that a long write does not force its own process to read everything again.
	writeTogether = 100
	// scanTogether is the number of fields of a hash in one round trip.
	scanTogether = 1000
)

// write writes the due seeds. It reads the digests of the seeded tokens, and the records of those that differ from the file. So its cost
// depends on the file and its changes, not on the number of tokens in Redis. Processes with different files do not overwrite each other:
// only a Seed call writes all seeds. write calls between after each round trip of records, so that the caller follows changes during a long
// write. wrote: it put seeds into Redis, or tried to. The caller holds s.writing.
func (s *seeds) write(ctx context.Context, between func(context.Context) error) (wrote bool, err error) {
	due, list := s.take(), s.list.Load()
	if due == seedsWritten || due == seedsMissing && len(list.byID) == 0 {
		return false, nil
	}
	incomplete := true
	defer func() {
		if incomplete || err != nil {
			s.raise(due)
		}
	}()
	left, err := s.scan(ctx, list)
	if err != nil {
		return false, err
	}
	var differ []*seeded
	for _, one := range list.byID {
		if one.found != s.scans {
			differ = append(differ, one)
		}
	}
	changed := false
	for part := range slices.Chunk(differ, writeTogether) {
		again, touched, err := s.writePart(ctx, part, due)
		wrote, changed = wrote || touched, changed || again
		if err != nil {
			return wrote, err
		}
		if err := between(ctx); err != nil {
			return wrote, err
		}
	}
	if due == seedsWhole {
		for part := range slices.Chunk(left, writeTogether) {
			again, err := s.disable(ctx, part)
			wrote, changed = true, changed || again
			if err != nil {
				return wrote, err
			}
			if err := between(ctx); err != nil {
				return wrote, err
			}
		}
	}
	incomplete = changed
	return wrote, nil
}

// scan marks the seeds whose digest is in Redis, and returns the ids of seeded tokens that are not in the file.
func (s *seeds) scan(ctx context.Context, list *seedList) (left []string, err error) {
	s.scans++
	err = s.records.scan(ctx, seededTokensKey, func(id, digest string) {
		switch one := list.byID[id]; {
		case one == nil:
			left = append(left, id)
		case one.digest == digest:
			one.found = s.scans
		}
	})
	return left, err
}

// writePart puts seeds into Redis. changed: another process changed one meanwhile, so it must be written again. wrote: it sent a write.
func (s *seeds) writePart(ctx context.Context, part []*seeded, due seedsDue) (changed, wrote bool, err error) {
	ids := make([]string, len(part))
	sums := make([]keySum, len(part))
	for i, one := range part {
		ids[i], sums[i] = one.token.Load().own.ID, one.sum
	}
	index, found, err := s.records.ofIDs(ctx, ids, sums...)
	if err != nil {
		return false, false, err
	}
	at := make(map[keySum]record, len(found))
	for _, r := range found {
		at[r.sum] = r
	}
	var changes []replacement
	for i, one := range part {
		if change, differs := s.change(ctx, one, index[i], at, due); differs {
			changes = append(changes, change)
		}
	}
	changed, err = s.records.replaceAll(ctx, changes)
	return changed, len(changes) > 0, err
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
	digest := one.digest
	if token.Revoked {
		digest = "" // the next process reads the revocation from the record
	}
	return replacement{sum: one.sum, old: old, index: index, token: token, claim: claimTake, displaced: displaced, digest: digest}, true
}

// disable disables tokens that left the file, by their ids. changed: another process changed one meanwhile.
func (s *seeds) disable(ctx context.Context, ids []string) (changed bool, err error) {
	_, found, err := s.records.ofIDs(ctx, ids)
	if err != nil {
		return false, err
	}
	stale := make(map[string]bool, len(ids))
	for _, id := range ids {
		stale[id] = true
	}
	var changes []replacement
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
		changes = append(changes, replacement{old: r, index: r.sum.String(), sum: r.sum, token: gone})
	}
	changed, err = s.records.replaceAll(ctx, changes)
	if err == nil && len(stale) > 0 {
		err = s.records.client.HDel(ctx, seededTokensKey, slices.Collect(maps.Keys(stale))...).Err()
	}
	return changed, storage.RedisError("disable tokens", err)
}
