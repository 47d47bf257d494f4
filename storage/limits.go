package storage

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
)

// LimitsOptions may be nil.
type LimitsOptions struct {
	Log    *slog.Logger // nil: silent
	Prefix string       // of every key; empty: DefaultPrefix
}

// Limits holds each token to its requests per minute, tokens per minute and calls in flight, over all processes
// that share one Redis. Safe for concurrent use.
type Limits struct{}

// Cost is what one call asks for.
type Cost struct {
	Requests int // usually 1
	Tokens   int // estimated model tokens; 0: unknown, counted when the call is released
}

// Window is the state of one limit after a call, as answers show it.
type Window struct {
	Limit     int           // 0: the token has no such limit, and the rest is 0 too
	Remaining int           // never negative
	Reset     time.Duration // until the window is empty again if nothing more comes
}

// Grant is the answer to Admit.
type Grant struct {
	Allowed    bool
	RetryAfter time.Duration // when not allowed: try not before; never 0
	Requests   Window
	Tokens     Window
}

// Release ends the call.
func (g Grant) Release(tokens int) {}

// NewLimits starts the upkeep of leases until Close. The client stays the caller's.
func NewLimits(client *redis.Client, opts *LimitsOptions) *Limits { return &Limits{} }

// Admit asks whether a call of this token may go on.
func (l *Limits) Admit(ctx context.Context, t *Token, cost Cost) (Grant, error) {
	return Grant{}, errors.ErrUnsupported
}

// Close sends what is still to be released and stops.
func (l *Limits) Close(ctx context.Context) error { return nil }
