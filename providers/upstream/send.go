package providers

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Agent is the User-Agent of every upstream request.
const Agent = "modelrelay"

const (
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	keepAlive        = 30 * time.Second
	// idleTimeout is how long an unused connection is kept. It is shorter than the 60 s after which common upstream
	// front ends close theirs, so that a request seldom meets one that is just being closed.
	idleTimeout = 55 * time.Second
	// idlePerHost holds the connections of a full load open between its requests.
	idlePerHost = 1024
	// connBuffer is what each open connection holds twice. It takes a small call or event; larger ones pass it by.
	connBuffer = 2 << 10
	// pingAfter and pingTimeout find a dead HTTP/2 connection, on which requests would otherwise pile up for minutes.
	pingAfter   = 30 * time.Second
	pingTimeout = 15 * time.Second
	// streamWindow bounds what an HTTP/2 upstream may send ahead of a slow reader.
	streamWindow = 1 << 20
	// maxHeader bounds an answer's header.
	maxHeader = 256 << 10
	// maxRedirects is how many redirects of a GET are followed.
	maxRedirects = 5
)

// MaxErrorBody is how much of an upstream's error answer is kept, in bytes.
const MaxErrorBody = 64 << 10

// ClientOptions tune the HTTP client; nil means the defaults.
type ClientOptions struct {
	// Proxy chooses an egress proxy for a request; nil means none, whatever the environment says.
	Proxy func(*http.Request) (*url.URL, error)
	// TLS replaces the TLS configuration, for private authorities; nil means the system's.
	TLS *tls.Config
	// DialTimeout bounds the making of a connection, TLS apart; 0 means 10 s.
	DialTimeout time.Duration
}

// NewHTTPClient returns the process's one client to upstreams. Connections are kept and shared, HTTP/2 is used where
// offered, bodies pass as they are (nothing is decompressed), and only a GET or HEAD follows redirects, a few and within the
// origin that was asked; see Results for those that lead beyond. It sets no limit on the whole of a request: that is the context's.
func NewHTTPClient(opts *ClientOptions) *http.Client {
	if opts == nil {
		opts = new(ClientOptions)
	}
	return &http.Client{Transport: newTransport(opts), CheckRedirect: redirectWithin}
}

func newTransport(opts *ClientOptions) *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}
	if opts.DialTimeout > 0 {
		dialer.Timeout = opts.DialTimeout
	}
	return &http.Transport{
		Proxy:                  opts.Proxy,
		DialContext:            dialer.DialContext,
		TLSClientConfig:        opts.TLS,
		TLSHandshakeTimeout:    handshakeTimeout,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    idlePerHost,
		IdleConnTimeout:        idleTimeout,
		ReadBufferSize:         connBuffer,
		WriteBufferSize:        connBuffer,
		MaxResponseHeaderBytes: maxHeader,
		ForceAttemptHTTP2:      true,
		HTTP2: &http.HTTP2Config{
			SendPingTimeout:           pingAfter,
			PingTimeout:               pingTimeout,
			MaxReceiveBufferPerStream: streamWindow,
		},
	}
}

// redirectWithin is redirect for requests that have no business beyond the origin that was asked: no key of theirs would go
// there, and what answers may lie inside the operator's network.
func redirectWithin(next *http.Request, via []*http.Request) error {
	if !sameOrigin(via[0].URL, next.URL) {
		return http.ErrUseLastResponse
	}
	return redirect(next, via)
}

// redirect follows the redirects of a GET or HEAD, but none to a less safe scheme. Beyond the origin that was asked, and
// from there on, the request keeps nothing of its header: net/http itself would send a key on to another port, to a
// subdomain, and to anybody where the key stands in a header of the vendor's own.
func redirect(next *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case first.Method != http.MethodGet && first.Method != http.MethodHead, len(via) > maxRedirects,
		next.URL.Scheme != "https" && (next.URL.Scheme != "http" || via[len(via)-1].URL.Scheme == "https"):
		return http.ErrUseLastResponse
	}
	strange := func(hop *http.Request) bool { return !sameOrigin(first.URL, hop.URL) }
	if strange(next) || slices.ContainsFunc(via, strange) {
		clear(next.Header)
		next.Header.Set("User-Agent", Agent)
	}
	return nil
}

// NewPost makes the request of a call's payload, whose header is the vendor's to set. An address that cannot be used is a
// *Fault of the channel, before anything was sent.
func NewPost(ctx context.Context, address string, payload Payload) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, payload.Reader())
	if err != nil {
		return nil, &Fault{
			Kind: Upstream, Message: "The channel's address cannot be used.", Taken: TakenNo, Blame: BlameChannel, Err: err,
		}
	}
	req.ContentLength = payload.Len()
	return req, nil
}

// Send does the request and makes a *Fault of every failure: of the transport's, and of every answer that is not 2xx,
// whose body is then read, bounded, into Fault.Upstream and closed. The caller closes the body of a 2xx answer, and
// bounds the wait through the request's context: a *Fault that is the cause of its cancellation is what Send returns.
//
// A request with a body is written at most once: Send takes its GetBody away, without which net/http repeats none, not
// even on a kept connection that turns out closed. Fault.Taken is TakenNo when no connection came about, so that
// nothing was written, and for the statuses that refuse a request. Fault.Delivered tells that all of it was written and no
// answer came.
func Send(client *http.Client, req *http.Request) (*http.Response, error) {
	seen := new(connection)
	seen.trace.GotConn, seen.trace.WroteRequest = seen.got, seen.wroteAll
	ctx := req.Context()
	req = req.WithContext(httptrace.WithClientTrace(ctx, &seen.trace))
	req.GetBody = nil
	resp, err := client.Do(req) //nolint:gosec // the address is the operator's own configuration
	if err != nil {
		return nil, seen.fault(ctx, err)
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	// A body that breaks off is worth what came of it: the status has said what happened.
	body, _ := io.ReadAll(io.LimitReader(resp.Body, MaxErrorBody))
	fault := Refusal(resp.StatusCode, resp.Header)
	fault.Upstream = &Reply{Status: resp.StatusCode, ContentType: resp.Header.Get("Content-Type"), Body: body}
	return nil, fault
}

// MediaType is the bare media type of a Content-Type header, in lower case; "" where there is none, or more than one: a
// reader of the header's next value, or of what stands behind a comma, would take the body for something else.
func MediaType(header http.Header) string {
	values := header["Content-Type"]
	if len(values) == 0 || strings.ContainsRune(values[0], ',') || len(values) > 1 && len(slices.Compact(slices.Clone(values))) > 1 {
		return ""
	}
	kind, _, _ := strings.Cut(values[0], ";")
	return strings.ToLower(strings.TrimSpace(kind))
}

// connection is what became of the connection of one request. net/http fills it before it returns, but for written.
type connection struct {
	trace httptrace.ClientTrace
	conn  net.Conn
	// kept: it had served an earlier request.
	kept bool
	// written: the whole request was handed to the connection.
	written atomic.Bool
}

func (c *connection) got(info httptrace.GotConnInfo) { c.conn, c.kept = info.Conn, info.Reused }

func (c *connection) wroteAll(info httptrace.WroteRequestInfo) { c.written.Store(info.Err == nil) }

// fault makes the fault of a request that got no answer.
func (c *connection) fault(ctx context.Context, err error) *Fault {
	if outer := (*url.Error)(nil); errors.As(err, &outer) {
		err = outer.Err // its text would add the address with its query
	}
	fault := &Fault{Kind: Upstream, Message: "The upstream broke off before it answered.", Blame: BlameChannel, Err: err}
	var given *Fault
	switch cause := context.Cause(ctx); {
	case errors.As(cause, &given):
		copied := *given
		fault = &copied
	case errors.Is(cause, context.DeadlineExceeded):
		fault.Kind, fault.Message = Timeout, "The upstream did not answer in time."
	case cause != nil:
		fault = &Fault{Kind: Canceled, Message: "The request was canceled.", Err: cause}
	case c.conn == nil:
		fault.Message = "The upstream cannot be reached."
	case c.kept && stale(err):
		fault.Blame = BlameNone
	}
	if c.conn == nil {
		fault.Taken, fault.Unreached = TakenNo, fault.Blame == BlameChannel
	}
	fault.Delivered = c.written.Load()
	return fault
}

// stale tells the end of a kept connection, which the upstream may close at any moment between two requests, from a
// failure that speaks against it.
func stale(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		// net/http does not export this one.
		strings.HasSuffix(err.Error(), "server closed idle connection")
}
