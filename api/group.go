package api

import (
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/providers"
)

// bearerScheme is the security scheme every operation of the contract declares.
const bearerScheme = "bearer"

// group is the operations of one format: they share authentication, the error shape and how they are declared.
type group struct {
	*huma.Group
	server *Server
	format providers.Format
	// faults begins the names of the group's faults in the document; "" for what the format is called there.
	faults string
}

// newGroup makes the group of a format, "" for operations whose format the request's headers choose. errorSchema is the
// body of its errors.
func (s *Server) newGroup(format providers.Format, errorSchema *huma.Schema) *group {
	g := &group{Group: huma.NewGroup(s.api), server: s, format: format}
	g.UseMiddleware(g.enter, s.authenticate)
	g.UseSimpleModifier(func(op *huma.Operation) {
		op.Security = tokenSecurity()
		if permission := permissionOf(op); permission != "" {
			op.Extensions = map[string]any{permissionKey: permission}
		}
		if op.Responses == nil {
			op.Responses = make(map[string]*huma.Response)
		}
		g.declareFaults(op, errorSchema)
	})
	return g
}

// enter tells the exchange where it is.
func (g *group) enter(ctx huma.Context, next func(huma.Context)) {
	_, x := unwrap(ctx)
	x.operation = ctx.Operation().Path
	x.keepPrivate()
	if g.format != "" {
		x.format = g.format
	}
	if x.format == providers.Anthropic {
		x.Header().Set("Request-Id", x.id) // where that vendor's SDKs look for it
	}
	next(ctx)
}

// handler reads a request and writes its answer to the exchange; an error that it returns is answered for it.
type handler func(x *exchange, r *http.Request) error

// handle declares and routes an operation whose handler does its own reading and writing. huma.Register would parse the
// body into a struct and answer from one, which no relayed body needs.
func (g *group) handle(op huma.Operation, h handler) { g.handleAt(op.Path, op, h) }

// handleAt is handle for a route that the OpenAPI document writes otherwise than the router.
func (g *group) handleAt(route string, op huma.Operation, h handler) {
	g.DocumentOperation(&op)
	routed := op
	routed.Path = route
	middlewares := slices.Concat(g.Middlewares(), op.Middlewares)
	g.Adapter().Handle(&routed, middlewares.Handler(func(ctx huma.Context) {
		r, x := unwrap(ctx)
		if err := h(x, r); err != nil {
			g.server.fail(x, err)
		}
	}))
}

// metered marks an operation whose use is limited.
func (s *Server) metered() huma.Middlewares { return huma.Middlewares{s.limit} }

// counted marks an operation that reads a task, or looks for one.
func (s *Server) counted() huma.Middlewares {
	return huma.Middlewares{func(ctx huma.Context, next func(huma.Context)) {
		_, x := unwrap(ctx)
		if err := s.reading(x, 1); err != nil {
			s.fail(x, err)
			return
		}
		next(ctx)
	}}
}
