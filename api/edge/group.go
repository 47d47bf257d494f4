package edge

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/providers"
)

// GroupOptions say what the operations of a group have in common. A nil function means what clients' operations have.
type GroupOptions struct {
	// Formats are those of their answers: one, or several among which the request's headers choose.
	Formats []*Format
	// Title begins the names of their faults in the OpenAPI document; "" means that of the one format.
	Title string
	// Access is what the operations ask of a client.
	Access Access
	// Enter lets a request in that is none of a client's; nil: clients authenticate, as Access says.
	Enter func(x *Request, r *http.Request, op *huma.Operation) error
	// Security are the ways to authenticate, as the document has them.
	Security []map[string][]string
	// Kinds are those of the faults that an operation may answer with, and Words explain a kind to readers of
	// the document.
	Kinds func(op *huma.Operation) []providers.Kind
	Words func(kind providers.Kind) string
	// ConflictsPass: a conflict passes by itself, after a while.
	ConflictsPass bool
}

// Access is what an operation asks of the client that uses it.
type Access struct {
	// Permission is the word of a token's operations that the operation belongs to; "": every token may use it, or its handler calls
	// Permit.
	Permission string
	Meter      Meter
	// Reserves: the handler of a call reads the body and reserves what the call may cost, and does nothing in between that a call beyond
	// its limits must not do. So a short body is read first, and one round trip admits the call and reserves its money.
	Reserves bool
}

// Meter is which of a token's limits an operation counts for.
type Meter int

// The meters.
const (
	// Unmetered operations count for none, or their handler counts.
	Unmetered Meter = iota
	// MeterReads is for operations that read a task, or look for one, of which a task's client makes a hundred.
	MeterReads
	// MeterCalls is for calls and the creates of tasks, which cost something: package calls charges them.
	MeterCalls
)

// Group is operations that share how they authenticate, the shape of their faults and how they are declared.
type Group struct {
	*huma.Group

	api     huma.API
	options GroupOptions
}

// Handler reads a request and writes its answer; an error that it returns is answered for it.
type Handler func(x *Request, r *http.Request) error

// NewGroup makes a group of an API's operations.
func NewGroup(api huma.API, o GroupOptions) *Group {
	if o.Title == "" && len(o.Formats) == 1 {
		o.Title = o.Formats[0].Title
	}
	if o.Kinds == nil {
		o.Words, o.ConflictsPass = FaultWords, true
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

// With returns the group for operations with another access.
func (g *Group) With(access Access) *Group {
	o := g.options
	o.Access = access
	return NewGroup(g.api, o)
}

// enter lets a request into an operation: it records the operation, and finds the caller and whether
// it may use the operation now.
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
	if err := x.authenticate(r, access.Permission); err != nil {
		return err
	}
	if changes := r.Method != http.MethodGet && r.Method != http.MethodHead; x.presence.inside.impersonates() && (changes || calls) {
		return providers.Faultf(providers.Forbidden, "This is for the holder of the token: others may look at what is the token's.")
	}
	if access.Meter == MeterReads {
		return x.TakeReads(1)
	}
	return nil
}

// at notes the operation, whose answer is the caller's alone.
func at(x *Request, operation string) {
	x.Operation = operation
	x.Header()["Cache-Control"] = x.fixed[2:3:3]
}

// Handle declares and routes an operation whose handler does its own reading and writing. huma.Register would parse the
// body into a struct and answer from one, which no relayed body needs.
func (g *Group) Handle(op huma.Operation, h Handler) { g.HandleAt(op.Path, op, h) }

// HandleAt is Handle for a route that the OpenAPI document writes otherwise than the router.
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

// PathOperation is a declared operation whose handler is given a part of the path that the router cannot cut off.
type PathOperation struct {
	Operation *huma.Operation
	Access    Access
	Handle    func(x *Request, r *http.Request, part string) error
}

// Document declares the operation in the group.
func (op PathOperation) Document(g *Group) { g.With(op.Access).DocumentOperation(op.Operation) }

// HandleAny routes several declared operations at once. find chooses one of them, and cuts the part off the path.
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

// permissionKey is where the OpenAPI document says of an operation which word of a token's operations it belongs to.
const permissionKey = "x-permission"

// Register declares and routes an operation whose input huma reads and checks, and whose answer is JSON.
func Register[I, B any](g *Group, op huma.Operation, answer func(context.Context, *I) (B, error)) {
	op.Responses = map[string]*huma.Response{"default": {}} // huma's own error shape is not declared; the group's takes this place
	huma.Register(g, op, func(ctx context.Context, in *I) (*struct{ Body B }, error) {
		body, err := answer(ctx, in)
		if err != nil {
			return nil, err
		}
		return &struct{ Body B }{body}, nil
	})
}

// PathParameter declares a text in the path.
func PathParameter(name, description string) *huma.Param {
	return &huma.Param{
		Name: name, In: "path", Required: true, Description: description, Schema: &huma.Schema{Type: huma.TypeString},
	}
}

// PathTail is what the router's * stands for, decoded.
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

// HeaderLists reports whether a header lists the word, whatever its case.
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
