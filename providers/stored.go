package providers

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// StoredReader is a Relayer whose vendor stores answers under their ids.
type StoredReader interface {
	// Stored reads, cancels or deletes an answer at the channel and with the key that made it. The caller closes the body of a 2xx answer,
	// which may be empty. Errors are *Fault.
	Stored(ctx context.Context, to Target, request StoredRequest) (*http.Response, error)
}

// StoredRequest is a request about an earlier answer. It costs nothing.
type StoredRequest struct {
	Do StoredVerb
	// ID is the upstream's name of the answer.
	ID string
	// Query are the client's parameters that may travel upstream.
	Query url.Values
	// Stream: the client requests the answer as events.
	Stream bool
}

// StoredVerb is an operation on an earlier answer.
type StoredVerb string

// The verbs.
const (
	StoredGet    StoredVerb = "get"
	StoredCancel StoredVerb = "cancel"
	StoredDelete StoredVerb = "delete"
	// StoredInput lists the input of an answer.
	StoredInput StoredVerb = "input"
)

// Ticketer is a StoredReader whose vendor runs calls in the background: the create returns the id of the call's answer, which is then
// read until it has ended.
type Ticketer interface {
	StoredReader
	// Progress reads the beginning of an answer's document, or the data of an event. header is that of the response, nil for none.
	Progress(header http.Header, data []byte) Progress
	// Resume returns the parameters with which StoredGet streams the events of an answer after one of them, "" for all.
	Resume(after string) url.Values
}

// Progress is what a document or an event shows of an answer in progress.
type Progress struct {
	// ID is the vendor's id of the answer, Event the id of the event; "" if unknown.
	ID, Event string
	// Ended: the answer does not change any more. Shown: Ended is known.
	Ended, Shown bool
	// Wait is the vendor's minimum wait before the next read; 0 for none.
	Wait time.Duration
}

// Ticketing describes how a vendor runs a call under a ticket.
type Ticketing struct {
	// At is the channel and key that already run the call, so it is not sent; zero: none does.
	At KeyRef
	// Follow returns the whole answer as the vendor makes it. created is the response to the create, whose body Follow closes; nil: the
	// call runs at At. The end of ctx may end the answer.
	Follow func(ctx context.Context, to Target, by Ticketer, created *http.Response) (*http.Response, error)
}
