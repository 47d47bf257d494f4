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

// actor returns the operator or viewer of the session. The role of a token's holder permits nothing.
func (v *View) actor() operator.Actor {
	x := edge.Of(v.R.Context())
	return operator.Actor{
		Operator: edge.Operator{Name: v.User.Owner, Role: v.User.Role}, From: x.From(v.R.Context()),
		RequestID: x.AnswerID(),
	}
}

// holder returns the token of the session, and counts the reads for it. It makes the token the caller of the request: the request ends when
// the token may no longer be used, and the token's networks apply.
func (v *View) holder(reads int) (*tokens.Token, error) {
	x := edge.Of(v.R.Context())
	if err := x.ActAs(v.R.Context(), v.internal(v.User)); err != nil {
		return nil, err
	}
	return x.Caller, x.TakeReads(reads)
}

// token returns a token whose data an operator or a viewer reads. The reads do not count for the token's limits.
func (v *View) token(id string) (*tokens.Token, error) {
	token, err := v.s.o.Token(v.R.Context(), id)
	return token, operator.StoreFault("token", id, err)
}

// internal returns an internal caller for an operator or for a token. If an operator or a viewer reads a token's data, the token's limits
// do not apply, and changes are not possible.
func (v *View) internal(user User) *edge.InternalCaller {
	if user.Kind == TokenKind {
		return &edge.InternalCaller{Token: user.Owner, Find: v.s.o.Token, Impersonates: user.Role != Holder}
	}
	return &edge.InternalCaller{Operator: user.Owner, Role: user.Role}
}

// asCaller returns the context of a request to the API for an operator or a token. Without a session, the context permits nothing.
func (v *View) asCaller(user User) context.Context {
	return edge.WithInternalCaller(v.R.Context(), v.internal(user))
}
