// Package calllog is the log of calls: their callers and channels, their outcome and cost, and never the text of prompts or answers. The
// newest calls are in a stream of Redis, which readers filter by a search for bytes.
package calllog

import (
	"slices"
	"time"
)

// Record is one call, conversation or create of a task that has ended, or was refused.
type Record struct {
	// At is when it came.
	At time.Time
	Names
	Caller
	Asked
	Outcome
	Times
	Used
	// Tries are the requests to upstreams that it took, in their order.
	Tries []Try
	// Skipped are calls like this one, refused within the same second, that have no record of their own.
	Skipped int64
}

// Names are the ids by which a call is found.
type Names struct {
	ID string // the request's, the gateway's own
	// Client is the value that the client sent as x-request-id, "" for none. Several calls of several tokens may have it.
	Client string
	// Trace is its trace's, and Task that of the task that it made; "" for none.
	Trace, Task string
}

// Caller is who called.
type Caller struct {
	Token     string // id; "" where no token was admitted
	TokenName string `json:"name"`
	Agent     string // User-Agent
}

// Asked is what was asked for.
type Asked struct {
	Operation string // operationId of the OpenAPI document
	Format    string
	Model     string // public name, as the client wrote it
	Stream    bool   // the answer was a stream of events
}

// Outcome is how it ended.
type Outcome struct {
	Channel string // that answered, "" where none did
	Status  int
	// Fault is how it failed, Words the message that the client got, Code the vendor's own word; "" where there is none.
	Fault, Words, Code string
	Bytes              int64 // of the answer
}

// Times are how long it took.
type Times struct {
	// Before is when the call was handed to an upstream, First when the client was sent the first byte of an upstream's answer,
	// both since the request came; 0 where that did not happen.
	Before, First time.Duration
	Took          time.Duration
}

// Used is what it used and cost.
type Used struct {
	Input, Cached, Output int64 // tokens
	Images                int64
	Audio                 time.Duration
	Cost                  int64 // in billionths of the currency
	// Priced: the model has a price. Estimated: what it used is, since the upstream did not say.
	Priced, Estimated bool
}

// Try is one request to an upstream.
type Try struct {
	Channel string
	Key     string // fingerprint
	Fault   string // "" where its answer began
	// Vendor is what the upstream calls the request, "" where it does not say.
	Vendor string
	Took   time.Duration
}

// VendorID is what the last upstream that said so calls the request, "" for none.
func (r *Record) VendorID() string {
	for _, try := range slices.Backward(r.Tries) {
		if try.Vendor != "" {
			return try.Vendor
		}
	}
	return ""
}

// Failed reports whether the client got a fault.
func (r *Record) Failed() bool { return r.Fault != "" || r.Status >= failedStatus }

const failedStatus = 400

// Bounds of a record's texts, in bytes: the texts of one client take no more of the log than others' calls do.
const (
	agentMost = 80
	wordsMost = 300
	nameMost  = 255
	idMost    = 128
	triesMost = 8
)
