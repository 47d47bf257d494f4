// Package option has the option of a client that Temporal's server sets.
package option

import "golang.org/x/oauth2"

// ClientOption configures a client.
type ClientOption interface{ clientOption() }

// WithTokenSource sets the credentials of a client.
func WithTokenSource(s oauth2.TokenSource) ClientOption { return tokenSource{s} }

type tokenSource struct{ oauth2.TokenSource }

func (tokenSource) clientOption() {}
