package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/providers"
	"modelrelay/storage"
)

// Tokens finds the token of a client's key.
type Tokens interface {
	// Authenticate returns storage.ErrNotFound for an unknown key and storage.ErrUnavailable when nobody can tell.
	// It does not judge the token: Usable does.
	Authenticate(ctx context.Context, key string) (*storage.Token, error)
}

// credential returns the client's key from the first place of the contract that has one, "" where none does.
func credential(r *http.Request) string {
	if scheme, key, found := strings.Cut(r.Header.Get("Authorization"), " "); found && strings.EqualFold(scheme, "bearer") {
		if key = strings.TrimSpace(key); key != "" {
			return key
		}
	}
	for _, name := range [...]string{"X-Api-Key", "X-Vendorb-Api-Key", "X-Goog-Api-Key"} {
		if key := r.Header.Get(name); key != "" {
			return key
		}
	}
	if strings.Contains(r.URL.RawQuery, "key") {
		query, _ := url.ParseQuery(r.URL.RawQuery) // what parses counts, a bad pair is no credential
		if key := query.Get("key"); key != "" {
			return key
		}
	}
	if r.URL.Path == realtimePath {
		return socketCredential(r)
	}
	return ""
}

// authenticate is the middleware that names the caller and asks whether it may do this.
func (s *Server) authenticate(ctx huma.Context, next func(huma.Context)) {
	r, x := unwrap(ctx)
	key := credential(r)
	caller, err := s.callerOf(r.Context(), key)
	if err != nil {
		s.fail(x, s.slowed(x, err))
		return
	}
	x.caller = caller
	permission := permissionOf(ctx.Operation())
	if err := permit(caller, r, permission); err != nil {
		s.fail(x, err)
		return
	}
	x.presence = presence{request: r, caller: caller, key: key, permission: permission, source: x.source}
	s.callers.join(&x.presence)
	next(ctx)
}

// errWrongKey marks the fault of a key that is none, for the log.
var errWrongKey = errors.New("wrong key")

// slowed is what a source learns of a key that nobody knows: too many of them, and it is told to wait.
func (s *Server) slowed(x *exchange, err error) error {
	if !errors.Is(err, errWrongKey) {
		return err
	}
	wait := s.wrongClientKeys.note(x.source, wrongClientKeys, time.Now())
	if wait == 0 {
		return err
	}
	return &providers.Fault{
		Kind: providers.RateLimited, Message: "Too many wrong API keys came from this network.", RetryAfter: wait, Err: errWrongKey,
	}
}

func (s *Server) callerOf(ctx context.Context, key string) (*storage.Token, error) {
	if key == "" {
		return nil, providers.Faultf(providers.Unauthenticated,
			"No API key was given. Send it as \"Authorization: Bearer <API_TOKEN>\".")
	}
	token, err := s.tokens.Authenticate(ctx, key)
	if err == nil {
		err = token.Usable(time.Now())
	}
	switch {
	case err == nil:
		return token, nil
	case errors.Is(err, storage.ErrNotFound):
		return nil, &providers.Fault{Kind: providers.Unauthenticated, Message: "The API key is not known here.", Err: errWrongKey}
	case errors.Is(err, storage.ErrDisabled):
		return nil, providers.Faultf(providers.Unauthenticated, "The API key is disabled.")
	case errors.Is(err, storage.ErrExpired):
		return nil, providers.Faultf(providers.Unauthenticated, "The API key has expired.")
	case errors.Is(err, storage.ErrUnavailable):
		return nil, &providers.Fault{
			Kind: providers.Overloaded, Message: "The API key cannot be checked at the moment.",
			RetryAfter: time.Second, Err: err,
		}
	default:
		return nil, err
	}
}
