package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"modelrelay/providers"
	"modelrelay/providers/encoded"
)

// MaxErrorBody is how much of an upstream's error answer is read, in bytes.
const MaxErrorBody = 64 << 10

// NewPost creates the request of a call's payload. An unusable address is a *Fault of the channel, and nothing was sent.
func NewPost(ctx context.Context, address string, payload providers.Payload) (*http.Request, error) {
	req, err := http.NewRequestWithContext(watched(ctx), http.MethodPost, address, payload.Reader())
	if err != nil {
		return nil, unusable(err)
	}
	req.ContentLength = payload.Len()
	return req, nil
}

func unusable(err error) *providers.Fault {
	return &providers.Fault{
		Kind: providers.Upstream, Message: "The channel's address cannot be used.", Accepted: providers.NotAccepted,
		Blame: providers.BlameChannel, Err: err,
	}
}

// Send sends the request. Every error is a *Fault: of the transport, or of an answer that is not 2xx. Send reads the body of such an
// answer, bounded, into Fault.Upstream and closes it. The caller closes the body of a 2xx answer. The request's context bounds the wait;
// if the cause of its cancellation is a *Fault, Send returns that.
//
// A request with a body is written at most once: Send removes its GetBody, without which net/http does not repeat a request, not even on
// a kept connection that has closed. Fault.Accepted is NotAccepted if there was no connection, so that nothing was written, and for the
// statuses that refuse a request. Fault.Delivered reports that the whole request was written and no answer arrived.
func Send(client *http.Client, req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	seen, ok := ctx.Value(connectionKey{}).(*connection)
	if !ok || seen.taken {
		ctx = watched(ctx)
		seen, _ = ctx.Value(connectionKey{}).(*connection)
		req = req.WithContext(ctx)
	}
	seen.taken = true
	req.GetBody = nil
	resp, err := roundTrip(client, req)
	if err != nil {
		return nil, seen.fault(ctx, err)
	}
	decode(resp)
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	// A partial body is enough, because the status is known.
	body, _ := io.ReadAll(io.LimitReader(resp.Body, MaxErrorBody))
	fault := Refusal(resp.StatusCode, resp.Header)
	fault.Upstream = reply(resp.StatusCode, resp.Header, errorObject(body))
	return nil, fault
}

func reply(status int, header http.Header, body []byte) *providers.Reply {
	return &providers.Reply{Status: status, Body: body[:min(len(body), MaxErrorBody)], RequestID: RequestID(header)}
}

// errorObject returns the object of an error answer. Google sends an array with the object for a stream that is not an event stream, and
// for all calls in OpenAI's format.
func errorObject(body []byte) []byte {
	if begin := bytes.TrimLeft(body, " \t\r\n"); len(begin) == 0 || begin[0] != '[' {
		return body
	}
	var elements []json.RawMessage
	if json.Unmarshal(body, &elements) != nil || len(elements) == 0 || elements[0][0] != '{' {
		return body
	}
	return elements[0]
}

// decode removes the content encoding of an answer. An upstream may compress an answer without a request for it.
func decode(resp *http.Response) {
	body, ok := encoded.Decode(resp.Header.Get("Content-Encoding"), resp.Body)
	if !ok {
		return
	}
	resp.Body, resp.ContentLength = body, -1
	resp.Header.Del("Content-Encoding")
	resp.Header.Del("Content-Length")
}

// Header returns a request header from alternating canonical names and values.
func Header(pairs ...string) http.Header {
	header := make(http.Header, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		header[pairs[i]] = pairs[i+1 : i+2 : i+2]
	}
	return header
}

// roundTrip is client.Do without redirects and without its copy of the header, which is a tenth of the cost of a call.
func roundTrip(client *http.Client, req *http.Request) (*http.Response, error) {
	plain := req.Method == http.MethodPost && client.Transport != nil && client.Jar == nil && client.Timeout == 0
	if !plain || req.URL.User != nil { // client.Do writes the user into a header
		return client.Do(req) //nolint:gosec // the address is the operator's configuration
	}
	return client.Transport.RoundTrip(req)
}

// SendCall is Send for a call whose answer must have one of the media types, such as "audio/*", or any that Call.AnyAnswer permits.
func SendCall(client *http.Client, req *http.Request, call *providers.Call, answers ...string) (*http.Response, error) {
	resp, err := Send(client, req)
	if err != nil {
		return nil, err
	}
	mediaType := MediaType(resp.Header)
	if call.AnyAnswer { // a chat
		answers = []string{"application/json", "text/event-stream"}
	}
	if slices.ContainsFunc(answers, func(answer string) bool {
		kind, any := strings.CutSuffix(answer, "/*")
		return mediaType == answer || any && strings.HasPrefix(mediaType, kind+"/")
	}) {
		return resp, nil
	}
	_ = resp.Body.Close() // the body is not used
	return nil, &providers.Fault{
		Kind: providers.Upstream, Message: "The upstream answered with a content type that is not the operation's.",
		Blame: providers.BlameChannel, Malformed: true,
	}
}

// MediaType returns the media type of a Content-Type header in lower case, without parameters, "" for none or more than one.
func MediaType(header http.Header) string {
	values := header["Content-Type"]
	if len(values) == 0 || strings.ContainsRune(values[0], ',') || len(values) > 1 && len(slices.Compact(slices.Clone(values))) > 1 {
		return ""
	}
	kind, _, _ := strings.Cut(values[0], ";")
	return strings.ToLower(strings.TrimSpace(kind))
}

// connection is the context of a request and records its connection. net/http sets the fields before it returns, except written.
type connection struct {
	context.Context //nolint:containedctx // the request's

	trace httptrace.ClientTrace
	// taken: a request has the connection.
	taken bool
	conn  net.Conn
	// kept: the connection had served an earlier request.
	kept bool
	// written: the whole request was written to the connection.
	written atomic.Bool
}

type connectionKey struct{}

// watched returns a context that records the connection of a request.
func watched(ctx context.Context) context.Context {
	c := &connection{Context: ctx}
	c.trace.GotConn, c.trace.WroteRequest = c.got, c.wroteAll
	return httptrace.WithClientTrace(c, &c.trace)
}

// Value implements context.Context.
func (c *connection) Value(key any) any {
	if _, own := key.(connectionKey); own {
		return c
	}
	return c.Context.Value(key)
}

func (c *connection) got(info httptrace.GotConnInfo) { c.conn, c.kept = info.Conn, info.Reused }

func (c *connection) wroteAll(info httptrace.WroteRequestInfo) { c.written.Store(info.Err == nil) }

func (c *connection) fault(ctx context.Context, err error) *providers.Fault {
	if outer := (*url.Error)(nil); errors.As(err, &outer) {
		err = outer.Err // the text of url.Error contains the query
	}
	fault := &providers.Fault{
		Kind: providers.Upstream, Message: "The upstream disconnected before it answered.", Blame: providers.BlameChannel,
		Err: err,
	}
	var given *providers.Fault
	switch cause := context.Cause(ctx); {
	case errors.As(cause, &given):
		copied := *given
		fault = &copied
	case errors.Is(cause, context.DeadlineExceeded):
		fault.Kind, fault.Message = providers.Timeout, "The upstream did not answer in time."
	case cause != nil:
		fault = &providers.Fault{Kind: providers.Canceled, Message: "The request was canceled.", Err: cause}
	case c.conn == nil:
		fault.Message = "The upstream cannot be reached."
	case c.kept && stale(err):
		fault.Blame = providers.BlameNone
	}
	if c.conn == nil {
		fault.Accepted, fault.Unreached = providers.NotAccepted, fault.Blame == providers.BlameChannel
	}
	fault.Delivered = c.written.Load()
	return fault
}

// stale reports whether a kept connection has ended. That is not a failure of the channel.
func stale(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		// net/http does not export this error.
		strings.HasSuffix(err.Error(), "server closed idle connection")
}

// brokenOff returns the fault of a 2xx answer that ends early: that of ctx if it has ended, otherwise the upstream's, outcome unknown.
func brokenOff(ctx context.Context, err error) *providers.Fault {
	cause := context.Cause(ctx)
	if cause == nil {
		return BrokenAnswer("cut off", err)
	}
	fault := *providers.AsFault(cause)
	if fault.Kind == providers.Timeout {
		fault.Blame = providers.BlameChannel
	}
	fault.Err = errors.Join(cause, err)
	return &fault
}

// BrokenAnswer returns the fault of a malformed 2xx answer. what describes the error for the log. The outcome of the request is unknown.
func BrokenAnswer(what string, err error) *providers.Fault {
	return &providers.Fault{
		Kind: providers.Upstream, Message: "The upstream's answer is broken.", Blame: providers.BlameChannel,
		Err: errors.Join(fmt.Errorf("broken answer: %s", what), err),
	}
}
