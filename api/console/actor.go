package console

import (
	"context"

	"modelrelay/api/edge"
	"modelrelay/api/operator"
	"modelrelay/storage/tokens"
)

const (
	// OperatorKind is an operator or a viewer.
	OperatorKind = "operator"
	// TokenKind is the holder of a token.
	TokenKind = "token"
)

// actor is the operator or viewer of the session. The role of a token's holder permits nothing.
func (v *View) actor() operator.Actor {
	x := edge.Of(v.R.Context())
	return operator.Actor{
		Operator: edge.Operator{Name: v.User.Owner, Role: edge.Role(v.User.Role)}, From: x.From(v.R.Context()),
		RequestID: x.AnswerID(),
	}
}

// holder returns the token of the session, and takes so many of its reads. The request is then one of the token: it ends with the
// token's right to use the gateway, and the token's networks hold.
func (v *View) holder(reads int) (*tokens.Token, error) {
	x := edge.Of(v.R.Context())
	if err := x.ActAs(v.R.Context(), v.internal(v.User)); err != nil {
		return nil, err
	}
	return x.Caller, x.TakeReads(reads)
}

// token returns a token for an operator or a viewer that reads what is the token's own. Nothing counts against the token's limits.
func (v *View) token(id string) (*tokens.Token, error) {
	token, err := v.s.o.Token(v.R.Context(), id)
	return token, operator.StoreFault("token", id, err)
}

// internal is an internal caller that acts for an operator, or for a token. If an operator or a viewer reads what is a token's own,
// nothing counts against the token's limits, and nothing can be changed.
func (v *View) internal(user User) *edge.InternalCaller {
	if user.Kind == TokenKind {
		return &edge.InternalCaller{Token: user.Owner, Find: v.s.o.Token, Impersonates: user.Role != Holder}
	}
	return &edge.InternalCaller{Operator: user.Owner, Role: edge.Role(user.Role)}
}

// asCaller is the context of a request to the API that acts for an operator or a token. A view without a session acts for nothing.
func (v *View) asCaller(user User) context.Context {
	return edge.WithInternalCaller(v.R.Context(), v.internal(user))
}
