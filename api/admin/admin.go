// Package admin is the operator's HTTP interface: tokens, channels, usage, money that nobody settles, and the tasks of all
// tokens, behind a key of its own.
//
// It knows no client's format but the one that its faults have, and no configuration file.
package admin

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/edge"
	"modelrelay/api/logs"
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
)

// Options are what the operator's operations work with. All of it stays the caller's.
type Options struct {
	// Operators are let in; while there is none, there is nothing at their paths.
	Operators *Operators
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
	// Audit keeps what operators do; nil: nobody does.
	Audit Auditor
	// Desk pauses, wakes and tests channels.
	Desk ChannelDesk
	// Catalogue lists the models of the channels, Durations how long their videos take.
	Catalogue Catalogue
	Durations Durations
	// Setup are the checks of the set-up, Version is the program's own.
	Setup   []SetupCheck
	Version string
	// Logs are the log of calls and their sums.
	Logs logs.Options
	// Channels lists how the channels are doing.
	Channels func(ctx context.Context) ([]router.ChannelState, error)
}

// service is the operations.
type service struct {
	Options

	prices *pricing.List
	uses   modelUses
	setup  setupState
}

// Add adds the operator's operations to an API. Their faults have the format; prices, which may be nil, are what models cost.
func Add(api huma.API, format *edge.Format, o Options, prices *pricing.List) {
	s := &service{Options: o, prices: prices}
	g := edge.NewGroup(api, edge.GroupOptions{
		Formats: []*edge.Format{format}, Title: "Admin", Enter: s.Operators.letIn, Security: []map[string][]string{{Scheme: {}}},
		Kinds: faultKinds, Words: faultWords,
	})
	g.UseSimpleModifier(func(op *huma.Operation) { op.Tags = []string{Tag} })
	s.addTokens(g)
	s.addChannels(g)
	s.addChannelVerbs(g)
	s.addUsage(g)
	s.addUnsettled(g)
	s.addTasks(g)
	s.addAudit(g)
	s.addWatch(g)
	s.addSetup(g)
	s.addModels(g)
	s.addPrices(g)
	logs.AddOperator(g, Root, s.Logs, s.tokenID)
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
