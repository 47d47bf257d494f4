// Package calllog is the log of calls: their callers and channels, their outcome and cost, and never the text of prompts or answers. Redis
// has the newest calls in a stream, the archive has the history. Readers filter both by a search for bytes.
package calllog

import (
	"slices"
	"time"
)

// Record is one ended or refused call, conversation or create of a task.
type Record struct {
	// At is the arrival of the request.
	At time.Time
	Names
	Caller
	Requested
	Outcome
	Times
	Used
	// Tries are its requests to upstreams, in their order.
	Tries []Try
	// Skipped is the number of similar calls, refused within the same second, that have no record.
	Skipped int64
}

// Names are the ids by which a call is found.
type Names struct {
	ID string // of the request, made by the gateway
	// Client is the client's x-request-id, "" for none. It need not be unique, even among tokens.
	Client string
	// Trace is the trace's id, Task the id of the task that the call created; "" for none.
	Trace, Task string
}

// Caller is the token and client of a call.
type Caller struct {
	Token     string // id; "" without a valid token
	TokenName string `json:"name"`
	Agent     string // User-Agent
}

// Requested is the request.
type Requested struct {
	Operation string // operationId of the OpenAPI document
	Format    string
	Model     string // public name, as the client wrote it
	Stream    bool   // the answer was a stream of events
}

// Outcome is the end of a call.
type Outcome struct {
	Channel string // that answered; "": none
	Status  int
	// Fault is the kind of failure, Words the message to the client, Code the vendor's error code; "" for none.
	Fault, Words, Code string
	Bytes              int64 // of the answer
}

// Times are durations since the request arrived.
type Times struct {
	// Before ends when the call is sent to an upstream, First when the first byte of its answer is sent to the client; 0: never.
	Before, First time.Duration
	Took          time.Duration
}

// Used is the usage and cost of a call.
type Used struct {
	Input, Cached, Output int64 // tokens
	Images                int64
	Audio                 time.Duration
	Cost                  int64 // in billionths of the currency
	// Priced: the model has a price. Estimated: the usage is estimated, because the upstream did not report it.
	Priced, Estimated bool
}

// Try is one request to an upstream.
type Try struct {
	Channel string
	Key     string // fingerprint
	Fault   string // "": its answer began
	// Vendor is the upstream's id of the request; "" for none.
	Vendor string
	Took   time.Duration
}

// VendorID returns the last try's id from its upstream; "" for none.
func (r *Record) VendorID() string {
	for _, try := range slices.Backward(r.Tries) {
		if try.Vendor != "" {
			return try.Vendor
		}
	}
	return ""
}

// Failed reports whether the client got an error.
func (r *Record) Failed() bool { return r.Fault != "" || r.Status >= failedStatus }

const failedStatus = 400

// Bounds of a record's texts, in bytes, so that a client cannot fill the log with long texts. triesMost bounds the tries.
const (
	agentMost = 80
	wordsMost = 300
	nameMost  = 255
	idMost    = 128
	triesMost = 8
)
