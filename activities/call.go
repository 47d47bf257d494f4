package activities

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"modelrelay/providers"
)

// StagedCall is a call as its create received and checked it.
type StagedCall struct {
	Method string `json:"method"`
	// Path is the path as the client called it, without "/async". Query is the query without a credential.
	Path  string `json:"path"`
	Query string `json:"query,omitempty"`
	// Header holds the client's headers that a call reads, never a credential.
	Header http.Header `json:"header,omitempty"`
	// Body is the archive object of the body, and Size its length.
	Body string `json:"body"`
	Size int64  `json:"size"`
	// Chain is the response from which the call continues, as its create found it; nil for none.
	Chain *StagedChain `json:"chain,omitempty"`
	// Format is the client's format. Stream: the client asked for a stream of events.
	Format providers.Format `json:"format"`
	Stream bool             `json:"stream,omitempty"`
	// Array: the client's answer is one JSON array with the data of the stream's events.
	Array bool `json:"array,omitempty"`
	// Hosted: only the vendor can run the call in the background.
	Hosted bool `json:"hosted,omitempty"`
	// Amount is the maximal cost of the call, in billionths of the currency, and Budget the token's budget, in its units.
	Amount int64   `json:"amount,omitempty"`
	Budget float64 `json:"budget,omitempty"`
	// WebhookURL is the webhook of the create, "" for the token's, or if the stored request has it.
	WebhookURL string `json:"webhook_url,omitempty"`
}

// StagedChain is a response from which a call continues. It may be deleted before the call is sent.
type StagedChain struct {
	// Previous is its id. Upstream is the upstream's id, and Channel and Key have created it; "" if no upstream stores it.
	Previous string `json:"previous"`
	Upstream string `json:"upstream,omitempty"`
	Channel  string `json:"channel,omitempty"`
	Key      string `json:"key,omitempty"`
	// Items is the archive object of its items, and Size its length.
	Items string `json:"items"`
	Size  int64  `json:"size"`
}

// Operation returns the method and the path.
func (c StagedCall) Operation() string { return c.Method + " " + c.Path }

// Answered is the end of a call.
type Answered struct {
	Status int         `json:"status,omitempty"`
	Header http.Header `json:"header,omitempty"`
	// Output is the archived body; nil for none.
	Output *Output `json:"output,omitempty"`
	Events int64   `json:"events,omitempty"`
	// Failure is nil for a completed call.
	Failure *providers.VideoFailure `json:"failure,omitempty"`
	// Cancelled: the call was cancelled. Unknown: the upstream may have answered, and the answer is lost.
	Cancelled bool `json:"cancelled,omitempty"`
	Unknown   bool `json:"unknown,omitempty"`
	CallProgress
	// Usage is the usage of the call. Cost is its cost, including lost attempts, in billionths of the currency.
	Usage providers.Usage `json:"usage,omitzero"`
	Cost  int64           `json:"cost,omitempty"`
	// Priced: the model has a price.
	Priced bool `json:"priced,omitempty"`
	// Event is the last word of the type of the task's event, if it is not the state.
	Event string `json:"event,omitempty"`
	// Copy is the ticket of the answer if the vendor stores it; else nil.
	Copy *CallTicket `json:"copy,omitempty"`
}

// CallProgress is the heartbeat of Relay.
type CallProgress struct {
	Stage CallStage `json:"stage,omitempty"`
	// Attempts is the number of upstream requests, Channel the channel of the last one. StartedAt is the begin of the first one.
	Attempts  int       `json:"attempts,omitempty"`
	Channel   string    `json:"channel,omitempty"`
	StartedAt time.Time `json:"started_at,omitzero"`
	// Position is the position of a call that waits for a slot, in the line of its worker, from 1; 0: it does not wait for one.
	Position int `json:"queue_position,omitempty"`
	// Lost is the number of attempts whose answer was lost.
	Lost int `json:"lost,omitempty"`
	// Unsent are the tries of Relay whose claim had no answer from the archive. Such a try sends nothing, but may have the claim.
	Unsent []int32 `json:"unsent,omitempty"`
	// Ticket is the ticket of a running call that its vendor runs; else nil. GoneSince is the time at which its channel was first missing.
	Ticket    *CallTicket `json:"ticket,omitempty"`
	GoneSince time.Time   `json:"gone_since,omitzero"`
}

// CallStage is the current step of a call.
type CallStage string

// The stages, in order.
const (
	StageWaiting   CallStage = "waiting"
	StageSending   CallStage = "sending"
	StageAnswering CallStage = "answering"
	StageStoring   CallStage = "storing"
)

// Caller serves a call as the API does for a client, for the token of the run. *api.Server implements it.
type Caller interface {
	ServeCall(w http.ResponseWriter, r *http.Request, run *CallRun)
	// FaultEvents returns the events that end a call's failed stream after n events, in the call's format.
	FaultEvents(call StagedCall, fault *providers.Fault, n int64) []byte
}

// CallRun is a background call while the server serves it.
type CallRun struct {
	// TaskID is the task, Created the time of its create, and Token the stable id of its token.
	TaskID  string
	Created time.Time
	Token   string
	// Chain is the response from which the call continues, and Items reads its items; nil for none.
	Chain *StagedChain
	Items func(ctx context.Context) ([]byte, error)
	// Begin is called before each request to an upstream. An error ends the call without the request.
	Begin func(ctx context.Context, channel string) error
	// Sent reports that the upstream's answer has begun.
	Sent func()
	// Ticketing is the Ticketing of the upstream's call.
	Ticketing *providers.Ticketing
	// Gather is the Gather of the upstream's call.
	Gather func(ctx context.Context, answer io.ReadCloser, document int) io.ReadCloser

	// Fault is the fault of the call, nil for none. The server sets these four.
	Fault  *providers.Fault
	Usage  providers.Usage
	Cost   int64
	Priced bool
	// Failure is the failure in an answer with status 2xx. Event is the last word of the event's type, if it is not the state. The server
	// sets both.
	Failure *providers.VideoFailure
	Event   string
	// By is the channel and key that answered in the client's format, Copy the ticket of an answer that the vendor stores. The server sets
	// both.
	By   providers.KeyRef
	Copy *CallTicket
	// Holds is the number of bytes of the request that the server has in memory until the end. The server sets it.
	Holds int
	// Earlier are the items of the stored response that the call continues from, with commas between them; nil for none, and if they are too
	// many to be stored again. The server sets them.
	Earlier []byte
}

type callRunKey struct{}

// WithCallRun returns the context of a request that serves a background call.
func WithCallRun(ctx context.Context, run *CallRun) context.Context {
	return context.WithValue(ctx, callRunKey{}, run)
}

// CallRunOf returns the background call that a request serves; nil for a client's own request.
func CallRunOf(ctx context.Context) *CallRun {
	run, _ := ctx.Value(callRunKey{}).(*CallRun)
	return run
}

// RelayInput is a background call.
type RelayInput struct {
	TaskID      string `json:"task_id"`
	Incarnation string `json:"incarnation"`
	Token       string `json:"token"`
	// Weight and Lane determine the token's share of the worker's slots.
	Weight      int        `json:"weight,omitempty"`
	Lane        string     `json:"lane,omitempty"`
	Model       string     `json:"model"`
	Call        StagedCall `json:"call"`
	Deadline    time.Time  `json:"deadline"`
	Reservation string     `json:"reservation"`
	Entry       Entry      `json:"entry"`
	// Expires is the expiry date in the key of the answer's object.
	Expires time.Time `json:"expires"`
}

// claim returns the archive key of the right to send the call for the n-th time.
func (in RelayInput) claim(n int) string {
	return SubmitInput{TaskID: in.TaskID, Incarnation: in.Incarnation, Attempt: n}.BegunObject()
}

// output returns the archive key of an answer with the status under the n-th claim. Each claim has its own answer, because a worker may
// continue although another one has the next claim.
func (in RelayInput) output(status string, n int) string {
	key := OutputPrefix(in.TaskID, in.Expires) + "answer-" + status
	if n > 1 {
		key += "-" + strconv.Itoa(n)
	}
	return key
}

func (in RelayInput) events() string {
	return EventsFolder(IncarnationPrefix(in.TaskID, in.Incarnation))
}

// EventsFolder returns the archive folder of a call's events, within the folder of its staged objects.
func EventsFolder(staged string) string { return staged + "events/" }

// answer returns the archive key of the record of the answer under the n-th claim.
func (in RelayInput) answer(n int) string {
	return SubmitInput{TaskID: in.TaskID, Incarnation: in.Incarnation, Attempt: n - 1}.TicketObject()
}
