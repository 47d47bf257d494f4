package config

import (
	"net/url"
	"slices"
	"strings"

	"modelrelay/providers"
)

// Egress configures the connections to upstreams.
type Egress struct {
	// EgressProxy may contain a password, so it is a secret.
	EgressProxy providers.Secret `yaml:"egress_proxy" doc:"http(s):// or socks5://[user:password@]host:port of a proxy for calls to upstreams; empty: none, the proxy variables of the environment have no effect. Webhooks, and results at another origin than the channel's, never use the proxy"`
	NoProxy     []string         `yaml:"no_proxy" doc:"upstreams that the gateway calls without egress_proxy: hosts, domains with their subdomains (example.com, or .example.com without the domain itself), addresses or CIDR ranges. Loopback never uses the proxy"`
}

// checkEgress checks the proxy's address. Messages do not repeat its text.
func checkEgress(v *validator, e Egress) {
	if e.EgressProxy == "" {
		if len(e.NoProxy) > 0 {
			v.add("no_proxy", "has no effect without egress_proxy")
		}
		return
	}
	u, err := url.Parse(e.EgressProxy.Reveal())
	if err != nil || u.Hostname() == "" || !slices.Contains([]string{"http", "https", "socks5"}, u.Scheme) || strings.Trim(u.Path, "/") != "" {
		v.add("egress_proxy", "must be http://host:port, https://host:port or socks5://host:port")
	}
	v.allFilled("no_proxy", e.NoProxy)
}
