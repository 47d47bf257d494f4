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
	// Body gives the bytes as they come. Its errors are *providers.Fault: Timeout when no byte came in time, Upstream
	// when the upstream broke off, Canceled when the caller's context ended, or the fault it ended with. Only one goroutine may read it. Close
	// ends the upstream request and may be called more than once.
	Body io.ReadCloser
	// Stream: Body is a stream of server-sent events.
	Stream bool

	Channel, Vendor, UpstreamModel string
	// Key is the fingerprint of the channel's key.
	Key string
	// RequestID is what the upstream calls the request, "" where it does not say.
	RequestID string
	// Provider is what telemetry's conventions call the vendor.
	Provider string
	// Attempts is how many requests the call took.
	Attempts int
	// Holds is the number of bytes of the call's body that the answer holds until its end.
	Holds int
	// Translated is the upstream's endpoint where the answer was made of another format's; zero where it is as it came.
	Translated providers.Endpoint

	body       *body
	translated *translate.Answer // nil where it is as it came
}

// Settled reports whether what the answer used is known permanently, in a stream whose last event says it.
func (a *Answer) Settled() bool {
	if a.translated != nil {
		return a.translated.Over()
	}
	_, counted := a.Usage()
	return counted
}

// Usage is what the answer counted, once Body was read to its end or closed; false when it counted no tokens so far, as
// an Answer made by hand. Images and seconds may be counted all the same.
func (a *Answer) Usage() (providers.Usage, bool) {
	if !a.Counts() {
		return providers.Usage{}, false
	}
	return a.body.counter.Usage()
}

// Counts reports whether answers of this kind say how many tokens they took.
func (a *Answer) Counts() bool { return a.body != nil && a.body.counter != nil }

// passed copies the headers that describe the body, and no other: an upstream's cookies, limits and ids are not the
// client's business.
func passed(header http.Header) http.Header {
	kept := make(http.Header, 4)
	for _, name := range []string{"Content-Type", "Content-Length", "Content-Encoding", "Content-Disposition"} {
		if values := header[name]; len(values) > 0 {
			kept[name] = values
		}
	}
	return kept
}

// watch cancels an upstream request when a wait takes too long.
type watch struct{ timer *time.Timer }

func newWatch(cancel context.CancelCauseFunc, wait time.Duration) watch {
	return watch{time.AfterFunc(wait, func() {
		cancel(&providers.Fault{Kind: providers.Timeout, Message: "The upstream did not answer in time.", Blame: providers.BlameChannel})
	})}
}

func (w watch) restart(wait time.Duration) { w.timer.Reset(wait) }

func (w watch) stop() { w.timer.Stop() }

// peek is how many bytes the wait for the first one takes at most. What the upstream has sent by then is handed on by
// itself, so it is about one event.
const peek = 512

// counter is what knows what an answer used so far: a usage.Scanner of the upstream's bytes, or the translation that reads
// them anyway. It is false when no tokens were counted.
type counter interface {
	Usage() (providers.Usage, bool)
}

// body is an answer's body on its way to the client.
type body struct {
	upstream io.ReadCloser
	clock    watch
	idle     time.Duration
	cancel   context.CancelCauseFunc
	// caller is the caller's context, and sent the upstream request's, whose cause says why it was cancelled.
	caller, sent context.Context //nolint:containedctx // they live within one attempt, as the body does

	inFlight health.InFlight // until the body ends
	span     *upstream.Span
	counter  counter        // nil where nothing is counted
	scanner  *usage.Scanner // the counter, if Read shows it the bytes that pass

	peeked [peek]byte
	ahead  []byte // of peeked, not handed on yet
	err    error  // ends the body once ahead is empty

	mayBeEmpty bool // an answer without a byte is whole

	ends *usage.Ends // nil of an answer that may end anywhere
	// router gets the fault of an answer that began at the pick and did not end, once; nil before the answer began.
	router *router.Router
	pick   router.Pick
}

// first waits for the first byte. An answer without one is a broken answer.
func (b *body) first() *providers.Fault {
	for {
		n, err := b.upstream.Read(b.peeked[:])
		switch {
		case n > 0:
			b.clock.stop()
			b.ahead = b.peeked[:n]
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

// fail blames the channel for an answer that did not end.
func (b *body) fail(fault *providers.Fault) {
	if b.router != nil && fault.Kind == providers.Upstream && fault.Blame == providers.BlameChannel {
		b.router.Report(b.pick, fault)
		b.router = nil
	}
}

func (b *body) read(p []byte) (int, error) {
	if len(b.ahead) > 0 {
		n := copy(p, b.ahead)
		b.ahead = b.ahead[n:]
		return n, nil
	}
	if b.err != nil || len(p) == 0 {
		return 0, b.err
	}
	if err := b.sent.Err(); err != nil { // the work ends with the request, whatever the connection still holds
		b.err = b.ending(err)
		return 0, b.err
	}
	b.clock.restart(b.idle)
	n, err := b.upstream.Read(p)
	b.clock.stop()
	if err != nil {
		b.err = b.ending(err)
	}
	return n, b.err
}

// ending converts the error that ended the upstream's body to that of the answer, and releases the request.
func (b *body) ending(err error) error {
	b.clock.stop()
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
	default:
		return &providers.Fault{
			Kind: providers.Upstream, Message: "The upstream broke off its answer.", Blame: providers.BlameChannel, Err: err,
		}
	}
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.clock.stop()
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

// shownWords bounds what a log line repeats of an upstream's answer, in bytes.
const shownWords = 512

func clip(text []byte) string {
	return string(text[:min(len(text), shownWords)])
}

// scrub takes the key out of what an upstream repeats of it.
func scrub(fault *providers.Fault, key providers.Secret) {
	if fault.Upstream != nil && key != "" {
		fault.Upstream.Body = bytes.ReplaceAll(fault.Upstream.Body, []byte(key.Reveal()), []byte(key.String()))
	}
}
