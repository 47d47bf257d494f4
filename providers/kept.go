package providers

import (
	"context"
	"net/http"
	"net/url"
)

// Keeper is a Relayer whose vendor keeps what its answers made under their ids.
type Keeper interface {
	// Kept reads, stops or deletes one, at the channel and with the key that made it. The caller closes the body of a 2xx answer,
	// which may be empty. Errors are *Fault.
	Kept(ctx context.Context, to Target, kept Kept) (*http.Response, error)
}

// Kept is what is asked of an earlier answer, none of which costs anything.
type Kept struct {
	Do KeptVerb
	// ID is the upstream's name of the answer.
	ID string
	// Query are the client's parameters that may travel upstream.
	Query url.Values
	// Stream: the client wants it as events.
	Stream bool
}

// KeptVerb is what is done with an earlier answer.
type KeptVerb string

// What there is to do.
const (
	KeptGet    KeptVerb = "get"
	KeptCancel KeptVerb = "cancel"
	KeptDelete KeptVerb = "delete"
)
