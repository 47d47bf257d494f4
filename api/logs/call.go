// Package logs serves the log of calls and the sums of traffic: to operators all of it, to a token its own calls.
//
// It reads stores and names no format. It must not check permissions: the groups of its operations do.
package logs

import (
	"strconv"
	"strings"
	"time"

	"modelrelay/providers/pricing"
	"modelrelay/storage/calllog"
)

// Call is a call of the log in JSON: its ids and caller, its request, its end, and what it used.
type Call struct {
	Object string    `json:"object" enum:"call"`
	At     time.Time `json:"at" doc:"When the request arrived"`

	ID        string `json:"id" doc:"The request's id. Its answer has it in x-request-id, unless the client sent a value of its own"`
	ClientID  string `json:"client_request_id,omitempty" doc:"The value that the client sent as x-request-id. Calls of several tokens may have it"`
	TraceID   string `json:"trace_id,omitempty" doc:"Id of the trace"`
	VendorID  string `json:"vendor_request_id,omitempty" doc:"The upstream's id of the request"`
	TaskID    string `json:"task_id,omitempty" doc:"The task that the call created, or of which it is a request to upstreams"`
	Token     string `json:"token,omitempty" doc:"Token id; absent if no token was accepted"`
	TokenName string `json:"token_name,omitempty" doc:"Token name"`
	UserAgent string `json:"user_agent,omitempty" doc:"First 80 bytes of the header User-Agent"`

	Operation string `json:"operation" doc:"The operation's id in this document"`
	Format    string `json:"format" doc:"Format of the client"`
	Model     string `json:"model,omitempty" doc:"Public name; absent if the gateway refused the call before it read the name"`
	Stream    bool   `json:"stream" doc:"The answer is a stream of events"`

	Channel   string   `json:"channel,omitempty" doc:"The channel that answered"`
	Status    int      `json:"status" doc:"499: the client disconnected before the end"`
	Fault     string   `json:"fault,omitempty" doc:"Kind of fault; absent if the call did not fail"`
	Message   string   `json:"message,omitempty" doc:"Message of the fault, as the client received it"`
	Code      string   `json:"code,omitempty" doc:"The upstream's code of the fault"`
	BeforeMS  float64  `json:"before_ms,omitempty" doc:"Milliseconds until the request to the upstream began: reading, checks, limits"`
	FirstByte *float64 `json:"first_byte_ms" doc:"Milliseconds until the client received the first byte of the upstream's answer; null: there was none"`
	MS        float64  `json:"ms" doc:"Milliseconds until the end"`
	Bytes     int64    `json:"bytes" doc:"Bytes of the answer"`

	InputTokens  int64         `json:"input_tokens" doc:"Input tokens, cached ones included"`
	CachedTokens int64         `json:"cached_tokens" doc:"Input tokens that the vendor served from its cache"`
	OutputTokens int64         `json:"output_tokens" doc:"Tokens of the answer"`
	Images       int64         `json:"images" doc:"Images made"`
	AudioSeconds float64       `json:"audio_seconds" doc:"Seconds of sound"`
	Cost         pricing.Money `json:"cost" doc:"In the currency of the prices"`
	Priced       bool          `json:"priced" doc:"The model had a price"`
	Estimated    bool          `json:"estimated" doc:"The upstream did not report what was used"`

	Attempts []Attempt `json:"attempts" nullable:"false" doc:"The call's requests to upstreams, in order"`
	Skipped  int64     `json:"skipped,omitempty" doc:"Calls of the same token that were refused in the same second and have no record of their own"`
	Cursor   string    `json:"cursor" doc:"The call's position in the log"`
	Others   []string  `json:"other_ids,omitempty" doc:"If the call was found by the client's value: ids of other calls with that value, newest first, at most 20"`
}

// Attempt is one request to an upstream.
type Attempt struct {
	Channel  string  `json:"channel,omitempty"`
	Key      string  `json:"key,omitempty" doc:"Fingerprint of the channel's key"`
	Outcome  string  `json:"outcome" doc:"ok, or the kind of fault"`
	MS       float64 `json:"ms"`
	VendorID string  `json:"vendor_request_id,omitempty"`
}

const outcomeOK = "ok"

// NewCall renders a call for operators.
func NewCall(c calllog.Call) Call {
	call := Call{
		Object: "call", At: c.At, ID: c.ID, ClientID: c.Client, TraceID: c.Trace, VendorID: c.VendorID(), TaskID: c.Task, Token: c.Token,
		TokenName: c.TokenName, UserAgent: c.Agent, Operation: c.Operation, Format: c.Format, Model: c.Model, Stream: c.Stream,
		Channel: c.Channel, Status: c.Status, Fault: c.Fault, Message: c.Words, Code: c.Code, BeforeMS: inMS(c.Before), MS: inMS(c.Took),
		Bytes: c.Bytes, InputTokens: c.Input, CachedTokens: c.Cached, OutputTokens: c.Output, Images: c.Images,
		AudioSeconds: c.Audio.Seconds(), Cost: pricing.Money(c.Cost), Priced: c.Priced, Estimated: c.Estimated,
		Attempts: make([]Attempt, len(c.Tries)), Skipped: c.Skipped, Cursor: c.Place,
	}
	if c.First > 0 {
		call.FirstByte = new(inMS(c.First))
	}
	for i, t := range c.Tries {
		call.Attempts[i] = Attempt{Channel: t.Channel, Key: t.Key, Outcome: outcomeOK, MS: inMS(t.Took), VendorID: t.Vendor}
		if t.Fault != "" {
			call.Attempts[i].Outcome = t.Fault
		}
	}
	return call
}

// Own returns the call for its token: without the deployment's channels, keys and vendors.
func (c Call) Own() Call {
	c.VendorID, c.Channel, c.Code = "", "", ""
	attempts := make([]Attempt, len(c.Attempts))
	for i, attempt := range c.Attempts {
		attempts[i] = Attempt{Outcome: attempt.Outcome, MS: attempt.MS}
	}
	c.Attempts = attempts
	return c
}

func inMS(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Head returns the names of the columns of Cells.
func Head() []string {
	return strings.Fields("at id client_request_id trace_id vendor_request_id task_id token token_name operation format model stream channel status fault message code " +
		"before_ms first_byte_ms ms input_tokens cached_tokens output_tokens images audio_seconds cost estimated bytes user_agent attempts")
}

// Cells returns the call as texts, in the order of Head.
func (c Call) Cells() []string {
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	whole := func(n int64) string { return strconv.FormatInt(n, 10) }
	first := ""
	if c.FirstByte != nil {
		first = number(*c.FirstByte)
	}
	attempts := make([]string, len(c.Attempts))
	for i, a := range c.Attempts {
		attempts[i] = strings.TrimSpace(a.Channel + " " + a.Outcome + " " + number(a.MS))
	}
	return []string{
		c.At.UTC().Format("2006-01-02T15:04:05.000Z"), c.ID, c.ClientID, c.TraceID, c.VendorID, c.TaskID, c.Token, c.TokenName, c.Operation,
		c.Format, c.Model,
		strconv.FormatBool(c.Stream), c.Channel, strconv.Itoa(c.Status), c.Fault, c.Message, c.Code, number(c.BeforeMS), first, number(c.MS),
		whole(c.InputTokens), whole(c.CachedTokens), whole(c.OutputTokens), whole(c.Images), number(c.AudioSeconds), c.Cost.String(),
		strconv.FormatBool(c.Estimated), whole(c.Bytes), c.UserAgent, strings.Join(attempts, "; "),
	}
}
