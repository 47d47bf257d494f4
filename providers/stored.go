package providers

import (
	"context"
	"net/http"
	"net/url"
	"time"
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

// Ticketer is a StoredReader whose vendor runs calls in the background: the answer to the create has the id of the call's answer, which is
// read until it has ended.
type Ticketer interface {
	StoredReader
	// InBackground returns the edits that make the vendor run a call in the background and store its answer.
	InBackground(call Call) []Edit
	// Sight reads the document of an answer, of which the beginning is enough, or the data of an event, and the header with it, nil for none.
	Sight(header http.Header, data []byte) Sight
	// Resume returns the parameters with which StoredGet streams the events of an answer after one of them, "" for all.
	Resume(after string) url.Values
}

// Sight is what is seen of an answer that its vendor makes.
type Sight struct {
	// ID is the vendor's id of the answer, and Event that of an event; "" if they are not shown.
	ID, Event string
	// Ended: the answer does not change any more. Shown: it is shown whether that is so.
	Ended, Shown bool
	// Wait is how long the vendor asks to wait before the next read; 0 if it does not.
	Wait time.Duration
}

// Ticketing is how a call is run by its vendor, under a ticket.
type Ticketing struct {
	// At is the channel and key that run the call already, so it is not sent; zero: none does.
	At KeyRef
	// Follow returns the whole answer as the vendor makes it: of the create that it answered, or of the call at At if created is nil. It
	// closes the body of created. An answer may end with ctx.
	Follow func(ctx context.Context, to Target, by Ticketer, created *http.Response) (*http.Response, error)
}
