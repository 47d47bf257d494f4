package edge

import (
	"context"
	"net/http"

	"modelrelay/providers"
	"modelrelay/storage/audit"
	"modelrelay/storage/tokens"
)

// Role determines what an operator may do.
type Role string

// The roles.
const (
	// RoleOperator may see and change everything.
	RoleOperator Role = "operator"
	// RoleViewer may see everything and change nothing.
	RoleViewer Role = "viewer"
)

// Operator is an operator of the gateway.
type Operator struct {
	Name string
	Role Role
	// Key is the fingerprint of the operator's key: a different one means that the key was replaced. "" without a key.
	Key string
}

// Permit returns nil if the operator may send a request with the method. A viewer may only read. Any other role may do nothing.
func (o Operator) Permit(method string) error {
	reads := method == http.MethodGet || method == http.MethodHead
	switch {
	case o.Role == RoleOperator, o.Role == RoleViewer && reads:
		return nil
	case o.Role == RoleViewer:
		return providers.Faultf(providers.Forbidden, "A viewer may change nothing.")
	}
	return providers.Faultf(providers.Forbidden, "This is for operators.")
}

// Act is the action of an operator's request, for the audit log.
type Act struct {
	// By is the operator; nil until it is known.
	By *Operator
	// What is the name of the action in the audit log, and Subject its object, such as a token's id.
	What, Subject string
	// Recorded: the audit log already has an entry for it.
	Recorded bool
}

// From returns the source of the request with ctx for the audit log: the host of a command, or an address; "" if unknown.
func (x *Request) From(ctx context.Context) string {
	if internal := InternalCallerOf(ctx); internal != nil && internal.From != "" {
		return internal.From
	}
	if source := x.Source(); source.IsValid() {
		return source.String()
	}
	return ""
}

func (x report) audit() {
	by := x.Act.By
	reads := x.http.Method == http.MethodGet || x.http.Method == http.MethodHead
	if x.edge.options.Acted == nil || by == nil || reads || x.Act.Recorded {
		return
	}
	entry := audit.Entry{
		By: audit.Operator, Who: by.Name, What: x.Act.What, Subject: x.Act.Subject, Outcome: audit.Done, RequestID: x.AnswerID(),
	}
	if by.Name == string(audit.CLI) { // no operator of the configuration has this name
		entry.By = audit.CLI
	}
	entry.From = x.From(x.http.Context())
	if x.Fault != nil {
		entry.Outcome, entry.Reason = audit.Refused, x.Fault.Message
	}
	x.edge.options.Acted(x.presence.ctx, entry)
}

// InternalCaller is the operator or the token for which this process sends a request to its own server. It is in the request's context,
// so no request from the network can have one.
type InternalCaller struct {
	// Operator is the name of an operator, "" for a token. Role is the operator's.
	Operator string
	Role     Role
	// From is the host of a command; "": the request has a source address.
	From string
	// Token is the stable id of the token. Find reads it; storage.ErrNotFound: it was removed, storage.ErrUnavailable: the store is away.
	Token string
	Find  func(ctx context.Context, id string) (*tokens.Token, error)
	// Impersonates: an operator or a viewer reads the token's data, without its limits and networks, and may not change or call anything.
	Impersonates bool
	// Background: the request serves a background call, whose create was checked.
	Background bool
}

// impersonates reports whether an operator or a viewer reads the data of a token. i may be nil.
func (i *InternalCaller) impersonates() bool { return i != nil && i.Impersonates }

type internalCallerKey struct{}

// WithInternalCaller returns the context of a request that has the rights of an operator or a token in place of a key.
func WithInternalCaller(ctx context.Context, caller *InternalCaller) context.Context {
	return context.WithValue(ctx, internalCallerKey{}, caller)
}

// InternalCallerOf returns the internal caller of a request; nil for a request from the network.
func InternalCallerOf(ctx context.Context) *InternalCaller {
	caller, _ := ctx.Value(internalCallerKey{}).(*InternalCaller)
	return caller
}

func (e *Edge) internalToken(ctx context.Context, caller *InternalCaller) (*tokens.Token, error) {
	if caller.Token == "" || caller.Find == nil {
		return nil, providers.Faultf(providers.Unauthenticated, "This is for holders of a token.")
	}
	token, err := caller.Find(ctx, caller.Token)
	return usableToken(token, err)
}
