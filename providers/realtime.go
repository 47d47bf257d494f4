package providers

import (
	"context"
	"net/http"
	"net/url"
)

// RealtimeSession is the endpoint of a realtime conversation, the only format that has one.
func RealtimeSession() Endpoint { return Endpoint{Format: OpenAI, Operation: Realtime} }

// RealtimeCall asks for one realtime conversation.
type RealtimeCall struct {
	// Model is the public name.
	Model string
	// Header and Query hold only what of the client's may travel upstream; never a credential nor the model.
	Header http.Header
	Query  url.Values
	// RequestID names the client's request in logs.
	RequestID string
	// Token is the stable id of the token that calls.
	Token string
}

// Dialer opens realtime conversations at one vendor. It is safe for concurrent use.
type Dialer interface {
	// DialRealtime returns once the upstream has switched protocols. The error is a *Fault, of a refusal with the
	// upstream's Reply. ctx bounds the dial alone; the caller closes the socket.
	DialRealtime(ctx context.Context, to Target, call RealtimeCall) (*Socket, error)
}
