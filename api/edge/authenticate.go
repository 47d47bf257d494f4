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

// Bearer is the request's bearer credential, "" where it has none.
func Bearer(r *http.Request) string {
	scheme, key, found := strings.Cut(r.Header.Get("Authorization"), " ")
	if !found || !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(key)
}

// Tokens finds the token of a client's key.
type Tokens interface {
	// Authenticate returns storage.ErrNotFound for an unknown key and storage.ErrUnavailable if the store cannot be asked.
	// It does not judge the token: Usable does.
	Authenticate(ctx context.Context, key string) (*tokens.Token, error)
}

// credential returns the client's key from the first place that has one, "" where none does.
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
		query, _ := url.ParseQuery(r.URL.RawQuery) // what parses counts, a bad pair is no credential
		if key := query.Get("key"); key != "" {
			return key
		}
	}
	if f.Credential != nil {
		return f.Credential(r)
	}
	return ""
}

// authenticate names the caller and asks whether it may do this.
func (x *Request) authenticate(r *http.Request, permission string) error {
	inside := InternalCallerOf(r.Context())
	return x.admit(r.Context(), x.edge.keyOf(x.Format, inside, r), inside, permission)
}

// ActAs makes the request one of the token that an internal caller names, whose limits and networks then hold for it. It does nothing
// if the request has a caller already.
func (x *Request) ActAs(ctx context.Context, inside *InternalCaller) error {
	if x.Caller != nil {
		return nil
	}
	return x.admit(ctx, x.edge.internalKey+inside.Token, inside, "")
}

// admit finds the token of a key, or of an internal caller, and checks whether it may be used for this request.
func (x *Request) admit(ctx context.Context, key string, inside *InternalCaller, permission string) error {
	caller, err := x.edge.callerOf(ctx, key, inside)
	if err != nil {
		return x.edge.slowed(x.Source(), err)
	}
	x.Caller = caller
	x.presence.caller, x.presence.key, x.presence.permission, x.presence.inside = caller, key, permission, inside
	if err := x.presence.permit(caller, permission); err != nil {
		return err
	}
	x.edge.callers.join(&x.presence)
	return nil
}

// The words of Access and Permit.
const (
	RelayPermission    = tokens.OperationRelay
	VideoPermission    = tokens.OperationVideo
	RealtimePermission = tokens.OperationRealtime
)

// Permit reports whether the caller may go on with what is an operation of this word: nil, or why not. It holds from then on.
func (x *Request) Permit(permission string) error {
	if err := x.presence.permit(x.Caller, permission); err != nil {
		return err
	}
	x.edge.callers.setPermission(&x.presence, permission)
	return nil
}

// keyOf identifies the request's caller: by its key, or by a secret of this process for an internal caller, which has no key.
func (e *Edge) keyOf(f *Format, inside *InternalCaller, r *http.Request) string {
	if inside != nil {
		return e.internalKey + inside.Token
	}
	return f.credential(r)
}

// Key is what the caller authenticated itself with; of an internal caller, a secret of this process for its token.
func (x *Request) Key() providers.Secret { return providers.Secret(x.presence.key) }

// background reports whether the request serves a background call.
func (p *presence) background() bool { return p.inside != nil && p.inside.Background }

// permit reports whether a caller may do this from where it is.
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

// admits reports whether the caller's networks have the request's source in them.
func (p *presence) admits(caller *tokens.Token) bool {
	return p.inside.impersonates() || caller.Admits(p.source)
}

// CallerNow finds the caller's token once more, for a request that continues for long. The token is nil when the key may no
// longer be used for it; the error says that the store is unavailable.
func (x *Request) CallerNow(ctx context.Context) (*tokens.Token, error) {
	caller, err := x.edge.callerOf(ctx, x.presence.key, x.presence.inside)
	fault, refused := errors.AsType[*providers.Fault](err)
	switch {
	case err == nil && x.presence.permit(caller, x.presence.permission) == nil:
		return caller, nil
	case err == nil, refused && fault.Kind == providers.Unauthenticated:
		return nil, nil //nolint:nilnil // no token is the answer
	default:
		return nil, err
	}
}

// ErrWrongKey marks the fault of a key that is none, for the log.
var ErrWrongKey = errors.New("wrong key")

// wrongKeys is how many wrong keys a network may send before it has to wait: enough for its programs when a key has been revoked. The
// right key passes always: a network that an attacker shares is not locked out, and a key too long to be guessed needs no other lock.
func wrongKeys() fair.Quota { return fair.Quota{Units: 60, Per: time.Minute} }

// slowed is the fault of a wrong key: a network that sent too many of them has to wait.
func (e *Edge) slowed(source netip.Addr, err error) error {
	if !errors.Is(err, ErrWrongKey) {
		return err
	}
	wait := e.wrongKeys.Take(NetworkOf(source), 1, wrongKeys(), time.Now())
	if wait == 0 {
		return err
	}
	return &providers.Fault{
		Kind: providers.RateLimited, Message: "Too many wrong API keys came from this network.", RetryAfter: wait, Err: ErrWrongKey,
	}
}

// callerOf finds the token of a key, or the one that an internal caller acts as; inside is nil for a client.
func (e *Edge) callerOf(ctx context.Context, key string, inside *InternalCaller) (*tokens.Token, error) {
	if inside != nil {
		return e.internalToken(ctx, inside)
	}
	if key == "" {
		return nil, providers.Faultf(providers.Unauthenticated,
			"No API key was given. Send it as \"Authorization: Bearer <API_TOKEN>\".")
	}
	token, err := e.options.Tokens.Authenticate(ctx, key)
	return judged(token, err)
}

// judged is a token that was looked for, if it may be used, else the fault that its client learns of.
func judged(token *tokens.Token, err error) (*tokens.Token, error) {
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
