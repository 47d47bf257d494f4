package storage

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
)

// TokensOptions may be nil.
type TokensOptions struct {
	CacheFor time.Duration // a change is seen within this time, at most 1 s; default 1 s
	Grace    time.Duration // known tokens go on so long while Redis is away (redis_grace); default 10 min
	Log      *slog.Logger  // nil: silent
	Prefix   string        // of every key; empty: DefaultPrefix
}

// Tokens are the client credentials, kept in Redis by the hash of their keys. Safe for concurrent use.
type Tokens struct{}

// Seed is one token of the configuration file with its key.
type Seed struct {
	Token Token // ID, Seeded, Hint and CreatedAt are set by Seed
	Key   string
}

// NewTokens starts to follow changes in Redis until Close. The client stays the caller's.
func NewTokens(client *redis.Client, opts *TokensOptions) *Tokens { return &Tokens{} }

// Authenticate finds the token of a key. It does not judge it: the caller asks Usable. The token is shared and
// must not be changed. ErrNotFound: no such key. ErrUnavailable: Redis is away and the key is not known here.
func (t *Tokens) Authenticate(ctx context.Context, key string) (*Token, error) {
	return nil, errors.ErrUnsupported
}

// Create stores a new token under a random id and returns its key, which is shown nowhere else.
// ErrExists: the name is in use.
func (t *Tokens) Create(ctx context.Context, token Token) (created Token, key string, err error) {
	return Token{}, "", errors.ErrUnsupported
}

// List returns every token, by name.
func (t *Tokens) List(ctx context.Context) ([]Token, error) { return nil, errors.ErrUnsupported }

// Find returns one token by id or name, else ErrNotFound.
func (t *Tokens) Find(ctx context.Context, idOrName string) (Token, error) {
	return Token{}, errors.ErrUnsupported
}

// Revoke disables a token for good, everywhere within a second.
func (t *Tokens) Revoke(ctx context.Context, idOrName string) error { return errors.ErrUnsupported }

// Rotate gives a token a new key; the old one is unknown everywhere within a second.
func (t *Tokens) Rotate(ctx context.Context, idOrName string) (rotated Token, key string, err error) {
	return Token{}, "", errors.ErrUnsupported
}

// Seed sets the tokens of the configuration file.
func (t *Tokens) Seed(ctx context.Context, seeds []Seed) error { return errors.ErrUnsupported }

// Close stops following changes and waits for that.
func (t *Tokens) Close() {}
