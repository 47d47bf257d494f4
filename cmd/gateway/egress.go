package main

import (
	"crypto/tls"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"golang.org/x/net/http/httpproxy"

	"modelrelay/cmd/gateway/internal/buildinfo"
	"modelrelay/cmd/gateway/internal/certs"
	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/providers/upstream"
)

// authorities are the upstreams whose certificates have other authorities than the system's.
type authorities struct {
	mu      sync.Mutex
	sources map[string]*certs.Source // by providers.HostPort
	files   map[string]string
}

// load applies the configuration's authorities. It does not read an unchanged file again, so that a file remains valid while it is
// replaced.
func (a *authorities) load(files map[string]string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	sources := make(map[string]*certs.Source, len(files))
	for host, file := range files {
		if a.files[host] == file {
			sources[host] = a.sources[host]
		} else {
			sources[host] = certs.NewSource(certs.Files{CA: file})
		}
	}
	a.sources, a.files = sources, files
}

func (a *authorities) config(host string) (*tls.Config, error) {
	a.mu.Lock()
	source := a.sources[host]
	a.mu.Unlock()
	if source == nil {
		return nil, nil //nolint:nilnil // nil is the default configuration of upstream.Trust
	}
	return source.Config()
}

func upstreamClient(egress config.Egress, trust upstream.Trust) *http.Client {
	options := &upstream.ClientOptions{Agent: buildinfo.Read().Agent(), Trust: trust}
	if proxy := egress.EgressProxy.Reveal(); proxy != "" {
		choose := (&httpproxy.Config{HTTPProxy: proxy, HTTPSProxy: proxy, NoProxy: strings.Join(egress.NoProxy, ",")}).ProxyFunc()
		options.Proxy = func(r *http.Request) (*url.URL, error) { return choose(r.URL) }
	}
	return upstream.NewClient(options)
}
