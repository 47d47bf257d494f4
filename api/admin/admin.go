// Package admin is the operator's HTTP interface: tokens, channels, usage, money that nobody settles, and the tasks of all
// tokens, behind a key of its own.
//
// It knows no client's format but the one that its faults have, and no configuration file.
package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/providers/pricing"
	"modelrelay/providers/router"
	"modelrelay/storage/tokens"
)

const (
	// Root is the folder of the operator's paths.
	Root = "/admin"
	// Scheme is the security scheme of the operator's operations.
	Scheme = "admin"
	// Tag is their category in the document.
	Tag = "admin"
	// mostWrongKeys is how many wrong keys a network may send within a minute: enough for a person who mistypes.
	mostWrongKeys = 10
)

// Options are what the operator's operations work with. All of it stays the caller's.
type Options struct {
	// Key opens them; while there is none, there is nothing at their paths.
	Key *Key
	// Tokens are the client tokens; CheckToken returns one that is made or changed as it is stored, or a *providers.Fault
	// that names the field that is wrong.
	Tokens     TokenKeeper
	CheckToken func(tokens.Token) (tokens.Token, error)
	// Tasks are those of all tokens, Webhooks their deliveries.
	Tasks    Operator
	Webhooks Redeliverer
	// Counter counts them; Content serves what they made.
	Counter Counter
	Content ServeContent
	// Usage is the ledger, Money what tokens with a budget have spent and reserved.
	Usage UsageReader
	Money Settler
	// Channels lists how the channels are doing.
	Channels func(ctx context.Context) ([]router.ChannelState, error)
}

// service is the operations.
type service struct {
	Options

	prices    *pricing.List
	wrongKeys edge.WrongKeys
}

// Add adds the operator's operations to an API. Their faults have the format; prices, which may be nil, are what models cost.
func Add(api huma.API, format *edge.Format, o Options, prices *pricing.List) {
	s := &service{Options: o, prices: prices}
	g := edge.NewGroup(api, edge.GroupOptions{
		Formats: []*edge.Format{format}, Title: "Admin", Enter: s.letIn, Security: []map[string][]string{{Scheme: {}}},
		Kinds: faultKinds, Words: faultWords,
	})
	g.UseSimpleModifier(func(op *huma.Operation) { op.Tags = []string{Tag} })
	s.addTokens(g)
	s.addChannels(g)
	s.addUsage(g)
	s.addUnsettled(g)
	s.addTasks(g)
	s.addWatch(g)
}

// letIn lets in who has the admin key, and operators whom this process knows.
func (s *service) letIn(x *edge.Request, r *http.Request) error {
	if who := edge.InsiderOf(r.Context()); who != nil {
		return insider(who, r)
	}
	adminKey := s.Key.current()
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
	if wait := s.wrongKeys.Note(x.Source(), mostWrongKeys, time.Now()); wait > 0 {
		return &providers.Fault{
			Kind: providers.RateLimited, Message: "Too many wrong admin keys came from this network.", RetryAfter: wait, Err: edge.ErrWrongKey,
		}
	}
	return &providers.Fault{Kind: providers.Unauthenticated, Message: "The admin key is wrong.", Err: edge.ErrWrongKey}
}

// insider lets in an operator for whom this process asks itself.
func insider(who *edge.Insider, r *http.Request) error {
	switch {
	case who.Operator != "" && who.Role == edge.RoleOperator:
	case who.Operator != "" && who.Role == edge.RoleViewer && (r.Method == http.MethodGet || r.Method == http.MethodHead):
	case who.Operator != "":
		return providers.Faultf(providers.Forbidden, "A viewer may change nothing.")
	default:
		return edge.NothingHere()
	}
	r.Header.Set("Content-Type", "application/json") // a body is JSON, whatever it is called
	return nil
}

// Key opens the operator's operations and may change while they are served. nil is none, which closes them. It is
// safe for concurrent use.
type Key struct {
	key atomic.Pointer[providers.Secret]
}

// NewKey starts with a key; "" is none.
func NewKey(key providers.Secret) *Key {
	k := new(Key)
	k.Load(key)
	return k
}

// Load replaces the key, for requests that come from now on, and tells whether it is another.
func (k *Key) Load(key providers.Secret) bool {
	before := k.key.Swap(&key)
	return before == nil || *before != key
}

// current is the key that counts now, "" for none.
func (k *Key) current() providers.Secret {
	if k == nil {
		return ""
	}
	return *k.key.Load()
}

type adminChannelList struct {
	Object string                `json:"object" enum:"list"`
	Data   []router.ChannelState `json:"data" nullable:"false"`
}

// addChannels adds the channels' state.
func (s *service) addChannels(g *edge.Group) {
	huma.Register(g, huma.Operation{
		OperationID: "adminListChannels", Method: http.MethodGet, Path: Root + "/channels", Summary: "How the channels are doing",
		Description: "State, cooldown, calls in flight and rates of every channel, of its models that are not closed, and of each of its keys, which are named by their fingerprints.",
		Responses:   edge.DeclareDefault(),
	}, func(ctx context.Context, _ *struct{}) (*struct{ Body adminChannelList }, error) {
		states, err := s.Channels(ctx)
		if err != nil {
			return nil, storeFault("channel", "", err)
		}
		return &struct{ Body adminChannelList }{adminChannelList{Object: "list", Data: states}}, nil
	})
}
