package edge

import (
	"context"
	"net/http"

	"modelrelay/providers"
	"modelrelay/storage/audit"
	"modelrelay/storage/tokens"
)

// Role is what an operator may do.
type Role string

// The roles.
const (
	// RoleOperator may see and change everything.
	RoleOperator Role = "operator"
	// RoleViewer may see everything and change nothing.
	RoleViewer Role = "viewer"
)

// Operator is one of those who operate the gateway.
type Operator struct {
	Name string
	Role Role
	// Key is the fingerprint of its key: another one says that the key was replaced. "" where no key was asked for.
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

// Act is what is found out of an operator's request.
type Act struct {
	// By is the operator that sent it, nil as long as none is known.
	By *Operator
	// What it does, in a word of the audit log, and Subject what it is about, such as a token's id.
	What, Subject string
	// Recorded: an entry of the audit log was made of it already.
	Recorded bool
}

// From returns where the request with ctx comes from, for the audit log: the host of a command, or an address; "" if it is not known.
func (x *Request) From(ctx context.Context) string {
	if inside := InternalCallerOf(ctx); inside != nil && inside.From != "" {
		return inside.From
	}
	if source := x.Source(); source.IsValid() {
		return source.String()
	}
	return ""
}

// audit notes in the audit log what an operator did or tried.
func (x report) audit() {
	by := x.Act.By
	reads := x.http.Method == http.MethodGet || x.http.Method == http.MethodHead
	if x.edge.options.Acted == nil || by == nil || reads || x.Act.Recorded {
		return
	}
	entry := audit.Entry{
		By: audit.Operator, Who: by.Name, What: x.Act.What, Subject: x.Act.Subject, Outcome: audit.Done, RequestID: x.AnswerID(),
	}
	if by.Name == string(audit.CLI) { // which no operator of the file is called
		entry.By = audit.CLI
	}
	entry.From = x.From(x.http.Context())
	if x.Fault != nil {
		entry.Outcome, entry.Reason = audit.Refused, x.Fault.Message
	}
	x.edge.options.Acted(x.presence.ctx, entry)
}

// InternalCaller is the operator or the token that a request of this process to its own server acts for. It is in the request's context, where nothing that comes over the network can put it.
type InternalCaller struct {
	// Operator is an operator's name, "" for a holder; Role is what that operator may do.
	Operator string
	Role     Role
	// From is the host of a command, "" for a request that comes from an address.
	From string
	// Token is the stable id of the token that a holder's request acts as, and Find reads it: storage.ErrNotFound for one
	// that is gone, storage.ErrUnavailable when it cannot be found out.
	Token string
	Find  func(ctx context.Context, id string) (*tokens.Token, error)
	// Impersonates reports that an operator or a viewer reads what is the token's. Nothing counts against its limits, its networks are not
	// checked, and nothing is changed or called.
	Impersonates bool
	// Background reports that the request serves a background call, whose create was checked.
	Background bool
}

// impersonates reports whether an operator or a viewer reads what is a token's own.
func (i *InternalCaller) impersonates() bool { return i != nil && i.Impersonates }

type internalCallerKey struct{}

// WithInternalCaller returns the context of a request that acts for an operator or a token. The request has no key, and the rights of
// the operator or the token.
func WithInternalCaller(ctx context.Context, who *InternalCaller) context.Context {
	return context.WithValue(ctx, internalCallerKey{}, who)
}

// InternalCallerOf is the internal caller of a request; nil for a request from the network.
func InternalCallerOf(ctx context.Context) *InternalCaller {
	who, _ := ctx.Value(internalCallerKey{}).(*InternalCaller)
	return who
}

// internalToken finds the token that an internal caller's request acts as.
func (e *Edge) internalToken(ctx context.Context, who *InternalCaller) (*tokens.Token, error) {
	if who.Token == "" || who.Find == nil {
		return nil, providers.Faultf(providers.Unauthenticated, "This is for holders of a token.")
	}
	token, err := who.Find(ctx, who.Token)
	return judged(token, err)
}
