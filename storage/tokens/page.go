package tokens

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

const (
	// PageLooks bounds how many tokens one page looks at, however few of them it wants: reading so many takes some tens of
	// milliseconds.
	PageLooks = 5_000
	// indexTogether is how many tokens are put into the index in one round trip while it is made.
	indexTogether = 1000
)

// PageQuery asks for a page of tokens by name.
type PageQuery struct {
	// After is the Next of the page before, "" for the first.
	After string
	// Limit is the length of the page, at least 1.
	Limit int
	// Wanted chooses tokens; nil: all.
	Wanted func(*Token) bool
}

// Page is a part of the list of all tokens.
type Page struct {
	Tokens []Token
	// Next is where the list goes on, "" at the end. A page may have fewer tokens than were asked for and go on: it looks at
	// PageLooks tokens at most.
	Next string
}

// Page reads tokens by name, revoked ones too. What it costs depends on the page and not on how many tokens there are.
func (t *Store) Page(ctx context.Context, q PageQuery) (Page, error) {
	if err := t.index(ctx); err != nil {
		return Page{}, fmt.Errorf("list tokens: %w", err)
	}
	var page Page
	from := "-"
	if q.After != "" {
		from = "(" + q.After
	}
	for looked := 0; looked < PageLooks; {
		entries, err := t.indexed(ctx, from, "+", readTogether)
		if err != nil {
			return Page{}, storage.RedisError("list tokens", err)
		}
		found, err := t.entries(ctx, entries)
		if err != nil {
			return Page{}, err
		}
		for i, r := range found {
			page.Next = entries[i]
			if r.raw == "" || q.Wanted != nil && !q.Wanted(&r.token) {
				continue
			}
			if page.Tokens = append(page.Tokens, r.token); len(page.Tokens) == q.Limit {
				return t.last(ctx, page)
			}
		}
		if len(entries) < readTogether {
			page.Next = ""
			return page, nil
		}
		looked += len(entries)
		from = "(" + page.Next
	}
	return page, nil
}

// indexed are at most so many entries of the index between two, which are written as ZRANGE's BYLEX has them.
func (t *Store) indexed(ctx context.Context, from, to string, most int64) ([]string, error) {
	return t.client.ZRangeArgs(ctx, redis.ZRangeArgs{Key: tokenIndexKey, Start: from, Stop: to, ByLex: true, Count: most}).Result()
}

// last leaves out the cursor of a page behind which nothing comes.
func (t *Store) last(ctx context.Context, page Page) (Page, error) {
	more, err := t.indexed(ctx, "("+page.Next, "+", 1)
	if err != nil {
		return Page{}, storage.RedisError("list tokens", err)
	}
	if len(more) == 0 {
		page.Next = ""
	}
	return page, nil
}

// Count is how many tokens Redis holds, revoked ones too.
func (t *Store) Count(ctx context.Context) (int64, error) {
	n, err := t.client.HLen(ctx, tokensKey).Result()
	return n, storage.RedisError("count tokens", err)
}

// indexEntry is a token's in the index, which is ordered by name and then by id.
func indexEntry(name, id string) string { return name + "\x00" + id }

// entries reads the tokens of index entries, in their order. One that is no more has no raw.
func (t *Store) entries(ctx context.Context, entries []string) ([]record, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	ids := make([]string, len(entries))
	for i, entry := range entries {
		ids[i] = entry[strings.LastIndexByte(entry, 0)+1:]
	}
	hashes, err := t.client.HMGet(ctx, tokensKey, ids...).Result()
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
	records, err := t.records(ctx, sums)
	if err != nil {
		return nil, err
	}
	for i, r := range records {
		if indexEntry(r.token.Name, r.token.ID) == entries[at[i]] { // else it was replaced meanwhile
			found[at[i]] = r
		}
	}
	return found, nil
}

// index makes the index of names where it lacks a token: the tokens are older than it, or a process that does not know it has
// written some.
func (t *Store) index(ctx context.Context) error {
	lacks, err := t.indexLacks(ctx)
	if err != nil || lacks == t.indexing.broken.Load() {
		return err
	}
	t.indexing.Lock()
	defer t.indexing.Unlock()
	if lacks, err = t.indexLacks(ctx); err != nil || lacks == t.indexing.broken.Load() {
		return err // another one has made it meanwhile
	}
	if err := t.addToIndex(ctx); err != nil {
		return err
	}
	if err := t.clearIndex(ctx); err != nil {
		return err
	}
	if lacks, err = t.indexLacks(ctx); err == nil {
		t.indexing.broken.Store(lacks)
	}
	return err
}

// indexLacks is how many tokens more there are than the index has.
func (t *Store) indexLacks(ctx context.Context) (int64, error) {
	var all, indexed *redis.IntCmd
	_, err := t.client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		all, indexed = pipe.HLen(ctx, tokensKey), pipe.ZCard(ctx, tokenIndexKey)
		return nil
	})
	return all.Val() - indexed.Val(), storage.RedisError("list tokens", err)
}

// addToIndex puts all tokens into the index.
func (t *Store) addToIndex(ctx context.Context) error {
	for cursor := uint64(0); ; {
		fields, next, err := t.client.HScan(ctx, tokensKey, cursor, "", indexTogether).Result()
		if err != nil {
			return storage.RedisError("list tokens", err)
		}
		var sums []keySum
		for _, part := range slices.Collect(slices.Chunk(fields, 2)) {
			if sum, ok := parseKeySum(part[len(part)-1]); ok {
				sums = append(sums, sum)
			}
		}
		records, err := t.records(ctx, sums)
		if err != nil {
			return err
		}
		members := make([]redis.Z, 0, len(records))
		for _, r := range records {
			if r.raw != "" {
				members = append(members, redis.Z{Member: indexEntry(r.token.Name, r.token.ID)})
			}
		}
		if len(members) > 0 {
			if err := t.client.ZAdd(ctx, tokenIndexKey, members...).Err(); err != nil {
				return storage.RedisError("list tokens", err)
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// clearIndex takes out of the index what is no token any more.
func (t *Store) clearIndex(ctx context.Context) error {
	for from := "-"; ; {
		entries, err := t.indexed(ctx, from, "+", readTogether)
		if err != nil {
			return storage.RedisError("list tokens", err)
		}
		if len(entries) == 0 {
			return nil
		}
		found, err := t.entries(ctx, entries)
		if err != nil {
			return err
		}
		var stray []any
		for i, r := range found {
			if r.raw == "" {
				stray = append(stray, entries[i])
			}
		}
		if len(stray) > 0 {
			if err := t.client.ZRem(ctx, tokenIndexKey, stray...).Err(); err != nil {
				return storage.RedisError("list tokens", err)
			}
		}
		from = "(" + entries[len(entries)-1]
	}
}

// named reads the tokens that have, or had, the name, the newest last.
func (t *Store) named(ctx context.Context, name string) ([]record, error) {
	if err := t.index(ctx); err != nil {
		return nil, err
	}
	entries, err := t.indexed(ctx, "["+name+"\x00", "("+name+"\x01", readTogether)
	if err != nil {
		return nil, storage.RedisError("read token", err)
	}
	found, err := t.entries(ctx, entries)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(r record) bool { return r.raw == "" })
	slices.SortStableFunc(found, func(a, b record) int { return a.token.CreatedAt.Compare(b.token.CreatedAt) })
	return found, nil
}
