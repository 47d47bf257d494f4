package edge

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/providers"
	"modelrelay/storage/tokens"
)

// GroupOptions say what the operations of a group have in common. A nil function means what clients' operations have.
type GroupOptions struct {
	// Formats are those of their answers: one, or several among which the request's headers choose.
	Formats []*Format
	// Title begins the names of their faults in the OpenAPI document; "" means that of the one format.
	Title string
	// Enter lets a request in that is none of a client's; nil: clients authenticate, and are held to their limits.
	Enter func(x *Request, r *http.Request, op *huma.Operation) error
	// Security are the ways to authenticate, as the document has them.
	Security []map[string][]string
	// Kinds are those of the faults that an operation may answer with, and Words say what a kind means to whoever reads the
	// document.
	Kinds func(op *huma.Operation) []providers.Kind
	Words func(kind providers.Kind) string
	// ConflictsPass: a conflict passes by itself, after a while.
	ConflictsPass bool
}

// Group is operations that share how they authenticate, the shape of their faults and how they are declared.
type Group struct {
	*huma.Group

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
		o.Kinds, o.Words, o.ConflictsPass = faultKinds, FaultWords, true
	}
	g := &Group{Group: huma.NewGroup(api), options: o}
	g.UseMiddleware(func(ctx huma.Context, next func(huma.Context)) {
		r, x := unwrap(ctx)
		if err := g.enter(x, r, ctx.Operation()); err != nil {
			x.Fail(err)
			return
		}
		next(ctx)
	})
	g.UseSimpleModifier(func(op *huma.Operation) {
		op.Security = o.Security
		if permission := permissionOf(op); permission != "" && o.Enter == nil {
			op.Extensions = map[string]any{permissionKey: permission}
		}
		if op.Responses == nil {
			op.Responses = make(map[string]*huma.Response)
		}
		g.declareFaults(op)
	})
	return g
}

// enter lets a request into an operation: it tells the request where it is, who its caller is, and whether that may do this
// now.
func (g *Group) enter(x *Request, r *http.Request, op *huma.Operation) error {
	at(x, op.Path)
	if x.Format.RequestID != "" {
		x.Header().Set(x.Format.RequestID, x.AnswerID())
	}
	if g.options.Enter != nil {
		return g.options.Enter(x, r, op)
	}
	x.operationID, x.recorded = op.OperationID, op.Metadata[limitKey] == callLimit
	if err := x.authenticate(r, permissionOf(op)); err != nil {
		return err
	}
	if changes := r.Method != http.MethodGet && r.Method != http.MethodHead; x.presence.inside.looks() && (changes || op.Metadata[limitKey] == callLimit) {
		return providers.Faultf(providers.Forbidden, "This is for the holder of the token: others may look at what is the token's.")
	}
	switch op.Metadata[limitKey] {
	case callLimit:
		if x.Admission.due = op.Metadata[reserveKey] == true && admitsLater(x, r); x.Admission.due {
			return nil
		}
		return x.Admit(r)
	case readLimit:
		return x.TakeReads(1)
	default:
		return nil
	}
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
		err := g.enter(x, r, &op)
		if err == nil {
			err = h(x, r)
		}
		if err != nil {
			x.Fail(err)
		}
	})
}

// HandleAny routes several declared operations at once, among which find chooses.
func (g *Group) HandleAny(method, route string, find func(x *Request, r *http.Request) (*huma.Operation, Handler, error)) {
	g.Adapter().Handle(&huma.Operation{Method: method, Path: route}, func(ctx huma.Context) {
		r, x := unwrap(ctx)
		at(x, route)
		op, h, err := find(x, r)
		if err == nil {
			err = g.enter(x, r, op)
		}
		if err == nil {
			err = h(x, r)
		}
		if err != nil {
			x.Fail(err)
		}
	})
}

// PathOperation is a declared operation whose handler is told a part of the path that the router cannot tell.
type PathOperation struct {
	Operation *huma.Operation
	Handle    func(x *Request, r *http.Request, part string) error
}

// limitKey is where an operation's metadata says which limits hold for it: the caller's limits of calls, for what costs
// something, or that of reads of tasks, of which a task's client makes a hundred.
const (
	limitKey  = "limit"
	callLimit = "calls"
	readLimit = "reads"
)

// Calls marks an operation that costs something: a call, or the create of a task.
func Calls() map[string]any { return map[string]any{limitKey: callLimit} }

// reserveKey is where an operation's metadata says that its handler reads the body, and then calls Reserve.
const reserveKey = "reserve"

// CallsThatReserve is Calls of an operation whose handler calls ReadBody and then Reserve, and does nothing in between that a
// call beyond its limits must not do.
func CallsThatReserve() map[string]any { return map[string]any{limitKey: callLimit, reserveKey: true} }

// Reads marks an operation that reads a task, or looks for one.
func Reads() map[string]any { return map[string]any{limitKey: readLimit} }

// permitKey is where an operation's metadata says that its handler calls Permit.
const permitKey = "permit"

// CallsAsRead is Calls of an operation whose body decides which word of a token's operations it belongs to: its handler calls
// Permit once it has read it.
func CallsAsRead() map[string]any { return map[string]any{limitKey: callLimit, permitKey: true} }

// ReadsPermitted is Reads of an operation whose id decides which word of a token's operations it belongs to: its handler calls
// Permit.
func ReadsPermitted() map[string]any { return map[string]any{limitKey: readLimit, permitKey: true} }

// permissionKey is where the OpenAPI document says of an operation which word of a token's operations it belongs to.
const permissionKey = "x-permission"

// permissionOf is the word of a token's operations that an operation belongs to, by its category in the document; "" for
// the model lists and what is its own, which every token may read, and for what its handler permits.
func permissionOf(op *huma.Operation) string {
	switch {
	case slices.Contains(op.Tags, ModelsTag), slices.Contains(op.Tags, AccountTag), op.Metadata[permitKey] == true:
		return ""
	case slices.Contains(op.Tags, VideoTag):
		return tokens.OperationVideo
	case slices.Contains(op.Tags, RealtimeTag):
		return tokens.OperationRealtime
	default:
		return tokens.OperationRelay
	}
}

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

// HeaderLists tells whether a header lists the word, whatever its case.
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
