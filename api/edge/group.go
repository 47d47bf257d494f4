package edge

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/providers"
)

// GroupOptions are what the operations of a group have in common. The default of a function is that of clients' operations.
type GroupOptions struct {
	// Formats are the formats of the answers. If there are several, the request's headers decide.
	Formats []*Format
	// Title is the prefix of the names of the faults in the OpenAPI document; "": that of the one format.
	Title string
	// Access is what the operations require of the client.
	Access Access
	// Enter authenticates requests that are not clients'; nil: clients authenticate, and Access applies.
	Enter func(x *Request, r *http.Request, op *huma.Operation) error
	// Security lists the ways to authenticate for the OpenAPI document.
	Security []map[string][]string
	// Kinds returns the kinds of faults of an operation, and Words describes a kind, for the OpenAPI document.
	Kinds func(op *huma.Operation) []providers.Kind
	Words func(kind providers.Kind) string
	// ConflictsPass: a conflict ends by itself after some time.
	ConflictsPass bool
}

// Access is what an operation requires of the client.
type Access struct {
	// Permission is the entry of a token's operations that the operation requires; "": every token may use it, or its handler calls Permit.
	Permission string
	Meter      Meter
	// Reserves: the handler of a call reads the body and then reserves the cost, without any step in between that requires an admitted
	// call. So a short body is read first, and one round trip admits the call and reserves its cost.
	Reserves bool
}

// Meter is the limit of a token for which an operation counts.
type Meter int

// The meters.
const (
	// Unmetered operations count for no limit, or their handler counts them.
	Unmetered Meter = iota
	// MeterReads is for operations that read or search tasks. A client reads a task about a hundred times.
	MeterReads
	// MeterCalls is for calls and for creates of tasks, which cost money: package calls charges them.
	MeterCalls
)

// Group declares operations with the same authentication, the same formats of faults and the same entries in the OpenAPI document.
type Group struct {
	*huma.Group

	api     huma.API
	options GroupOptions
}

// Handler reads a request and writes its answer. If it returns an error, the edge answers with its fault.
type Handler func(x *Request, r *http.Request) error

// NewGroup returns a group of operations of the API.
func NewGroup(api huma.API, o GroupOptions) *Group {
	if o.Title == "" && len(o.Formats) == 1 {
		o.Title = o.Formats[0].Title
	}
	if o.Kinds == nil {
		o.Words, o.ConflictsPass = DescribeFault, true
	}
	g := &Group{Group: huma.NewGroup(api), api: api, options: o}
	g.UseMiddleware(func(ctx huma.Context, next func(huma.Context)) {
		r, x := unwrap(ctx)
		if err := g.enter(x, r, ctx.Operation(), o.Access); err != nil {
			x.Fail(err)
			return
		}
		next(ctx)
	})
	g.UseSimpleModifier(func(op *huma.Operation) {
		op.Security = o.Security
		if o.Access.Permission != "" {
			op.Extensions = map[string]any{permissionKey: o.Access.Permission}
		}
		if op.Responses == nil {
			op.Responses = make(map[string]*huma.Response)
		}
		g.declareFaults(op)
	})
	return g
}

// With returns the same group with another access.
func (g *Group) With(access Access) *Group {
	o := g.options
	o.Access = access
	return NewGroup(g.api, o)
}

// enter records the operation of a request, finds the caller, and checks whether the caller may use the operation now.
func (g *Group) enter(x *Request, r *http.Request, op *huma.Operation, access Access) error {
	at(x, op.Path)
	if x.Format.RequestID != "" {
		x.Header().Set(x.Format.RequestID, x.AnswerID())
	}
	if g.options.Enter != nil {
		return g.options.Enter(x, r, op)
	}
	calls := access.Meter == MeterCalls
	x.operationID, x.Access, x.Recorded = op.OperationID, access, calls
	inside := InternalCallerOf(r.Context())
	if err := x.admit(r.Context(), x.edge.keyOf(x.Format, inside, r), inside, access.Permission); err != nil {
		return err
	}
	if changes := r.Method != http.MethodGet && r.Method != http.MethodHead; x.presence.internal.impersonates() && (changes || calls) {
		return providers.Faultf(providers.Forbidden, "Only the token itself may do this: an operator may only read the token's data.")
	}
	if access.Meter == MeterReads {
		return x.TakeReads(1)
	}
	return nil
}

// at records the operation, and forbids caches to share its answer.
func at(x *Request, operation string) {
	x.Operation = operation
	x.Header()["Cache-Control"] = x.fixed[2:3:3]
}

// Handle declares and routes an operation whose handler reads the request and writes the answer itself. huma.Register would parse the body
// into a struct and marshal the answer from one, which a relayed body must not cost.
func (g *Group) Handle(op huma.Operation, h Handler) { g.HandleAt(op.Path, op, h) }

// HandleAt is Handle for an operation whose path in the OpenAPI document differs from the router's.
func (g *Group) HandleAt(route string, op huma.Operation, h Handler) {
	g.DocumentOperation(&op)
	routed := op
	routed.Path = route
	g.Adapter().Handle(&routed, func(ctx huma.Context) {
		r, x := unwrap(ctx)
		err := g.enter(x, r, &op, g.options.Access)
		if err == nil {
			err = h(x, r)
		}
		if err != nil {
			x.Fail(err)
		}
	})
}

// PathOperation is a declared operation whose handler receives a part of the path that the router cannot separate.
type PathOperation struct {
	Operation *huma.Operation
	Access    Access
	Handle    func(x *Request, r *http.Request, part string) error
}

// Document declares the operation in the group.
func (op PathOperation) Document(g *Group) { g.With(op.Access).DocumentOperation(op.Operation) }

// HandleAny routes several declared operations. find returns the one of a request, and its part of the path.
func (g *Group) HandleAny(method, route string, find func(x *Request, r *http.Request) (PathOperation, string, error)) {
	g.Adapter().Handle(&huma.Operation{Method: method, Path: route}, func(ctx huma.Context) {
		r, x := unwrap(ctx)
		at(x, route)
		op, part, err := find(x, r)
		if err == nil {
			err = g.enter(x, r, op.Operation, op.Access)
		}
		if err == nil {
			err = op.Handle(x, r, part)
		}
		if err != nil {
			x.Fail(err)
		}
	})
}

// permissionKey is the extension of the OpenAPI document with the permission that an operation requires.
const permissionKey = "x-permission"

// Register declares and routes an operation whose input huma decodes and validates, and whose answer is JSON.
func Register[I, B any](g *Group, op huma.Operation, answer func(context.Context, *I) (B, error)) {
	op.Responses = map[string]*huma.Response{"default": {}} // replaces huma's own error schema by the group's
	huma.Register(g, op, func(ctx context.Context, in *I) (*struct{ Body B }, error) {
		body, err := answer(ctx, in)
		if err != nil {
			return nil, err
		}
		return &struct{ Body B }{body}, nil
	})
}

// Parameter declares an optional string parameter in the query or the header.
func Parameter(in, name, description string) *huma.Param {
	return &huma.Param{Name: name, In: in, Description: description, Schema: &huma.Schema{Type: huma.TypeString}}
}

// PathParameter declares a string parameter in the path.
func PathParameter(name, description string) *huma.Param {
	p := Parameter("path", name, description)
	p.Required = true
	return p
}

// PathTail returns the decoded part of the path that matches the router's *.
func PathTail(r *http.Request) string {
	tail := r.PathValue("*")
	if r.URL.RawPath == "" {
		return tail
	}
	if decoded, err := url.PathUnescape(tail); err == nil {
		return decoded
	}
	return tail
}

// HeaderLists reports whether a header lists the word, in any case.
func HeaderLists(header http.Header, name, word string) bool {
	for _, value := range header.Values(name) {
		for item := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.TrimSpace(item), word) {
				return true
			}
		}
	}
	return false
}
