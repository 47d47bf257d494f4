package tokens

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

// find returns a token by id or by name. Of several tokens of one name, it is the one that is not revoked, else the newest.
func (s *records) find(ctx context.Context, idOrName string) (record, error) {
	r, err := s.byID(ctx, idOrName)
	if !errors.Is(err, storage.ErrNotFound) {
		return r, err
	}
	id, err := s.client.HGet(ctx, tokenNamesKey, idOrName).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return record{}, storage.RedisError("read token", err)
	}
	if id != "" {
		if r, err = s.byID(ctx, id); !errors.Is(err, storage.ErrNotFound) {
			return r, err
		}
	}
	// A revoked token no longer has its name, but operators still look for it.
	all, err := s.named(ctx, idOrName)
	if err != nil {
		return record{}, err
	}
	if len(all) == 0 {
		return record{}, storage.ErrNotFound
	}
	return all[len(all)-1], nil
}

// byID is find, but only by id.
func (s *records) byID(ctx context.Context, id string) (record, error) {
	_, found, err := s.ofIDs(ctx, []string{id})
	if err != nil {
		return record{}, err
	}
	if len(found) == 0 || found[0].raw == "" || found[0].token.ID != id { // the key may be another token's by now
		return record{}, storage.ErrNotFound
	}
	return found[0], nil
}

// Page returns tokens ordered by name, including revoked ones. Its cost depends on the page, not on the number of tokens.
func (t *Store) Page(ctx context.Context, q PageQuery) (Page, error) {
	var page Page
	from := "-"
	if q.After != "" {
		from = "(" + q.After
	}
	for read := 0; read < PageReads; {
		entries, err := t.records.between(ctx, from, "+")
		if err != nil {
			return Page{}, err
		}
		found, err := t.records.entries(ctx, entries)
		if err != nil {
			return Page{}, err
		}
		for i, r := range found {
			page.Next = entries[i]
			if r.raw == "" || q.Wanted != nil && !q.Wanted(&r.token) {
				continue
			}
			if page.Tokens = append(page.Tokens, r.token); len(page.Tokens) == q.Limit {
				if i == len(entries)-1 && len(entries) < readTogether {
					page.Next = ""
				}
				return page, nil
			}
		}
		if len(entries) < readTogether {
			page.Next = ""
			return page, nil
		}
		read += len(entries)
		from = "(" + page.Next
	}
	return page, nil
}

// between returns the first readTogether index entries within a range, whose ends are in the syntax of ZRANGE BYLEX.
func (s *records) between(ctx context.Context, from, to string) ([]string, error) {
	names := redis.ZRangeArgs{Key: tokenIndexKey, Start: from, Stop: to, ByLex: true, Count: readTogether}
	entries, err := s.client.ZRangeArgs(ctx, names).Result()
	return entries, storage.RedisError("list tokens", err)
}

// indexEntry returns a token's entry in the index, which is ordered by name, then by id.
func indexEntry(name, id string) string { return name + "\x00" + id }

// entries reads the tokens of index entries, in their order. raw is empty for a token that no longer exists.
func (s *records) entries(ctx context.Context, entries []string) ([]record, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	ids := make([]string, len(entries))
	for i, entry := range entries {
		ids[i] = entry[strings.LastIndexByte(entry, 0)+1:]
	}
	_, read, err := s.ofIDs(ctx, ids)
	if err != nil {
		return nil, err
	}
	byEntry := make(map[string]record, len(read)) // a replaced token has another entry
	for _, r := range read {
		byEntry[indexEntry(r.token.Name, r.token.ID)] = r
	}
	found := make([]record, len(entries))
	for i, entry := range entries {
		found[i] = byEntry[entry]
	}
	return found, nil
}

// named returns the tokens that have or had the name, the newest last.
func (s *records) named(ctx context.Context, name string) ([]record, error) {
	entries, err := s.between(ctx, "["+name+"\x00", "("+name+"\x01")
	if err != nil {
		return nil, err
	}
	found, err := s.entries(ctx, entries)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(r record) bool { return r.raw == "" })
	slices.SortStableFunc(found, func(a, b record) int { return a.token.CreatedAt.Compare(b.token.CreatedAt) })
	return found, nil
}
