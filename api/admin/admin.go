// Package admin serves the operators' actions over HTTP, with separate keys. Package operator implements the actions.
//
// It must not know a client's format, except that of its faults, or the configuration file.
package admin

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/edge"
	"modelrelay/api/logs"
	"modelrelay/api/operator"
)

const (
	// Root is the prefix of the operator's paths.
	Root = "/admin"
	// Scheme is the security scheme of the operator's operations.
	Scheme = "admin"
	// Tag is the tag of the operator's operations in the OpenAPI document.
	Tag = "Operators"
	// idPrefix is the prefix of their operation ids.
	idPrefix = "admin"
)

// Options are the dependencies of the operator's operations. The caller owns them.
type Options struct {
	// Operators authenticates operators. While there is no operator, all their paths are not found.
	Operators *Operators
	// Service performs the actions; nil: only the OpenAPI document is needed.
	Service *operator.Service
	// Content serves the output of a task.
	Content ServeContent
}

// Add adds the operator's operations to an API. Their faults have the format.
func Add(api huma.API, format *edge.Format, o Options) {
	g := edge.NewGroup(api, edge.GroupOptions{
		Formats: []*edge.Format{format}, Title: "Admin", Enter: o.Operators.authenticate, Security: []map[string][]string{{Scheme: {}}},
		Kinds: faultKinds, Words: faultWords,
	})
	g.UseSimpleModifier(func(op *huma.Operation) { op.Tags = []string{Tag} })
	addTokens(g, o.Service)
	addChannels(g, o.Service)
	addUsage(g, o.Service)
	addTasks(g, o.Service)
	addContent(g, o.Service, o.Content)
	addAudit(g, o.Service)
	logs.AddOperator(g, Root, o.Service.Logs, o.Service.TokenID)
}

// register adds an operation that is a method of the service. The service records the action.
func register[I, O any](g *edge.Group, op huma.Operation, do func(ctx context.Context, by operator.Actor, in *I) (O, error)) {
	edge.Register(g, op, func(ctx context.Context, in *I) (O, error) {
		x := edge.Of(ctx)
		x.Act.Recorded = true
		return do(ctx, actorOf(ctx, x), in)
	})
}

func actorOf(ctx context.Context, x *edge.Request) operator.Actor {
	return operator.Actor{Operator: *x.Act.By, From: x.From(ctx), RequestID: x.AnswerID()}
}
