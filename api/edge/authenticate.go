package edge

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"modelrelay/providers"
	"modelrelay/storage"
	"modelrelay/storage/fair"
	"modelrelay/storage/tokens"
)

// Bearer returns the request's bearer credential, "" for none.
func Bearer(r *http.Request) string {
	scheme, key, found := strings.Cut(r.Header.Get("Authorization"), " ")
	if !found || !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(key)
}

// Tokens finds the token of a client's key.
type Tokens interface {
	// Authenticate returns storage.ErrNotFound for an unknown key and storage.ErrUnavailable if the store does not answer. It also
	// returns tokens that are disabled or expired: Usable checks that.
	Authenticate(ctx context.Context, key string) (*tokens.Token, error)
}

// credential returns the client's key from the first place that has one, "" for none.
func (f *Format) credential(r *http.Request) string {
	if key := Bearer(r); key != "" {
		return key
	}
	for _, name := range [...]string{"X-Api-Key", "X-Vendorb-Api-Key", "X-Goog-Api-Key"} {
		if key := r.Header.Get(name); key != "" {
			return key
		}
	}
	if strings.Contains(r.URL.RawQuery, "key") {
		query, _ := url.ParseQuery(r.URL.RawQuery) // a malformed pair is ignored
		if key := query.Get("key"); key != "" {
			return key
		}
	}
	if f.Credential != nil {
		return f.Credential(r)
	}
	return ""
}

// ActAs makes an internal caller's token the caller of a request that has none: the token's limits and networks apply.
func (x *Request) ActAs(ctx context.Context, internal *InternalCaller) error {
	if x.Caller != nil {
		return nil
	}
	return x.admit(ctx, x.edge.internalKey+internal.Token, internal, "")
}

// admit finds the token of a key, or of an internal caller, and checks whether it may be used for this request.
func (x *Request) admit(ctx context.Context, key string, internal *InternalCaller, permission string) error {
	caller, err := x.edge.callerOf(ctx, key, internal)
	if err != nil {
		return x.edge.limitWrongKeys(x.Source(), err)
	}
	x.Caller = caller
	x.presence.caller, x.presence.key, x.presence.permission, x.presence.internal = caller, key, permission, internal
	if err := x.presence.permit(caller, permission); err != nil {
		return err
	}
	x.edge.callers.join(&x.presence)
	return nil
}

// The permissions of Access and Permit.
const (
	RelayPermission    = tokens.OperationRelay
	VideoPermission    = tokens.OperationVideo
	RealtimePermission = tokens.OperationRealtime
)

// Permit returns a fault if the caller lacks the permission. Otherwise it becomes that of the request, which later checks require.
func (x *Request) Permit(permission string) error {
	if err := x.presence.permit(x.Caller, permission); err != nil {
		return err
	}
	x.edge.callers.setPermission(&x.presence, permission)
	return nil
}

// keyOf identifies the request's caller: by its key, or by a secret of this process for an internal caller, which has no key.
func (e *Edge) keyOf(f *Format, internal *InternalCaller, r *http.Request) string {
	if internal != nil {
		return e.internalKey + internal.Token
	}
	return f.credential(r)
}

// Key returns the key of the caller. For an internal caller it is a secret of this process, which differs for each token.
func (x *Request) Key() providers.Secret { return providers.Secret(x.presence.key) }

func (p *presence) background() bool { return p.internal != nil && p.internal.Background }

// permit returns a fault if the caller lacks the permission, or may not call from the network of the request.
func (p *presence) permit(caller *tokens.Token, permission string) error {
	switch {
	case p.background():
		return nil
	case !p.admits(caller):
		return providers.Faultf(providers.Forbidden, "The API key may not be used from this network.")
	case permission != "" && !caller.Permits(permission):
		return providers.Faultf(providers.Forbidden, "The API key may not be used for %s operations.", permission)
	}
	return nil
}

// admits reports whether the caller's networks contain the source address of the request.
func (p *presence) admits(caller *tokens.Token) bool {
	return p.internal.impersonates() || caller.Admits(p.source)
}

// CallerNow looks the token of a long request up again: nil if its key may no longer be used, an error if the store is unavailable.
func (x *Request) CallerNow(ctx context.Context) (*tokens.Token, error) {
	caller, err := x.edge.callerNow(ctx, x.presence.key, x.presence.internal)
	if caller != nil && x.presence.permit(caller, x.presence.permission) != nil {
		caller = nil
	}
	return caller, err
}

// callerNow is callerOf for a request that was admitted before: nil if the key is no longer valid, an error if the store is unavailable.
func (e *Edge) callerNow(ctx context.Context, key string, internal *InternalCaller) (*tokens.Token, error) {
	caller, err := e.callerOf(ctx, key, internal)
	if fault, refused := errors.AsType[*providers.Fault](err); refused && fault.Kind == providers.Unauthenticated {
		return nil, nil //nolint:nilnil // no token is the answer
	}
	return caller, err
}

// ErrWrongKey is the cause in the fault of an unknown key, for the log.
var ErrWrongKey = errors.New("wrong key")

// wrongKeys limits the wrong keys of a network: it allows enough for programs that still use a revoked key. A valid key always passes, so
// an attacker does not lock out its network. Keys are too long to be guessed.
func wrongKeys() fair.Quota { return fair.Quota{Units: 60, Per: time.Minute} }

// limitWrongKeys counts a wrong key. It returns RateLimited if the network has sent too many, else err.
func (e *Edge) limitWrongKeys(source netip.Addr, err error) error {
	if !errors.Is(err, ErrWrongKey) {
		return err
	}
	wait := e.wrongKeys.Take(fair.NetworkOf(source), 1, wrongKeys(), time.Now())
	if wait == 0 {
		return err
	}
	return &providers.Fault{
		Kind: providers.RateLimited, Message: "Too many wrong API keys came from this network.", RetryAfter: wait, Err: ErrWrongKey,
	}
}

// callerOf returns the token of the key, or that of an internal caller; internal is nil for a client.
func (e *Edge) callerOf(ctx context.Context, key string, internal *InternalCaller) (*tokens.Token, error) {
	if internal != nil {
		return e.internalToken(ctx, internal)
	}
	if key == "" {
		return nil, providers.Faultf(providers.Unauthenticated,
			"No API key was given. Send it as \"Authorization: Bearer <API_TOKEN>\".")
	}
	token, err := e.options.Tokens.Authenticate(ctx, key)
	return usableToken(token, err)
}

// usableToken returns the token if it was found and may be used, else the fault for the client.
func usableToken(token *tokens.Token, err error) (*tokens.Token, error) {
	if err == nil {
		err = token.Usable(time.Now())
	}
	switch {
	case err == nil:
		return token, nil
	case errors.Is(err, storage.ErrNotFound):
		return nil, &providers.Fault{Kind: providers.Unauthenticated, Message: "The API key is not known here.", Err: ErrWrongKey}
	case errors.Is(err, tokens.ErrDisabled):
		return nil, providers.Faultf(providers.Unauthenticated, "The API key is disabled.")
	case errors.Is(err, tokens.ErrExpired):
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
