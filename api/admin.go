package api

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/providers"
	"modelrelay/storage"
)

const (
	// adminRoot is the folder of the operator's paths.
	adminRoot = "/admin"
	// adminScheme is the security scheme of the operator's operations.
	adminScheme = "admin"
	// adminTag is their category in the document.
	adminTag = "admin"
)

// Admin is what the operator's operations under /admin work with. All of it stays the caller's.
type Admin struct {
	// Key opens them; while there is none, there is nothing at their paths.
	Key *AdminKey
	// Tokens are the client tokens; CheckToken returns one that is made or changed as it is stored, or a *providers.Fault
	// that names the field that is wrong.
	Tokens     TokenKeeper
	CheckToken func(storage.Token) (storage.Token, error)
	// Tasks are those of all tokens, Webhooks their deliveries.
	Tasks    Operator
	Webhooks Redeliverer
	// Usage is the ledger, Money what tokens with a budget have spent and reserved.
	Usage UsageReader
	Money Settler
	// Channels lists how the channels are doing.
	Channels func(ctx context.Context) ([]providers.ChannelState, error)
}

// addAdmin adds the operator's operations.
func (s *Server) addAdmin(g *group) {
	s.addAdminTokens(g)
	s.addAdminChannels(g)
	s.addAdminUsage(g)
	s.addAdminUnsettled(g)
	s.addAdminTasks(g)
}

// newAdminGroup makes the group of the operator's operations. Their errors have the OpenAI shape.
func (s *Server) newAdminGroup(errorSchema *huma.Schema) *group {
	g := &group{Group: huma.NewGroup(s.api), server: s, format: providers.OpenAI, faults: "Admin"}
	g.UseMiddleware(g.enter, s.authenticateAdmin)
	g.UseSimpleModifier(func(op *huma.Operation) {
		op.Security = []map[string][]string{{adminScheme: {}}}
		op.Tags = []string{adminTag}
		if op.Responses == nil {
			op.Responses = make(map[string]*huma.Response)
		}
		g.declareFaults(op, errorSchema)
	})
	return g
}

// authenticateAdmin is the middleware that lets in who has the admin key.
func (s *Server) authenticateAdmin(ctx huma.Context, next func(huma.Context)) {
	r, x := unwrap(ctx)
	if err := s.letIn(r); err != nil {
		s.fail(x, err)
		return
	}
	r.Header.Set("Content-Type", "application/json") // a body is JSON, whatever it is called
	next(ctx)
}

// letIn tells whether the request carries the admin key.
func (s *Server) letIn(r *http.Request) error {
	adminKey := s.admin.Key.current()
	if adminKey == "" {
		return nothingHere()
	}
	key := bearer(r)
	if key == "" {
		return providers.Faultf(providers.Unauthenticated, "No admin key was given. Send it as \"Authorization: Bearer <ADMIN_KEY>\".")
	}
	// Digests have one length, so that the time of the comparison does not tell the key's.
	given, right := sha256.Sum256([]byte(key)), sha256.Sum256([]byte(adminKey.Reveal()))
	if subtle.ConstantTimeCompare(given[:], right[:]) == 1 {
		return nil
	}
	if wait := s.wrongAdminKeys.note(sourceOf(r), wrongAdminKeys, time.Now()); wait > 0 {
		return &providers.Fault{
			Kind: providers.RateLimited, Message: "Too many wrong admin keys came from this network.", RetryAfter: wait, Err: errWrongKey,
		}
	}
	return &providers.Fault{Kind: providers.Unauthenticated, Message: "The admin key is wrong.", Err: errWrongKey}
}

// bearer is the request's bearer credential, "" where it has none.
func bearer(r *http.Request) string {
	scheme, key, found := strings.Cut(r.Header.Get("Authorization"), " ")
	if !found || !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(key)
}

// storeFault is what an operator learns of a store's error about what it named.
func storeFault(what, name string, err error) error {
	refused := func(kind providers.Kind, format string) error {
		return &providers.Fault{Kind: kind, Message: fmt.Sprintf(format, what, name), Err: err}
	}
	fault := (*providers.Fault)(nil)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &fault):
		return fault
	case errors.Is(err, storage.ErrNotFound):
		return refused(providers.NotFound, "There is no %s %q.")
	case errors.Is(err, storage.ErrExists):
		return refused(providers.Conflict, "There is a %s %q already.")
	case errors.Is(err, storage.ErrSeeded):
		return refused(providers.Conflict, "The %s %q stands in the configuration file and changes there.")
	case errors.Is(err, storage.ErrRevoked):
		return refused(providers.Conflict, "The %s %q is revoked.")
	case errors.Is(err, storage.ErrDisabled):
		return refused(providers.Conflict, "The %s %q is disabled.")
	case errors.Is(err, storage.ErrUnavailable):
		return &providers.Fault{Kind: providers.Overloaded, Message: "The store does not answer at the moment.", RetryAfter: time.Second, Err: err}
	default:
		return err
	}
}
