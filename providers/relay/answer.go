package relay

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/health"
	"modelrelay/providers/relay/usage"
	"modelrelay/providers/router"
	"modelrelay/providers/translate"
	"modelrelay/providers/upstream"
)

// Answer is an upstream's 2xx answer whose first byte has come.
type Answer struct {
	Status int
	// Header has the upstream's headers that may reach the client: those that describe the body.
	Header http.Header
	// Body returns the bytes as they arrive. Its errors are *providers.Fault: Timeout if no byte arrived in time, Upstream if the upstream
	// broke off, Canceled if the caller's context ended, or that context's own fault. Only one goroutine may read it. Close ends the
	// upstream request and may be called more than once.
	Body io.ReadCloser
	// Stream: Body is a stream of server-sent events.
	Stream bool

	Channel string
	// Key is the fingerprint of the channel's key.
	Key string
	// RequestID is the upstream's id of the request, "" for none.
	RequestID string
	// Provider is the vendor's name in the OpenTelemetry conventions.
	Provider string
	// Attempts is the number of requests that the call took.
	Attempts int
	// Holds is the number of bytes of the call's body that the answer holds until its end.
	Holds int
	// Translated is the upstream's endpoint if the answer was translated from another format, otherwise zero.
	Translated providers.Endpoint

	body       *body
	translated *translate.Answer // nil: not translated
}

// newAnswer returns a channel's answer without its body and its key.
func (r *Relay) newAnswer(channel, vendor string, resp *http.Response) *Answer {
	return &Answer{
		Status: resp.StatusCode, Header: passed(resp.Header), Stream: isStream(resp.Header), RequestID: upstream.RequestID(resp.Header),
		Channel: channel, Provider: r.catalog[vendor].Convention(),
	}
}

// Settled reports whether the answer's usage is final. In a stream, the last event contains it.
func (a *Answer) Settled() bool {
	if a.translated != nil {
		return a.translated.Ended()
	}
	_, counted := a.Usage()
	return counted
}

// Usage returns the answer's usage, after Body was read to its end or closed. It reports false if no tokens were counted; images and
// seconds may be counted nevertheless.
func (a *Answer) Usage() (providers.Usage, bool) {
	if a.body == nil || a.body.counter == nil {
		return providers.Usage{}, false
	}
	return a.body.counter.Usage()
}

// passed returns only the headers that describe the body. An upstream's cookies, limits and ids do not concern the client.
func passed(header http.Header) http.Header {
	kept := make(http.Header, 4)
	for _, name := range []string{"Content-Type", "Content-Length", "Content-Encoding", "Content-Disposition"} {
		if values := header[name]; len(values) > 0 {
			kept[name] = values
		}
	}
	return kept
}

// cancelAfter cancels an upstream request after a wait.
func cancelAfter(wait time.Duration, cancel context.CancelCauseFunc) *time.Timer {
	return time.AfterFunc(wait, func() {
		cancel(&providers.Fault{Kind: providers.Timeout, Message: "The upstream did not answer in time.", Blame: providers.BlameChannel})
	})
}

// peek is the size in bytes of the first read, which waits for the first byte. The client receives its bytes separately.
const peek = 512

// counter returns an answer's usage so far: it is a usage.Scanner of the upstream's bytes, or the translation, which reads them anyway.
// It reports false if no tokens were counted.
type counter interface {
	Usage() (providers.Usage, bool)
}

// body is an answer's body on its way to the client.
type body struct {
	upstream io.ReadCloser
	clock    *time.Timer // cancels the request
	idle     time.Duration
	cancel   context.CancelCauseFunc
	// caller is the caller's context. sent is that of the upstream request; its cause is the reason of its cancellation.
	caller, sent context.Context //nolint:containedctx // they live within one attempt, as the body does

	inFlight health.InFlight // until the body ends
	span     *upstream.Span
	counter  counter        // nil: nothing is counted
	scanner  *usage.Scanner // the counter, if Read passes the bytes to it

	peeked [peek]byte
	unread []byte // the part of peeked that was not returned yet
	err    error  // ends the body after unread

	mayBeEmpty bool // an answer without a byte is complete

	ends *usage.Ends // nil of an answer that may end anywhere
	// router receives, once, the fault of an answer of the pick that began and did not end; nil before the answer began.
	router *router.Router
	pick   router.Pick
}

// newBody returns the body of an answer before its request, which has the context sent.
func newBody(ctx, sent context.Context, cancel context.CancelCauseFunc, waits waits) *body {
	return &body{clock: cancelAfter(waits.firstByte, cancel), idle: waits.idle, cancel: cancel, caller: ctx, sent: sent}
}

// refused ends the body of a request without an answer. It returns the fault without the key.
func (b *body) refused(err error, key providers.Secret) *providers.Fault {
	b.clock.Stop()
	b.inFlight.End()
	b.cancel(nil)
	fault := providers.AsFault(err)
	scrub(fault, key)
	return fault
}

// first waits for the first byte. An answer without one is broken unless mayBeEmpty.
func (b *body) first() *providers.Fault {
	for {
		n, err := b.upstream.Read(b.peeked[:])
		switch {
		case n > 0:
			b.clock.Stop()
			b.unread = b.peeked[:n]
			if err != nil {
				b.err = b.ending(err)
			}
			return nil
		case errors.Is(err, io.EOF) && b.mayBeEmpty:
			b.err = b.ending(err)
			return nil
		case errors.Is(err, io.EOF):
			return &providers.Fault{Kind: providers.Upstream, Message: "The upstream sent an empty answer.", Blame: providers.BlameChannel}
		case err != nil:
			return providers.AsFault(b.ending(err))
		}
	}
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.next(p)
	if b.scanner != nil {
		b.scanner.Observe(p[:n])
		if err != nil {
			b.scanner.End()
		}
	}
	return n, err
}

// hiddenBody is a body without the events that only count.
type hiddenBody struct {
	*usage.Hider

	body *body
}

// Close implements io.Closer.
func (b *hiddenBody) Close() error { return b.body.Close() }

// next reads the upstream's bytes as they are. A stream that ends before its last event is broken.
func (b *body) next(p []byte) (int, error) {
	n, err := b.read(p)
	if b.ends != nil {
		b.ends.Observe(p[:n])
		if errors.Is(err, io.EOF) && !b.ends.Seen() {
			err = &providers.Fault{
				Kind: providers.Upstream, Message: "The upstream ended its answer without finishing it.", Blame: providers.BlameChannel,
			}
			b.err = err
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.fail(providers.AsFault(err))
	}
	return n, err
}

// fail reports an answer that did not end as a fault of the channel.
func (b *body) fail(fault *providers.Fault) {
	if b.router != nil && fault.Kind == providers.Upstream && fault.Blame == providers.BlameChannel {
		b.router.Report(b.pick, fault)
		b.router = nil
	}
}

func (b *body) read(p []byte) (int, error) {
	if len(b.unread) > 0 {
		n := copy(p, b.unread)
		b.unread = b.unread[n:]
		return n, nil
	}
	if b.err != nil || len(p) == 0 {
		return 0, b.err
	}
	if err := b.sent.Err(); err != nil { // the answer ends with the request, even if the connection holds more bytes
		b.err = b.ending(err)
		return 0, b.err
	}
	b.clock.Reset(b.idle)
	n, err := b.upstream.Read(p)
	b.clock.Stop()
	if err != nil {
		b.err = b.ending(err)
	}
	return n, b.err
}

// ending converts the error that ended the upstream's body to that of the answer, and releases the request.
func (b *body) ending(err error) error {
	b.clock.Stop()
	b.inFlight.End()
	defer b.cancel(nil)
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	var fault *providers.Fault
	switch {
	case errors.As(context.Cause(b.sent), &fault):
		return fault
	case b.caller.Err() != nil:
		return &providers.Fault{Kind: providers.Canceled, Message: "The request was canceled.", Err: b.caller.Err()}
	case errors.As(err, &fault) && fault.Kind == providers.Internal:
		return fault // the gateway failed to hold the answer, not the upstream to send it
	default:
		return &providers.Fault{
			Kind: providers.Upstream, Message: "The upstream ended its answer early.", Blame: providers.BlameChannel, Err: err,
		}
	}
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.clock.Stop()
	b.inFlight.End()
	b.trace()
	b.cancel(nil)
	return b.upstream.Close()
}

// trace ends the attempt's span.
func (b *body) trace() {
	if b.span == nil {
		return
	}
	if b.counter != nil {
		if used, counted := b.counter.Usage(); counted {
			b.span.Used(used)
		}
	}
	var fault *providers.Fault
	switch {
	case b.err != nil && !errors.Is(b.err, io.EOF):
		fault = providers.AsFault(b.err)
	case b.err == nil && b.caller.Err() != nil:
		fault = providers.AsFault(b.caller.Err())
	}
	b.span.End(fault)
}

// maxLogged is how many bytes of an upstream's answer a log line repeats.
const maxLogged = 512

func clip(text []byte) string {
	return string(text[:min(len(text), maxLogged)])
}

// scrub removes the key from an upstream's answer, which may repeat it.
func scrub(fault *providers.Fault, key providers.Secret) {
	if fault.Upstream != nil && key != "" {
		fault.Upstream.Body = bytes.ReplaceAll(fault.Upstream.Body, []byte(key.Reveal()), []byte(key.String()))
	}
}
