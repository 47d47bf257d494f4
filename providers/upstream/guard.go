package providers

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"

	"code.dny.dev/ssrf"
)

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
	transport, ok := like.(*http.Transport)
	if !ok { // what it would dial nobody knows
		transport = newTransport(new(ClientOptions))
	}
	transport = transport.Clone()
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive, Control: Guard().Safe}
	transport.Proxy, transport.DialContext, transport.DialTLSContext = nil, dialer.DialContext, nil
	transport.DisableKeepAlives = true
	return transport
}

// border is the transport of requests that strangers' words may lead away from a channel's own origin: each of them, also
// when it was redirected, goes the channel's way at that origin and through the guard anywhere else.
type border struct {
	own       *url.URL
	near, far http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b border) RoundTrip(req *http.Request) (*http.Response, error) {
	if sameOrigin(b.own, req.URL) {
		return b.near.RoundTrip(req)
	}
	return b.far.RoundTrip(req)
}
