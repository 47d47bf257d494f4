// Package admin is the operator's HTTP interface: tokens, channels, usage, money that nobody settles, and the tasks of all
// tokens, behind a key of its own.
//
// It knows no client's format but the one that its faults have, and no configuration file.
package admin

import (
	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/edge"
	"modelrelay/api/logs"
	"modelrelay/providers/pricing"
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
	Tokens    TokenOptions
	Tasks     TaskOptions
	Channels  ChannelOptions
	Models    ModelOptions
	Setup     SetupOptions
	// Usage is the ledger, Money what tokens with a budget have spent and reserved.
	Usage UsageReader
	Money Settler
	// Audit keeps what operators do; nil: nobody does.
	Audit Auditor
	// Logs are the log of calls and their sums.
	Logs logs.Options
}

// Add adds the operator's operations to an API. Their faults have the format; prices, which may be nil, are what models cost.
func Add(api huma.API, format *edge.Format, o Options, prices *pricing.List) {
	g := edge.NewGroup(api, edge.GroupOptions{
		Formats: []*edge.Format{format}, Title: "Admin", Enter: o.Operators.letIn, Security: []map[string][]string{{Scheme: {}}},
		Kinds: faultKinds, Words: faultWords,
	})
	g.UseSimpleModifier(func(op *huma.Operation) { op.Tags = []string{Tag} })
	names := tokenNames{o.Tokens.Keeper}
	ofTokens := &tokenOperations{o.Tokens, o.Money}
	ofTokens.add(g)
	ofTokens.addGroups(g)
	(&channelOperations{o.Channels}).add(g)
	(&usageOperations{o.Usage, prices, names}).add(g)
	(&unsettledOperations{o.Money, names}).add(g)
	(&taskOperations{o.Tasks, names}).add(g)
	(&auditOperations{o.Audit}).add(g)
	(&setupOperations{SetupOptions: o.Setup}).add(g)
	(&modelOperations{ModelOptions: o.Models, states: o.Channels.States, usage: o.Usage, prices: prices}).add(g)
	(&priceOperations{o.Models.Catalogue, prices}).add(g)
	logs.AddOperator(g, Root, o.Logs, names.id)
}
