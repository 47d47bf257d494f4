// Package calls carries a call from a format that has read it to an upstream and its answer back: it admits the call, reserves what it
// may cost, hands it to the relay, copies or streams the answer, and settles. Conversations go the same way.
//
// It knows operations, and of a format what its calls say. It must not read a body.
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

// Relay sends synchronous calls, and conversations, to a channel of the group.
type Relay interface {
	// Do returns once the first byte of the answer has come; the caller closes its body. Errors are *providers.Fault, held by
	// a *relay.Left where the context ended when an upstream had all of the call.
	Do(ctx context.Context, group string, call providers.Call) (*relay.Answer, error)
	// Check returns the *providers.Fault of a call that no channel could be sent, and sends nothing.
	Check(ctx context.Context, group string, call providers.Call) error
	// Stored asks the channel that made an earlier answer for it; the caller closes its body. Errors are *providers.Fault.
	Stored(ctx context.Context, group, token string, request providers.StoredRequest) (*relay.Answer, error)
	// Realtime returns once an upstream has taken the conversation; the caller runs or closes it. Errors are
	// *providers.Fault.
	Realtime(ctx context.Context, group string, call providers.RealtimeCall) (*relay.Session, error)
}

// Ledger takes what calls used. Record never blocks.
type Ledger interface {
	Record(entry ledger.Entry)
}

// Options are what Calls work with. They stay the caller's.
type Options struct {
	Relay  Relay
	Router *router.Router
	Limits Limits
	Ledger Ledger
	// Prices are what calls cost; nil charges nothing.
	Prices *pricing.List
	// Forbids says what the tokens of a group may not ask for, in the words of providers.Forbiddable; nil: nothing.
	Forbids func(group string) []string
	// Priced is what the vendors bill next to tokens, which Forbids is about.
	Priced providers.Priced
	// Background starts the tasks of background calls; nil: there are none.
	Background Background
}

// Calls relays calls and conversations. It is safe for concurrent use.
type Calls struct {
	options Options
	edge    *edge.Edge
	priced  priced
	sockets atomic.Int64 // open conversations

	buffers sync.Pool // of *[copyBuffer]byte
	// eventBuffers are of *[eventBuffer]byte.
	eventBuffers sync.Pool
}

// New makes the calls of an edge's requests.
func New(e *edge.Edge, o Options) *Calls {
	return &Calls{options: o, edge: e, priced: newPriced(o.Priced)}
}

// Access is that of an operation of Relayed.
func Access() edge.Access {
	return edge.Access{Permission: edge.RelayPermission, Meter: edge.MeterCalls, Reserves: true}
}

// Call is one call as a format reads it from a request.
type Call struct {
	providers.Call

	// Unlisted is a value of the body that the contract does not list, nil for none: the call is refused where no channel is
	// open to such.
	Unlisted *providers.Fault
	// Output is the most tokens of one answer that the call asks for, and N how many answers, or images; 0: it does not say.
	Output, N int64
	// Sound is how long the sound in the body lasts, 0 where that is not known.
	Sound time.Duration
	// Background: the upstream works on behind its answer.
	Background bool
	// Task answers the create of a call that the client requests in the background in the words of its format, as with background: true, with
	// the body of the request; nil for any other call.
	Task func(x *edge.Request, r *http.Request, started tasks.Task, body []byte) error
	// Raw is the body as the client sent it. Relayed sets it.
	Raw    []byte
	Events Events
	// Resolve returns the call of a body that names stored responses, in place of this one; nil: the call is complete. It reads a store, so
	// the call is admitted first.
	Resolve func() (Call, error)
	// Rewrite wraps the body of an answer in the client's own format; nil: it stays as it is.
	Rewrite func(body io.ReadCloser) io.ReadCloser
}

// Reader reads a call from a request and its whole body.
type Reader func(x *edge.Request, r *http.Request, raw []byte) (Call, error)

// Relayed returns the handler of an operation whose calls read reads. Its Access is Access.
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

// Do relays one call and copies its answer out.
func (c *Calls) Do(x *edge.Request, r *http.Request, ch *Charge, call Call) error {
	o := &x.Outcome
	if ch.run != nil {
		c.begin(x, ch, &call)
	} else {
		if err := c.check(x, &call); err != nil {
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
	if err := x.WhilePermitted(); err != nil { // since the body began to come
		return err
	}
	call.RequestID, call.Token, call.Key, call.Trail, o.Sent = x.ID, x.Caller.ID, x.Key(), &o.Trail, time.Now()
	answer, err := c.options.Relay.Do(r.Context(), x.Caller.Group, call.Call)
	call.Body, call.Raw, call.Chain.Linked = nil, nil, nil // not used any more, however long the answer takes
	if answer != nil {
		x.ShrinkBody(answer.Holds)
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
			ch.record(true) // names of a client's own making would grow the ledger
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
	ch.spent = ch.unsaid()
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
	_ = answer.Body.Close() // what was read has been counted
	if answer.Stream && ch.settled && err != nil && providers.AsFault(err).Kind == providers.Canceled {
		err = nil // clients leave behind a stream's last event, before its end
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

// finish ends an answer that err broke off; nil: it is whole. A client that has seen nothing of it is answered err. Else cut ends the
// connection, where the client could take a part for the whole.
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

// check makes the call one of a public model, and refuses one that its caller may not make.
func (c *Calls) check(x *edge.Request, call *Call) error {
	if err := CheckModel(call.Model); err != nil {
		return err
	}
	if public := c.options.Router.Public(call.Model); public != call.Model {
		call.Asked, call.Model = call.Model, public
	}
	if call.Unlisted != nil && c.refusesUnlisted(x, *call) {
		return call.Unlisted
	}
	x.Outcome.Model = call.Model
	if !x.Caller.Allows(call.Model) {
		return ModelNotFound(call.Named())
	}
	x.Outcome.Operation = call.Endpoint.Operation
	return c.forbidden(x, *call)
}

// refusesUnlisted reports whether there are channels for the call's model and none of them takes values that are not listed.
func (c *Calls) refusesUnlisted(x *edge.Request, call Call) bool {
	want := router.Request{Group: x.Caller.Group, Model: call.Model, Endpoint: call.Endpoint}
	if !x.Caller.Allows(call.Model) || !c.options.Router.Serves(want) {
		return false
	}
	want.OpenValues = true
	return !c.options.Router.Serves(want)
}

// JSONCall is the call of a checked JSON body, whatever that says of the model.
func JSONCall(endpoint providers.Endpoint, b *body.JSON) Call {
	return Call{
		Call: providers.Call{
			Endpoint: endpoint, Model: b.Text("model"), Stream: b.Flag("stream"), OpenValues: b.Unlisted != nil,
			Content: providers.Content{ContentType: "application/json", Body: b.Raw, ModelAt: b.Span("model")},
		},
		Unlisted: b.Unlisted,
	}
}

// KeepHeader picks the client's headers of these names, which may travel upstream with its call: what opts into features.
// Credentials and the client's own account never do. It is nil where the client sent none of them.
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

// maxPrefix bounds what is looked at of each part of a beginning, in bytes. What differs only after it shares a channel.
const maxPrefix = 16 << 10

// Affinity is the number that calls of a model share whose beginning, made of parts, an upstream may still have in its cache.
// Callers share none.
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

// DeclareContent declares the 200 of a relayed call whose body is the upstream's, by media type: JSON objects, event
// streams and text as such, the rest as bytes.
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

// DeclareAnswer declares the 200 of a relayed call, whose body is the upstream's.
func DeclareAnswer(description string, streams bool) map[string]*huma.Response {
	if streams {
		return DeclareContent(description, "application/json", "text/event-stream")
	}
	return DeclareContent(description, "application/json")
}
