package veo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"modelrelay/providers"
)

const (
	// ApplicationDefault is the key for the machine's application-default credentials.
	ApplicationDefault = "application-default"
	// scope is the scope of the access tokens.
	scope = "https://www.googleapis.com/auth/cloud-platform"
	// tokenTimeout bounds the creation of a token.
	tokenTimeout = 20 * time.Second
)

// CheckKey refuses a JSON document that is not a service account's key. Any other text is ApplicationDefault or an API key.
func CheckKey(key providers.Secret) error {
	if !isAccount(key) || key.Reveal() == ApplicationDefault {
		return nil
	}
	if _, err := google.JWTConfigFromJSON([]byte(key.Reveal()), scope); err != nil {
		return errors.New("is not the JSON of a service account") // the error may repeat a part of it
	}
	return nil
}

// isAccount reports whether a key is a Google Cloud credential and not an API key.
func isAccount(key providers.Secret) bool {
	text := strings.TrimSpace(key.Reveal())
	return text == ApplicationDefault || strings.HasPrefix(text, "{")
}

// leadsElsewhere reports whether a typed key would use the credentials of the machine, or a foreign token address: one that is neither
// Google's nor in own, the configured keys of the channel. A service account's JSON has this address in token_uri, and
// golang.org/x/oauth2/google sends requests to any such address.
func leadsElsewhere(key providers.Secret, own []providers.Secret) bool {
	known := []string{"", "https://oauth2.googleapis.com/token", "https://accounts.google.com/o/oauth2/token"}
	for _, one := range own {
		known = append(known, accountOf(one).TokenURI)
	}
	return strings.TrimSpace(key.Reveal()) == ApplicationDefault || !slices.Contains(known, accountOf(key).TokenURI)
}

// account are members of a service account's JSON.
type account struct {
	TokenURI string `json:"token_uri"`
	Project  string `json:"project_id"`
	// ID and Private must not be shown.
	ID      providers.Secret `json:"private_key_id"`
	Private providers.Secret `json:"private_key"`
}

// accountOf reads a service account's key. It is empty for any other key.
func accountOf(key providers.Secret) (read account) {
	_ = json.Unmarshal([]byte(key.Reveal()), &read) // after an error it is empty
	return read
}

// tokens creates the access tokens of keys, and a new one when a token expires. It is safe for concurrent use.
type tokens struct {
	client *http.Client
	mu     sync.Mutex
	byKey  map[string]*grant // by the key's fingerprint
}

// grant is a key's token. The holder of slot may read and change it; others wait.
type grant struct {
	slot    chan struct{}
	token   *oauth2.Token
	project string
}

func newTokens(client *http.Client) *tokens {
	return &tokens{client: client, byKey: make(map[string]*grant)}
}

// of returns a key's access token and its project, "" for none.
func (t *tokens) of(ctx context.Context, key providers.Secret) (access, project string, err error) {
	t.mu.Lock()
	g := t.byKey[key.Fingerprint()]
	if g == nil {
		g = &grant{slot: make(chan struct{}, 1)}
		t.byKey[key.Fingerprint()] = g
	}
	t.mu.Unlock()
	select {
	case g.slot <- struct{}{}:
		defer func() { <-g.slot }()
	case <-ctx.Done():
		return "", "", unsent(ctx)
	}
	if !g.token.Valid() {
		token, project, err := t.fetch(ctx, key)
		if err != nil {
			return "", "", err
		}
		g.token, g.project = token, project
	}
	return g.token.AccessToken, g.project, nil
}

// forget removes a token that the vendor refused.
func (t *tokens) forget(key providers.Secret) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byKey, key.Fingerprint())
}

// fetch creates a token. It fails only before anything was sent to the vendor.
func (t *tokens) fetch(ctx context.Context, key providers.Secret) (token *oauth2.Token, project string, err error) {
	limited, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	client := *t.client
	client.Transport = bound(func(req *http.Request) (*http.Response, error) {
		return t.client.Transport.RoundTrip(req.WithContext(limited))
	})
	limited = context.WithValue(limited, oauth2.HTTPClient, &client)
	source, project, err := sourceOf(limited, key)
	if err != nil {
		return nil, "", err
	}
	token, err = source.Token()
	var refused *oauth2.RetrieveError
	switch {
	case err == nil:
		return token, project, nil
	case ctx.Err() != nil:
		return nil, "", unsent(ctx)
	case errors.As(err, &refused) && refused.Response.StatusCode/100 == 4 && refused.Response.StatusCode != http.StatusTooManyRequests:
		return nil, "", refusedKey(fmt.Errorf("no token: status %d, %s", refused.Response.StatusCode,
			providers.Cut(refused.ErrorCode, providers.WordLimit)))
	}
	return nil, "", &providers.Fault{
		Kind: providers.Upstream, Message: "The upstream's token service does not answer.", Accepted: providers.NotAccepted,
		Blame: providers.BlameKey, Err: err,
	}
}

// sourceOf returns the source of a key's tokens.
func sourceOf(ctx context.Context, key providers.Secret) (oauth2.TokenSource, string, error) {
	if strings.TrimSpace(key.Reveal()) == ApplicationDefault {
		found, err := google.FindDefaultCredentials(ctx, scope)
		if err != nil {
			return nil, "", refusedKey(err)
		}
		return found.TokenSource, found.ProjectID, nil
	}
	config, err := google.JWTConfigFromJSON([]byte(key.Reveal()), scope)
	if err != nil {
		return nil, "", refusedKey(errors.New("no service account's JSON"))
	}
	return config.TokenSource(ctx), accountOf(key).Project, nil
}

func refusedKey(err error) *providers.Fault {
	fault := &providers.Fault{Err: err}
	fault.RefuseKey(providers.KeyRefused)
	return fault
}

// unsent returns the fault of a context that ended before anything was sent.
func unsent(ctx context.Context) *providers.Fault {
	fault := *providers.AsFault(context.Cause(ctx))
	fault.Accepted = providers.NotAccepted
	return &fault
}

// bound is a function as an http.RoundTripper.
type bound func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (b bound) RoundTrip(req *http.Request) (*http.Response, error) { return b(req) }
