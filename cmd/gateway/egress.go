package main

import (
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpproxy"

	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/providers/upstream"
)

// upstreamClient is the process's client to upstreams.
func upstreamClient(egress config.Egress) *http.Client {
	proxy := egress.EgressProxy.Reveal()
	if proxy == "" {
		return upstream.NewClient(nil)
	}
	choose := (&httpproxy.Config{HTTPProxy: proxy, HTTPSProxy: proxy, NoProxy: strings.Join(egress.NoProxy, ",")}).ProxyFunc()
	return upstream.NewClient(&upstream.ClientOptions{Proxy: func(r *http.Request) (*url.URL, error) { return choose(r.URL) }})
}
