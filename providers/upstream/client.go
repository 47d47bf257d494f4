// Package upstream is what vendors send with: the process's HTTP client, requests that are sent once, refusals as faults,
// WebSockets, and results at links.
//
// It has no code of a vendor. Of the product it imports only providers.
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

// Product is the name of the program in requests to other servers.
const Product = "modelrelay"

const (
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	keepAlive        = 30 * time.Second
	// idleTimeout is how long an unused connection stays open. It is shorter than the 60 s after which common upstream front ends
	// close theirs, so that a request seldom meets a connection that is being closed.
	idleTimeout = 55 * time.Second
	// idlePerHost keeps the connections of a full load open between its requests.
	idlePerHost = 1024
	// connBuffer is the size of each of the two buffers of a connection. Larger writes and reads bypass it.
	connBuffer = 2 << 10
	// pingAfter and pingTimeout detect a dead HTTP/2 connection. Otherwise requests would wait on it for minutes.
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
	// Proxy returns the egress proxy of a request; nil means none. The proxy variables of the environment do not apply.
	Proxy func(*http.Request) (*url.URL, error)
	// TLS replaces the TLS configuration, for private authorities; nil means the system's.
	TLS *tls.Config
	// Trust returns the authorities of single upstreams; nil means none.
	Trust Trust
}

// NewClient returns the process's client to upstreams. It keeps and shares connections, uses HTTP/2 if the server offers it, and
// decompresses nothing. Only GET and HEAD follow redirects, a few and within the first origin; Results follows others. The client does
// not limit the duration of a request; the context does.
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

// redirectWithin is redirect for requests that stay within the first origin. A redirect may lead into the operator's network.
func redirectWithin(next *http.Request, via []*http.Request) error {
	if !sameOrigin(via[0].URL, next.URL) {
		return http.ErrUseLastResponse
	}
	return redirect(next, via)
}

// redirect follows the redirects of a GET or HEAD, but not from https to http. Beyond the first origin, and from there on, the
// request keeps only its User-Agent. net/http would send a key to another port, to a subdomain, and to any host if the key is in a
// header of the vendor's own.
func redirect(next *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case first.Method != http.MethodGet && first.Method != http.MethodHead, len(via) > maxRedirects,
		next.URL.Scheme != "https" && (next.URL.Scheme != "http" || via[len(via)-1].URL.Scheme == "https"):
		return http.ErrUseLastResponse
	}
	foreign := func(hop *http.Request) bool { return !sameOrigin(first.URL, hop.URL) }
	if foreign(next) || slices.ContainsFunc(via, foreign) {
		clear(next.Header)
		next.Header.Set("User-Agent", first.Header.Get("User-Agent"))
	}
	return nil
}

// Fresh returns a copy of the client that opens a new connection for every request. Paid submits use it: if the upstream closes a
// kept connection at the wrong moment, their outcome is unknown. A handshake is cheap compared with a video.
func Fresh(client *http.Client) *http.Client {
	fresh := *client
	fresh.Transport, _ = changed(client.Transport, func(t *http.Transport) { t.DisableKeepAlives = true })
	return &fresh
}

// Guard checks addresses that a client or an upstream has chosen. It refuses those of IANA's special-purpose registries and
// everything outside global unicast, including IPv6 forms that contain an IPv4 address.
func Guard() *ssrf.Guardian {
	return ssrf.New(ssrf.WithAnyPort(), ssrf.WithDeniedV4Prefixes(
		netip.MustParsePrefix("168.63.129.16/32"), // Azure's host, public by number only
	))
}

// guarded returns a copy of the transport that dials only public addresses. It checks them when it dials, so a changed DNS answer
// does not help. It uses no proxy, which would dial instead, and keeps no connection.
func guarded(like http.RoundTripper) http.RoundTripper {
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive, Control: Guard().Safe}
	guard := func(t *http.Transport) {
		t.Proxy, t.DialContext, t.DialTLSContext = nil, dialer.DialContext, nil
		t.DisableKeepAlives = true
	}
	transport, known := changed(like, guard)
	if !known { // it may dial anything
		transport, _ = changed(newTransport(new(ClientOptions)), guard)
	}
	return transport
}
