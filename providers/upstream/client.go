// Package upstream is what vendors speak to upstreams with: the process's one HTTP client, requests that are sent once,
// refusals as faults, WebSockets, and results that are read wherever a link leads.
//
// It knows no vendor, and of the product it imports providers alone.
package upstream

import (
	"cmp"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"code.dny.dev/ssrf"
)

// Product is the name of the program for other servers.
const Product = "modelrelay"

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

// ClientOptions tune the HTTP client; nil means the defaults.
type ClientOptions struct {
	// Agent is the User-Agent of every request; "" means Product.
	Agent string
	// Proxy chooses an egress proxy for a request; nil means none, whatever the environment says.
	Proxy func(*http.Request) (*url.URL, error)
	// TLS replaces the TLS configuration, for private authorities; nil means the system's.
	TLS *tls.Config
	// Trust answers for upstreams with authorities of their own; nil means none.
	Trust Trust
	// DialTimeout bounds the making of a connection, TLS apart; 0 means 10 s.
	DialTimeout time.Duration
}

// NewClient returns the process's one client to upstreams. Connections are kept and shared, HTTP/2 is used where
// offered, bodies pass as they are (nothing is decompressed), and only a GET or HEAD follows redirects, a few and within the
// origin that was asked; see Results for those that lead beyond. It sets no limit on the whole of a request: that is the context's.
func NewClient(opts *ClientOptions) *http.Client {
	if opts == nil {
		opts = new(ClientOptions)
	}
	return &http.Client{CheckRedirect: redirectWithin, Transport: &transport{
		base: newTransport(opts), trust: opts.Trust, agent: cmp.Or(opts.Agent, Product), own: map[string]ownTransport{},
	}}
}

// Agent returns the User-Agent of requests through a client of NewClient; Product for any other client.
func Agent(client *http.Client) string {
	if named, ok := client.Transport.(interface{ UserAgent() string }); ok {
		return named.UserAgent()
	}
	return Product
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
// from there on, the request keeps only the User-Agent of its header: net/http itself would send a key on to another port, to
// a subdomain, and to any host where the key is in a header of the vendor's own.
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
		next.Header.Set("User-Agent", first.Header.Get("User-Agent"))
	}
	return nil
}

// Fresh returns a client like the given one that makes a new connection for every request. Paid submits use it: a kept
// connection that the upstream closes at the wrong moment would leave their outcome unknown, and a handshake costs
// nothing beside a video.
func Fresh(client *http.Client) *http.Client {
	fresh := *client
	fresh.Transport, _ = changed(client.Transport, func(t *http.Transport) { t.DisableKeepAlives = true })
	return &fresh
}

// Guard judges addresses that others choose: those of IANA's special-purpose registries and everything outside global
// unicast are refused, so IPv6 forms that hold an IPv4 address are as well.
func Guard() *ssrf.Guardian {
	return ssrf.New(ssrf.WithAnyPort(), ssrf.WithDeniedV4Prefixes(
		netip.MustParsePrefix("168.63.129.16/32"), // Azure's host, public by number only
	))
}

// guarded is a transport like the given one that dials public addresses only, judged when they are dialled, so that a name
// which stands for another address by then helps nobody. It goes through no proxy, which would dial in its place, and keeps
// no connection: a handshake costs nothing beside a video.
func guarded(like http.RoundTripper) http.RoundTripper {
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive, Control: Guard().Safe}
	guard := func(t *http.Transport) {
		t.Proxy, t.DialContext, t.DialTLSContext = nil, dialer.DialContext, nil
		t.DisableKeepAlives = true
	}
	transport, known := changed(like, guard)
	if !known { // what it would dial nobody knows
		transport, _ = changed(newTransport(new(ClientOptions)), guard)
	}
	return transport
}
