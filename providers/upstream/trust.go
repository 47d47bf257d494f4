package upstream

import (
	"crypto/tls"
	"net/http"
	"net/url"
	"sync"

	"modelrelay/providers"
)

// Trust returns the TLS configuration for a host, written as HostPort does, whose certificates have authorities of their own; nil
// for the system's. While it returns the same pointer, connections are kept. An error fails the request.
type Trust func(host string) (*tls.Config, error)

// transport is the transport of the process's client. It has an http.Transport for each host with authorities of its own.
type transport struct {
	base  *http.Transport
	trust Trust // nil: every host has the system's authorities
	agent string

	mu  sync.Mutex
	own map[string]ownTransport // by host; bounded by the configuration
}

type ownTransport struct {
	config    *tls.Config
	transport *http.Transport
}

// UserAgent returns the User-Agent of requests through this transport.
func (t *transport) UserAgent() string { return t.agent }

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	way, err := t.of(req.URL)
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // required of a RoundTripper
		}
		return nil, err
	}
	return way.RoundTrip(req)
}

func (t *transport) of(u *url.URL) (*http.Transport, error) {
	if t.trust == nil || u.Scheme != "https" {
		return t.base, nil
	}
	host := providers.HostPort(u)
	config, err := t.trust(host)
	if config == nil {
		return t.base, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.own[host]
	if own.config == config {
		return own.transport, nil
	}
	if own.transport != nil {
		own.transport.CloseIdleConnections()
	}
	own = ownTransport{config, t.base.Clone()}
	if own.transport.TLSClientConfig == nil {
		own.transport.TLSClientConfig = new(tls.Config)
	}
	own.transport.TLSClientConfig.RootCAs, own.transport.TLSClientConfig.MinVersion = config.RootCAs, config.MinVersion
	t.own[host] = own
	return own.transport, nil
}

// CloseIdleConnections closes the idle connections of all transports.
func (t *transport) CloseIdleConnections() {
	t.base.CloseIdleConnections()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, own := range t.own {
		own.transport.CloseIdleConnections()
	}
}

// changed returns a changed copy of the transport. It reports false if the transport is of another type.
func changed(like http.RoundTripper, change func(*http.Transport)) (http.RoundTripper, bool) {
	switch like := like.(type) {
	case *http.Transport:
		clone := like.Clone()
		change(clone)
		return clone, true
	case *transport:
		clone := like.base.Clone()
		change(clone)
		return &transport{base: clone, trust: like.trust, agent: like.agent, own: map[string]ownTransport{}}, true
	}
	return like, false
}
