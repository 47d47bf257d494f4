package providers

import (
	"context"
	"net/http"
	"net/url"
)

// StoredReader is a Relayer whose vendor stores answers under their ids.
type StoredReader interface {
	// Stored reads, stops or deletes one, at the channel and with the key that made it. The caller closes the body of a 2xx answer,
	// which may be empty. Errors are *Fault.
	Stored(ctx context.Context, to Target, request StoredRequest) (*http.Response, error)
}

// StoredRequest is what is asked of an earlier answer, none of which costs anything.
type StoredRequest struct {
	Do StoredVerb
	// ID is the upstream's name of the answer.
	ID string
	// Query are the client's parameters that may travel upstream.
	Query url.Values
	// Stream: the client wants it as events.
	Stream bool
}

// StoredVerb is what is done with an earlier answer.
type StoredVerb string

// The verbs.
const (
	StoredGet    StoredVerb = "get"
	StoredCancel StoredVerb = "cancel"
	StoredDelete StoredVerb = "delete"
	// StoredInput lists the input of an answer.
	StoredInput StoredVerb = "input"
)
