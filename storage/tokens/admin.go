package tokens

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"modelrelay/storage"
)

// idPrefix begins the id of every token that is not from the configuration file.
const idPrefix = "tok_"

// Create stores a new token and returns its key, which is stored only as a hash. It sets ID, Hint, Seeded, Version and CreatedAt; an empty
// Name becomes the id. storage.ErrExists: the name is in use; a revoked token's is not.
func (t *Store) Create(ctx context.Context, token Token) (created Token, key string, err error) {
	token.ID = idPrefix + rand.Text()[:20]
	if token.Name == "" {
		token.Name = token.ID
	} else if err := validName(token.Name); err != nil {
		return Token{}, "", fmt.Errorf("create token: %w", err)
	}
	key = NewKey()
	token.Hint = hint(key)
	token.Seeded, token.Revoked, token.Version = false, false, 1
	token.CreatedAt = time.Now().UTC().Truncate(time.Second)
	err = t.records.replace(ctx, replacement{sum: sumOf(key), token: token, claim: claimNew})
	if err != nil {
		return Token{}, "", fmt.Errorf("create token %q: %w", token.Name, err)
	}
	_ = t.follower.catchUp(ctx) // otherwise the loop does it soon
	return token, key, nil
}

// Find returns one token by id or by name, else storage.ErrNotFound. Of several tokens of one name, it returns the one that is not
// revoked, else the newest. It finds a token of the configuration file even while Redis is unavailable.
func (t *Store) Find(ctx context.Context, idOrName string) (Token, error) {
	r, err := t.records.find(ctx, idOrName)
	if err == nil {
		return r.token, nil
	}
	if token, _, ok := t.seeds.byID(idOrName); ok {
		return token, nil
	}
	return Token{}, fmt.Errorf("find token %q: %w", idOrName, err)
}

// Revoke disables a token permanently and frees its name. This process refuses its key at once, all others within a second. Revoking it
// again returns nil.
func (t *Store) Revoke(ctx context.Context, idOrName string) error {
	_, err := t.edit(ctx, "revoke token", idOrName, func(next *replacement) error {
		next.token.Disabled, next.token.Revoked, next.claim = true, true, claimFree
		return nil
	})
	return err
}

// Rotate gives a token a new key, in one step: the old one is unknown to this process at once, to all others within a second. The id stays,
// and with it limits, usage and tasks. ErrSeeded: the key is in the configuration file. ErrDisabled, ErrRevoked: the state of the token.
func (t *Store) Rotate(ctx context.Context, idOrName string) (rotated Token, key string, err error) {
	key = NewKey()
	rotated, err = t.edit(ctx, "rotate token", idOrName, func(next *replacement) error {
		next.token.Hint, next.sum = hint(key), sumOf(key)
		return next.token.rotatable()
	})
	if err != nil {
		return Token{}, "", err
	}
	return rotated, key, nil
}

// changeable returns nil if Update may change the token, else ErrRevoked or ErrSeeded.
func (t *Token) changeable() error {
	switch {
	case t.Revoked:
		return ErrRevoked
	case t.Seeded:
		return ErrSeeded
	}
	return nil
}

// rotatable is changeable for a new key or secret; ErrDisabled: the token is disabled.
func (t *Token) rotatable() error {
	if t.Disabled && !t.Revoked {
		return ErrDisabled
	}
	return t.changeable()
}

// edit reads a token, changes it and writes it back, again if another process was faster. doing begins its error.
func (t *Store) edit(ctx context.Context, doing, idOrName string, change func(next *replacement) error) (Token, error) {
	next, err := replacement{}, errChanged
	for asked, tries := idOrName, 5; tries > 0 && errors.Is(err, errChanged); tries-- {
		var old record
		if old, err = t.records.find(ctx, asked); err != nil {
			break
		}
		next = replacement{old: old, index: old.sum.String(), sum: old.sum, token: old.token}
		if err = change(&next); err != nil {
			break
		}
		if !next.token.Seeded { // the file has no versions
			next.token.Version = old.token.Version + 1
		}
		asked, err = old.token.ID, t.records.replace(ctx, next)
	}
	if err != nil {
		return Token{}, fmt.Errorf("%s %q: %w", doing, idOrName, err)
	}
	_ = t.follower.catchUp(ctx) // otherwise the loop does it soon
	return next.token, nil
}

// PageReads bounds the tokens that one page reads, even if it returns few of them: some tens of milliseconds.
const PageReads = 5_000

// PageQuery asks for a page of tokens by name.
type PageQuery struct {
	// After is the Next of the previous page; "": the first page.
	After string
	// Limit is the length of the page, at least 1.
	Limit int
	// Wanted selects tokens; nil: all.
	Wanted func(*Token) bool
}

// Page is a part of the list of all tokens.
type Page struct {
	Tokens []Token
	// Next is the cursor of the next page; "": the end. Before the end, a page may have fewer tokens than Limit: it reads at most PageReads.
	Next string
}

// Count returns the number of tokens in Redis, including revoked ones.
func (t *Store) Count(ctx context.Context) (int64, error) {
	n, err := t.records.client.HLen(ctx, tokensKey).Result()
	return n, storage.RedisError("count tokens", err)
}

// fingerprintLetters is the length of a fingerprint, the beginning of the key's hash.
const fingerprintLetters = 16

// Credential returns a token by its id with its effective limits, as Authenticate does by its key, and the fingerprint of its key. A
// rotation changes the fingerprint, which does not reveal the key. The caller checks Usable. storage.ErrNotFound: there is no such token.
// A token of the configuration file needs no Redis.
func (t *Store) Credential(ctx context.Context, id string) (Token, string, error) {
	token, sum, ok := t.seeds.byID(id)
	if !ok {
		r, err := t.records.byID(ctx, id)
		if err != nil {
			return Token{}, "", fmt.Errorf("find token %q: %w", id, err)
		}
		token, sum = r.token, r.sum
	}
	return *hold(&token).inForce(t.groups.Load()), sum.String()[:fingerprintLetters], nil
}

// Fingerprint returns the fingerprint of a key, as Credential does.
func Fingerprint(key string) string { return sumOf(key).String()[:fingerprintLetters] }
