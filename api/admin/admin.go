package api

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/providers/router"
	"modelrelay/storage"
	"modelrelay/storage/tokens"
)

const (
	// adminRoot is the folder of the operator's paths.
	adminRoot = "/admin"
	// adminScheme is the security scheme of the operator's operations.
	adminScheme = "admin"
	// adminTag is their category in the document.
	adminTag = "admin"
	// wrongAdminKeys is how many wrong keys a network may send within a minute: enough for a person who mistypes.
	wrongAdminKeys = 10
)

// Admin is what the operator's operations under /admin work with. All of it stays the caller's.
type Admin struct {
	// Key opens them; while there is none, there is nothing at their paths.
	Key *AdminKey
	// Tokens are the client tokens; CheckToken returns one that is made or changed as it is stored, or a *providers.Fault
	// that names the field that is wrong.
	Tokens     TokenKeeper
	CheckToken func(tokens.Token) (tokens.Token, error)
	// Tasks are those of all tokens, Webhooks their deliveries.
	Tasks    Operator
	Webhooks Redeliverer
	// Usage is the ledger, Money what tokens with a budget have spent and reserved.
	Usage UsageReader
	Money Settler
	// Channels lists how the channels are doing.
	Channels func(ctx context.Context) ([]router.ChannelState, error)
}

// addAdmin adds the operator's operations.
func (s *Server) addAdmin(g *edge.Group) {
	s.addAdminTokens(g)
	s.addAdminChannels(g)
	s.addAdminUsage(g)
	s.addAdminUnsettled(g)
	s.addAdminTasks(g)
}

// newAdminGroup makes the group of the operator's operations, whose faults have a format.
func (s *Server) newAdminGroup(format *edge.Format) *edge.Group {
	g := edge.NewGroup(s.api, edge.GroupOptions{
		Formats: []*edge.Format{format}, Title: "Admin", Enter: s.letIn, Security: []map[string][]string{{adminScheme: {}}},
		Kinds: adminFaultKinds, Words: adminFaultWords,
	})
	g.UseSimpleModifier(func(op *huma.Operation) { op.Tags = []string{adminTag} })
	return g
}

// letIn lets in who has the admin key.
func (s *Server) letIn(x *edge.Request, r *http.Request) error {
	adminKey := s.admin.Key.current()
	if adminKey == "" {
		return edge.NothingHere()
	}
	key := edge.Bearer(r)
	if key == "" {
		return providers.Faultf(providers.Unauthenticated, "No admin key was given. Send it as \"Authorization: Bearer <ADMIN_KEY>\".")
	}
	// Digests have one length, so that the time of the comparison does not tell the key's.
	given, right := sha256.Sum256([]byte(key)), sha256.Sum256([]byte(adminKey.Reveal()))
	if subtle.ConstantTimeCompare(given[:], right[:]) == 1 {
		r.Header.Set("Content-Type", "application/json") // a body is JSON, whatever it is called
		return nil
	}
	if wait := s.wrongAdminKeys.Note(x.Source(), wrongAdminKeys, time.Now()); wait > 0 {
		return &providers.Fault{
			Kind: providers.RateLimited, Message: "Too many wrong admin keys came from this network.", RetryAfter: wait, Err: edge.ErrWrongKey,
		}
	}
	return &providers.Fault{Kind: providers.Unauthenticated, Message: "The admin key is wrong.", Err: edge.ErrWrongKey}
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
	case errors.Is(err, tokens.ErrSeeded):
		return refused(providers.Conflict, "The %s %q stands in the configuration file and changes there.")
	case errors.Is(err, tokens.ErrRevoked):
		return refused(providers.Conflict, "The %s %q is revoked.")
	case errors.Is(err, tokens.ErrDisabled):
		return refused(providers.Conflict, "The %s %q is disabled.")
	case errors.Is(err, storage.ErrUnavailable):
		return &providers.Fault{Kind: providers.Overloaded, Message: "The store does not answer at the moment.", RetryAfter: time.Second, Err: err}
	default:
		return err
	}
}

// adminFaultKinds are the kinds of faults an operator's operation may answer with.
func adminFaultKinds(op *huma.Operation) []providers.Kind {
	kinds := []providers.Kind{
		providers.Unauthenticated, providers.NotFound, providers.RateLimited, providers.Internal, providers.Overloaded,
	}
	if op.RequestBody != nil {
		kinds = append(kinds, providers.TooLarge)
	}
	if op.RequestBody != nil || len(op.Parameters) > 0 {
		kinds = append(kinds, providers.Invalid)
	}
	if op.Method != http.MethodGet {
		kinds = append(kinds, providers.Conflict)
	}
	return kinds
}

// adminFaultWords are faultWords for operators.
func adminFaultWords(kind providers.Kind) string {
	switch kind {
	case providers.Unauthenticated:
		return "The admin key is missing or wrong"
	case providers.NotFound:
		return "There is no such token or task, or the deployment has no admin key"
	case providers.RateLimited:
		return "Too many wrong admin keys from this network"
	case providers.Conflict:
		return "The state of the token or task does not allow this"
	case providers.Overloaded:
		return "Redis or Temporal does not answer"
	default:
		return edge.FaultWords(kind)
	}
}
