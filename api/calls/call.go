// Package calls relays a call that a format has read. It admits the call, reserves its cost, passes it to the relay, copies or streams the
// answer to the client, and settles. It does the same for realtime conversations.
//
// It knows operations. A format passes it the required facts of a call: this package must not parse a body.
package calls

import (
	"context"
	"errors"
	"hash/crc32"
	"io"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/providers/pricing"
	"modelrelay/providers/relay"
	"modelrelay/providers/router"
	"modelrelay/storage/ledger"
	"modelrelay/workflows/tasks"
)

// Relay sends synchronous calls and conversations to a channel of the group.
type Relay interface {
	// Do returns after the first byte of the answer; the caller closes its body. Errors are *providers.Fault, within a *relay.AbandonedError
	// if the context ended after an upstream had received the whole call.
	Do(ctx context.Context, group string, call *providers.Call) (*relay.Answer, error)
	// Check returns a *providers.Fault if no channel could receive the call. It sends nothing.
	Check(ctx context.Context, group string, call *providers.Call) error
	// Stored requests an earlier answer from the channel that made it; the caller closes its body. Errors are *providers.Fault.
	Stored(ctx context.Context, group, token string, request providers.StoredRequest) (*relay.Answer, error)
	// Realtime returns after an upstream has accepted the conversation; the caller runs or closes it. Errors are *providers.Fault.
	Realtime(ctx context.Context, group string, call providers.RealtimeCall) (*relay.Session, error)
}

// Ledger records the usage of calls. Record never blocks.
type Ledger interface {
	Record(entry ledger.Entry)
}

// Options configure Calls, which close none of them.
type Options struct {
	Relay  Relay
	Router *router.Router
	Limits Limits
	Ledger Ledger
	// Prices are the prices of models; nil: calls cost nothing.
	Prices *pricing.List
	// Forbids returns the features that the tokens of a group may not request, as in providers.Forbiddable; nil: all are allowed.
	Forbids func(group string) []string
	// Priced describes the features that vendors bill in addition to tokens. Forbids can forbid them.
	Priced providers.Priced
	// Background starts the tasks of background calls.
	Background Background
}

// Calls relays calls and conversations. It is safe for concurrent use.
type Calls struct {
	options Options
	edge    *edge.Edge
	priced  priced
	sockets atomic.Int64 // open conversations

	buffers sync.Pool // of *[copyBuffer]byte
	// eventBuffers holds *[eventBuffer]byte.
	eventBuffers sync.Pool
}

// New returns the Calls for requests of the edge.
func New(e *edge.Edge, o Options) *Calls {
	return &Calls{options: o, edge: e, priced: newPriced(o.Priced)}
}

// Access returns the access of an operation whose handler is from Relayed.
func Access() edge.Access {
	return edge.Access{Permission: edge.RelayPermission, Meter: edge.MeterCalls, Reserves: true}
}

// Call is a call that a format has read from a request.
type Call struct {
	providers.Call

	// Unlisted is the fault of an enum value outside the contract, nil for none. It applies if no channel of the model accepts such values.
	Unlisted *providers.Fault
	// Output is the maximum of tokens of one answer, and N the number of answers or images; 0: the call does not specify it.
	Output, N int64
	// Sound is the length of the sound in the body, 0 if unknown.
	Sound time.Duration
	// Background: the upstream continues its work after its answer.
	Background bool
	// Task answers the create of a task in the client's format, for a call whose body requests the background (background: true); body is
	// the body of the request. nil for any other call.
	Task func(x *edge.Request, r *http.Request, started tasks.Task, body []byte) error
	// Raw is the body as the client sent it. Relayed sets it.
	Raw    []byte
	Events Events
	// Stage returns the body that is stored for a background call: it has stored items in place of references to them, since the items may be
	// deleted before the call is sent. nil: Raw.
	Stage func() []byte
	// Resolve returns the complete call of a body that refers to stored responses, once the call is admitted; nil: this call is complete.
	Resolve func() (*Call, error)
	// Rewrite wraps the body of an untranslated answer; nil: the body stays unchanged.
	Rewrite func(body io.ReadCloser) io.ReadCloser
}

// Reader parses the call of a request and its whole body.
type Reader func(x *edge.Request, r *http.Request, raw []byte) (*Call, error)

// Relayed returns the handler of an operation with calls that read parses. The operation must have the access Access.
func (c *Calls) Relayed(read Reader) edge.Handler {
	return c.Charged(func(x *edge.Request, r *http.Request, ch *Charge) error {
		raw, err := x.ReadBody(r)
		if err != nil {
			return err
		}
		call, err := read(x, r, raw)
		if err == nil && call.Resolve != nil {
			if err = ch.Admit(r.Context()); err == nil {
				call, err = call.Resolve()
			}
		}
		if err != nil {
			return err
		}
		call.Raw = raw
		return c.Do(x, r, ch, call)
	})
}

// Do relays one call and copies its answer to the client.
func (c *Calls) Do(x *edge.Request, r *http.Request, ch *Charge, call *Call) error {
	o := &x.Outcome
	if ch.run != nil {
		c.begin(x, ch, call)
	} else {
		if err := c.check(x, call); err != nil {
			return err
		}
		ch.size = sizeOf(call)
		if started, err := c.background(x, r, ch, call); started || err != nil {
			return err
		}
		if err := ch.Reserve(r.Context(), call.Model, ch.mayUse()); err != nil {
			return err
		}
	}
	if err := x.WhilePermitted(); err != nil { // the token may have been revoked while the body arrived
		return err
	}
	call.RequestID, call.Token, call.Key, call.Trail, o.Sent = x.ID, x.Caller.ID, x.Key(), &o.Trail, time.Now()
	answer, err := c.options.Relay.Do(r.Context(), x.Caller.Group, &call.Call)
	call.Body, call.Raw, call.Chain.Linked, call.Chain.Items = nil, nil, nil, nil // free the memory during a long answer
	if answer != nil {
		x.ShrinkBody(answer.Holds + ch.holds())
	} else {
		x.ReleaseBody()
	}
	if err != nil {
		ch.leave(r, err)
		if ch.run != nil {
			ch.report(err)
			return err
		}
		if kind := providers.AsFault(err).Kind; kind != providers.ModelNotFound && kind != providers.NotFound {
			ch.record(true) // names that clients invent must not grow the ledger
		}
		return err
	}
	if call.Rewrite != nil && answer.Translated == (providers.Endpoint{}) && answer.Header.Get("Content-Encoding") == "" {
		answer.Body = call.Rewrite(answer.Body)
		answer.Header.Del("Content-Length")
	}
	defer func() { _ = answer.Body.Close() }()
	o.Channel, o.Attempts, o.Provider, o.Stream, o.Answered = answer.Channel, answer.Attempts, answer.Provider, answer.Stream, time.Now()
	o.Translated = answer.Translated
	ch.spent = ch.unreported()
	if ch.run != nil {
		if answer.Translated == (providers.Endpoint{}) {
			ch.run.By = providers.KeyRef{Channel: answer.Channel, Fingerprint: answer.Key}
		}
		ch.run.Sent()
	}
	maps.Copy(x.Header(), answer.Header)
	if answer.Stream {
		err = c.copyStream(ch, r, answer, call.Events)
	} else {
		err = c.copyPlain(ch, r, answer, call.Endpoint.Operation == providers.StreamContent)
	}
	_ = answer.Body.Close() // the bytes that were read are counted
	if answer.Stream && ch.settled && err != nil && providers.AsFault(err).Kind == providers.Canceled {
		err = nil // clients disconnect after the last event, before the end of the stream
	}
	ch.left = err != nil && r.Context().Err() != nil
	ch.settle(answer, 0, err != nil)
	if ch.run != nil {
		ch.report(err)
	} else {
		ch.record(err != nil)
	}
	return finish(x, answer, err, errors.Is(err, errBroken))
}

// finish ends an answer; err is why it broke off, nil if it is complete. If the client has received nothing, finish returns err for the
// answer. Otherwise it closes the connection if cut is set, because the part could look like a complete answer.
func finish(x *edge.Request, answer *relay.Answer, err error, cut bool) error {
	switch {
	case err == nil:
		return nil
	case x.Status() == 0:
		for name := range answer.Header {
			x.Header().Del(name)
		}
		return err
	}
	x.Fault = providers.AsFault(err)
	if cut {
		panic(http.ErrAbortHandler)
	}
	return nil
}

// check replaces an alias by its public model, and returns a fault if the caller may not make the call.
func (c *Calls) check(x *edge.Request, call *Call) error {
	if err := CheckModel(call.Model); err != nil {
		return err
	}
	if public := c.options.Router.Public(call.Model); public != call.Model {
		call.Alias, call.Model = call.Model, public
	}
	if call.Unlisted != nil && c.refusesUnlisted(x, call) {
		return call.Unlisted
	}
	x.Outcome.Model = call.Model
	if !x.Caller.Allows(call.Model) {
		return ModelNotFound(call.Named())
	}
	x.Outcome.Operation = call.Endpoint.Operation
	return c.forbidden(x, call)
}

// refusesUnlisted reports whether channels serve the call's model, but none of them accepts unlisted enum values.
func (c *Calls) refusesUnlisted(x *edge.Request, call *Call) bool {
	request := router.Request{Group: x.Caller.Group, Model: call.Model, Endpoint: call.Endpoint}
	if !x.Caller.Allows(call.Model) || !c.options.Router.Serves(request) {
		return false
	}
	request.OpenValues = true
	return !c.options.Router.Serves(request)
}

// JSONCall returns the call of a checked JSON body, without a check of the model.
func JSONCall(endpoint providers.Endpoint, b *body.JSON) *Call {
	return &Call{
		Call: providers.Call{
			Endpoint: endpoint, Model: b.Text("model"), Stream: b.Flag("stream"), OpenValues: b.Unlisted != nil,
			Content: providers.Content{ContentType: "application/json", Body: b.Raw, ModelAt: b.Span("model")},
		},
		Unlisted: b.Unlisted,
	}
}

// KeepHeader returns the client's headers of these names, nil if there are none. The relay sends them upstream: they enable features of the
// vendor. The names must not include credentials or headers of an account.
func KeepHeader(r *http.Request, names ...string) http.Header {
	var header http.Header
	for _, name := range names {
		if values := r.Header[name]; len(values) > 0 {
			if header == nil {
				header = make(http.Header, len(names))
			}
			header[name] = values
		}
	}
	return header
}

// maxPrefix bounds the bytes of each part that Affinity uses. Calls that differ only after them share a channel.
const maxPrefix = 16 << 10

// Affinity returns a number that is equal for calls of one caller and model with the same beginning, which an upstream may have in its
// prompt cache. parts are the parts of the beginning.
func Affinity(x *edge.Request, model []byte, parts ...[]byte) uint64 {
	table := crc32.MakeTable(crc32.Castagnoli) // one instruction per eight bytes on common machines
	sum := crc32.Checksum([]byte(x.Caller.ID), table)
	sum = crc32.Update(sum, table, model)
	size := 0
	for _, part := range parts {
		part = part[:min(len(part), maxPrefix)]
		sum = crc32.Update(sum, table, part)
		size += len(part)
	}
	return uint64(sum)<<32 | uint64(size+1)
}

// DeclareContent declares the answer 200 with a body of the upstream, by media type. Types other than JSON, events and text are bytes.
func DeclareContent(description string, mediaTypes ...string) map[string]*huma.Response {
	content := make(map[string]*huma.MediaType, len(mediaTypes))
	for _, mediaType := range mediaTypes {
		schema := &huma.Schema{Type: huma.TypeString, Format: "binary"}
		switch mediaType {
		case "application/json":
			schema = &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
		case "text/event-stream", "text/plain", "text/vtt":
			schema = &huma.Schema{Type: huma.TypeString}
		}
		content[mediaType] = &huma.MediaType{Schema: schema}
	}
	return map[string]*huma.Response{"200": {Description: description, Content: content}}
}

// DeclareAnswer declares the answer 200 of a relayed call, with the body of the upstream.
func DeclareAnswer(description string, streams bool) map[string]*huma.Response {
	if streams {
		return DeclareContent(description, "application/json", "text/event-stream")
	}
	return DeclareContent(description, "application/json")
}
