// Package admin is the operators' actions over HTTP, behind keys of their own. What an action does is in package operator.
//
// It knows no client's format but the one that its faults have, and no configuration file.
package admin

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/edge"
	"modelrelay/api/logs"
	"modelrelay/api/operator"
)

const (
	// Root is the folder of the operator's paths.
	Root = "/admin"
	// Scheme is the security scheme of the operator's operations.
	Scheme = "admin"
	// Tag is their category in the document.
	Tag = "Operators"
	// idPrefix begins the ids of their operations.
	idPrefix = "admin"
)

// Options are what the operator's operations work with. All of it stays the caller's.
type Options struct {
	// Operators are let in; while there is none, there is nothing at their paths.
	Operators *Operators
	// Service performs their actions; nil: only the document is needed.
	Service *operator.Service
	// Content serves what a task made.
	Content ServeContent
}

// Add adds the operator's operations to an API. Their faults have the format.
func Add(api huma.API, format *edge.Format, o Options) {
	g := edge.NewGroup(api, edge.GroupOptions{
		Formats: []*edge.Format{format}, Title: "Admin", Enter: o.Operators.letIn, Security: []map[string][]string{{Scheme: {}}},
		Kinds: faultKinds, Words: faultWords,
	})
	g.UseSimpleModifier(func(op *huma.Operation) { op.Tags = []string{Tag} })
	addTokens(g, o.Service)
	addChannels(g, o.Service)
	addUsage(g, o.Service)
	addTasks(g, o.Service)
	addContent(g, o.Service, o.Content)
	(&auditOperations{o.Service}).add(g)
	logs.AddOperator(g, Root, o.Service.Logs, o.Service.TokenID)
}

// register adds an operation that is one method of the service, which records it.
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
