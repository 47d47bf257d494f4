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
	hash, err := s.client.HGet(ctx, tokensKey, idOrName).Result()
	if errors.Is(err, redis.Nil) {
		var id string
		if id, err = s.client.HGet(ctx, tokenNamesKey, idOrName).Result(); err == nil {
			hash, err = s.client.HGet(ctx, tokensKey, id).Result()
		}
	}
	if err != nil && !errors.Is(err, redis.Nil) {
		return record{}, storage.RedisError("read token", err)
	}
	if sum, ok := parseKeySum(hash); ok {
		found, err := s.read(ctx, []keySum{sum})
		if err != nil {
			return record{}, err
		}
		if found[0].raw != "" {
			return found[0], nil
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
	r, err := s.find(ctx, id)
	if err == nil && r.token.ID != id {
		err = storage.ErrNotFound
	}
	return r, err
}

// page is Store.Page.
func (s *records) page(ctx context.Context, q PageQuery) (Page, error) {
	var page Page
	from := "-"
	if q.After != "" {
		from = "(" + q.After
	}
	for read := 0; read < PageReads; {
		entries, err := s.between(ctx, from, "+", readTogether)
		if err != nil {
			return Page{}, storage.RedisError("list tokens", err)
		}
		found, err := s.entries(ctx, entries)
		if err != nil {
			return Page{}, err
		}
		for i, r := range found {
			page.Next = entries[i]
			if r.raw == "" || q.Wanted != nil && !q.Wanted(&r.token) {
				continue
			}
			if page.Tokens = append(page.Tokens, r.token); len(page.Tokens) == q.Limit {
				return s.last(ctx, page)
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

// between returns at most so many index entries within a range, whose ends are in the syntax of ZRANGE BYLEX.
func (s *records) between(ctx context.Context, from, to string, most int64) ([]string, error) {
	return s.client.ZRangeArgs(ctx, redis.ZRangeArgs{Key: tokenIndexKey, Start: from, Stop: to, ByLex: true, Count: most}).Result()
}

// last removes the cursor of a page if it is the last one.
func (s *records) last(ctx context.Context, page Page) (Page, error) {
	more, err := s.between(ctx, "("+page.Next, "+", 1)
	if err != nil {
		return Page{}, storage.RedisError("list tokens", err)
	}
	if len(more) == 0 {
		page.Next = ""
	}
	return page, nil
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
	hashes, err := s.client.HMGet(ctx, tokensKey, ids...).Result()
	if err != nil {
		return nil, storage.RedisError("read tokens", err)
	}
	found := make([]record, len(entries))
	var sums []keySum
	var at []int
	for i, hash := range hashes {
		text, _ := hash.(string)
		if sum, ok := parseKeySum(text); ok {
			sums, at = append(sums, sum), append(at, i)
		}
	}
	read, err := s.read(ctx, sums)
	if err != nil {
		return nil, err
	}
	for i, r := range read {
		if indexEntry(r.token.Name, r.token.ID) == entries[at[i]] { // else it was replaced meanwhile
			found[at[i]] = r
		}
	}
	return found, nil
}

// named returns the tokens that have or had the name, the newest last.
func (s *records) named(ctx context.Context, name string) ([]record, error) {
	entries, err := s.between(ctx, "["+name+"\x00", "("+name+"\x01", readTogether)
	if err != nil {
		return nil, storage.RedisError("read token", err)
	}
	found, err := s.entries(ctx, entries)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(r record) bool { return r.raw == "" })
	slices.SortStableFunc(found, func(a, b record) int { return a.token.CreatedAt.Compare(b.token.CreatedAt) })
	return found, nil
}
