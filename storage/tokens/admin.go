package tokens

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

// idPrefix begins the id of every token that is not from the configuration file.
const idPrefix = "tok_"

// errChanged says that a token changed between reading and writing it.
var errChanged = errors.New("token changed meanwhile")

// Create stores a new token and returns its key, which is shown nowhere else and kept nowhere. ID, Hint, Seeded, Version and
// CreatedAt are set here; an empty Name becomes the id. storage.ErrExists: the name is in use; a revoked token's is not.
func (t *Store) Create(ctx context.Context, token Token) (created Token, key string, err error) {
	token.ID = idPrefix + randomLetters(20)
	if token.Name == "" {
		token.Name = token.ID
	} else if err := validName(token.Name); err != nil {
		return Token{}, "", fmt.Errorf("create token: %w", err)
	}
	key = NewKey()
	token.Hint = hint(key)
	token.Seeded, token.Revoked, token.Version = false, false, 1
	token.CreatedAt = time.Now().UTC().Truncate(time.Second)
	err = t.replace(ctx, replacement{sum: sumOf(key), token: token, claim: claimNew})
	if err != nil {
		return Token{}, "", fmt.Errorf("create token %q: %w", token.Name, err)
	}
	_ = t.catchUp(ctx) // the goroutine that follows does it anyway, a moment later
	return token, key, nil
}

// List returns every token that Redis holds, by name and then by age; revoked ones too.
func (t *Store) List(ctx context.Context) ([]Token, error) {
	records, err := t.all(ctx)
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	tokens := make([]Token, len(records))
	for i, r := range records {
		tokens[i] = r.token
	}
	return tokens, nil
}

// Find returns one token by id or by name, else storage.ErrNotFound. Of several tokens of one name it is the one not
// revoked, else the newest. A token of the configuration file is found even while Redis is away.
func (t *Store) Find(ctx context.Context, idOrName string) (Token, error) {
	r, err := t.find(ctx, idOrName)
	if err == nil {
		return r.token, nil
	}
	for _, s := range *t.seeds.Load() {
		if token := s.token.Load(); token.ID == idOrName {
			return *token, nil
		}
	}
	return Token{}, fmt.Errorf("find token %q: %w", idOrName, err)
}

// Revoke disables a token for good: its key is refused here at once and everywhere within a second, and its name
// is free. Revoking it again is no error.
func (t *Store) Revoke(ctx context.Context, idOrName string) error {
	_, err := t.edit(ctx, idOrName, func(r record) (replacement, error) {
		token := r.token
		token.Disabled, token.Revoked = true, true
		return replacement{old: r, index: r.sum.String(), sum: r.sum, token: token, claim: claimFree}, nil
	})
	if err != nil {
		return fmt.Errorf("revoke token %q: %w", idOrName, err)
	}
	return nil
}

// Rotate gives a token a new key, in one step: the old one is unknown here at once and everywhere within a second.
// The id stays, and with it limits, usage and tasks. ErrSeeded: the key stands in the configuration file.
// ErrDisabled, ErrRevoked: the token is that.
func (t *Store) Rotate(ctx context.Context, idOrName string) (rotated Token, key string, err error) {
	key = NewKey()
	rotated, err = t.edit(ctx, idOrName, func(r record) (replacement, error) {
		switch {
		case r.token.Revoked:
			return replacement{}, ErrRevoked
		case r.token.Disabled:
			return replacement{}, ErrDisabled
		case r.token.Seeded:
			return replacement{}, ErrSeeded
		}
		token := r.token
		token.Hint = hint(key)
		return replacement{old: r, index: r.sum.String(), sum: sumOf(key), token: token}, nil
	})
	if err != nil {
		return Token{}, "", fmt.Errorf("rotate token %q: %w", idOrName, err)
	}
	return rotated, key, nil
}

// edit reads a token, changes it and writes it back, again when somebody else was faster.
func (t *Store) edit(ctx context.Context, idOrName string, change func(record) (replacement, error)) (Token, error) {
	for range 5 {
		found, err := t.find(ctx, idOrName)
		if err != nil {
			return Token{}, err
		}
		next, err := change(found)
		if err != nil {
			return Token{}, err
		}
		if !next.token.Seeded { // of those the file is the only version
			next.token.Version = found.token.Version + 1
		}
		err = t.replace(ctx, next)
		if errors.Is(err, errChanged) {
			idOrName = found.token.ID
			continue
		}
		if err == nil {
			_ = t.catchUp(ctx) // the goroutine that follows does it anyway, a moment later
		}
		return next.token, err
	}
	return Token{}, errChanged
}

func (t *Store) find(ctx context.Context, idOrName string) (record, error) {
	hash, err := t.client.HGet(ctx, tokensKey, idOrName).Result()
	if errors.Is(err, redis.Nil) {
		var id string
		if id, err = t.client.HGet(ctx, tokenNamesKey, idOrName).Result(); err == nil {
			hash, err = t.client.HGet(ctx, tokensKey, id).Result()
		}
	}
	if err != nil && !errors.Is(err, redis.Nil) {
		return record{}, storage.RedisError("read token", err)
	}
	if sum, ok := parseKeySum(hash); ok {
		records, err := t.records(ctx, []keySum{sum})
		if err != nil {
			return record{}, err
		}
		if records[0].raw != "" {
			return records[0], nil
		}
	}
	// A revoked token has lost its name, but people still ask for it.
	all, err := t.named(ctx, idOrName)
	if err != nil {
		return record{}, err
	}
	if len(all) == 0 {
		return record{}, storage.ErrNotFound
	}
	return all[len(all)-1], nil
}

func (t *Store) all(ctx context.Context) ([]record, error) {
	index, err := t.client.HGetAll(ctx, tokensKey).Result()
	if err != nil {
		return nil, storage.RedisError("read tokens", err)
	}
	sums := make([]keySum, 0, len(index))
	for _, hash := range index {
		if sum, ok := parseKeySum(hash); ok {
			sums = append(sums, sum)
		}
	}
	records, err := t.records(ctx, sums)
	if err != nil {
		return nil, err
	}
	records = slices.DeleteFunc(records, func(r record) bool { return r.raw == "" })
	slices.SortFunc(records, func(a, b record) int {
		return cmp.Or(cmp.Compare(a.token.Name, b.token.Name), a.token.CreatedAt.Compare(b.token.CreatedAt), cmp.Compare(a.token.ID, b.token.ID))
	})
	return records, nil
}

// replacement is one change of a token's record.
type replacement struct {
	token Token  // what shall stand there
	sum   keySum // of its key
	index string // the key hash its id stands for now, empty: the id is new
	old   record // the record to replace; without raw: there is none
	claim claim
	// displaced is the token whose key this one takes over: it is then no more. Without an id there is none.
	displaced Token
}

// claim says what happens to the token's name.
type claim string

const (
	claimNew  claim = "new"  // it must be free and is then this token's
	claimTake claim = "take" // it becomes this token's
	claimFree claim = "free" // it becomes free if it was this token's
)

// replaceScript writes a token's record, its two indexes and the change that every process follows in one step, if
// all is still as it was read.
//
//	KEYS tokens, names, old record, new record, changes, index
//	ARGV id, name, hash of the id now or "", new hash, old record or "", new record, claim, nonce, displaced id or "", its name
const replaceScript = `
if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[3] then return 'changed' end
if (redis.call('GET', KEYS[3]) or '') ~= ARGV[5] then return 'changed' end
if ARGV[7] == 'new' and redis.call('HEXISTS', KEYS[2], ARGV[2]) == 1 then return 'exists' end
if KEYS[3] ~= KEYS[4] then
	redis.call('DEL', KEYS[3])
	redis.call('LPUSH', KEYS[5], ARGV[8] .. ' ' .. ARGV[3])
end
if ARGV[9] ~= '' and redis.call('HGET', KEYS[1], ARGV[9]) == ARGV[4] then
	redis.call('HDEL', KEYS[1], ARGV[9])
	if redis.call('HGET', KEYS[2], ARGV[10]) == ARGV[9] then redis.call('HDEL', KEYS[2], ARGV[10]) end
	redis.call('ZREM', KEYS[6], ARGV[10] .. '\0' .. ARGV[9])
end
redis.call('SET', KEYS[4], ARGV[6])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[4])
redis.call('ZADD', KEYS[6], 0, ARGV[2] .. '\0' .. ARGV[1])
if ARGV[7] == 'new' or ARGV[7] == 'take' then
	redis.call('HSET', KEYS[2], ARGV[2], ARGV[1])
elseif ARGV[7] == 'free' and redis.call('HGET', KEYS[2], ARGV[2]) == ARGV[1] then
	redis.call('HDEL', KEYS[2], ARGV[2])
end
redis.call('LPUSH', KEYS[5], ARGV[8] .. ' ' .. ARGV[4])
redis.call('LTRIM', KEYS[5], 0, 255)
return 'done'
`

// replace writes a token. errChanged: it is no longer as it was read. storage.ErrExists: the claimed name is in use.
func (t *Store) replace(ctx context.Context, r replacement) error {
	raw, err := encodeToken(r.token)
	if err != nil {
		return err
	}
	newKey := tokenKey(r.sum.String())
	oldKey := newKey
	if r.old.raw != "" {
		oldKey = tokenKey(r.old.sum.String())
	}
	answer, err := redis.NewScript(replaceScript).Run(ctx, t.client,
		[]string{tokensKey, tokenNamesKey, oldKey, newKey, tokenChangesKey, tokenIndexKey},
		r.token.ID, r.token.Name, r.index, r.sum.String(), r.old.raw, raw, string(r.claim), randomLetters(12),
		r.displaced.ID, r.displaced.Name).Text()
	switch {
	case err != nil:
		return storage.RedisError("write token", err)
	case answer == "exists":
		return storage.ErrExists
	case answer == "changed":
		return errChanged
	}
	return nil
}
