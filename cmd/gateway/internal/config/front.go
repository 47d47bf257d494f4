package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"modelrelay/cmd/gateway/internal/certs"
)

// Front configures the protocols between the gateway's listeners and the proxies in front of them.
type Front struct {
	TLS ListenTLS `yaml:"tls"`
	// H2C and ProxyProtocol apply to the public listener only.
	H2C           bool `yaml:"h2c" doc:"serve HTTP/2 without TLS at listen as well, for proxies that use it for their backends (Envoy, Caddy's h2c://, Cloud Run); with tls, HTTP/2 is always on"`
	ProxyProtocol bool `yaml:"proxy_protocol" doc:"connections of trusted_proxies to listen begin with a header of the PROXY protocol (version 1 or 2), which has the client address; the gateway closes connections without it, and ignores the header of other senders. Write false if every proxy of trusted_proxies writes X-Forwarded-For or Forwarded"`

	// proxyProtocolGiven: the file has the key.
	proxyProtocolGiven bool
}

// ListenTLS is the certificate of the gateway's listeners.
type ListenTLS struct {
	Cert string `yaml:"cert" type:"file" doc:"PEM file of the certificate with its chain; listen, admin.listen and console.listen then use TLS 1.2 or later, with HTTP/2. The gateway reads a changed file again. Empty: no TLS"`
	Key  string `yaml:"key" type:"file" doc:"PEM file of the private key of cert"`
}

func (t ListenTLS) files() certs.Files { return certs.Files{Cert: t.Cert, Key: t.Key} }

// Enabled reports whether listeners use TLS.
func (t ListenTLS) Enabled() bool { return t != ListenTLS{} }

// errNoCertificate is impossible after Validate.
var errNoCertificate = errors.New("tls.cert contains no certificate")

// Config returns the TLS configuration of listeners, with the certificate that the files contain at each handshake; nil: no TLS.
func (t ListenTLS) Config() *tls.Config {
	if !t.Enabled() {
		return nil
	}
	source := certs.NewSource(t.files())
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			config, err := source.Config()
			switch {
			case err != nil:
				return nil, fmt.Errorf("tls: %w", err)
			case len(config.Certificates) == 0:
				return nil, errNoCertificate
			}
			return &config.Certificates[0], nil
		},
	}
}

// trustedProxiesWarning is for a file that does not name the kind of its proxies.
const trustedProxiesWarning = "X-Forwarded-For and Forwarded count on every connection from these networks. A balancer that passes TCP connections on, " +
	"such as an AWS NLB, does not write them, and any client can name its own address: set proxy_protocol: true here and in the balancer. " +
	"Set proxy_protocol: false if each of them is an HTTP proxy that writes them"

// certificateEndsSoon is the time before the end of a certificate from which it is reported: working renewals are weeks earlier.
const certificateEndsSoon = 14 * 24 * time.Hour

func checkFront(v *validator, c Config) {
	if c.TLS.Enabled() {
		if problem := c.TLS.files().Check(); problem != nil {
			v.add("tls."+problem.Part, "%v", problem.Err)
		}
		if c.H2C {
			v.add("h2c", "is only for a listener without tls; with tls, HTTP/2 is always on")
		}
	}
	if c.ProxyProtocol && len(c.TrustedProxies) == 0 {
		v.add("proxy_protocol", "requires trusted_proxies: the gateway uses only their headers")
	}
}

// warnFront warns of proxies that may pass on a client's headers, and of a certificate that ends soon. The configuration must name the kind
// of proxy, because the gateway cannot detect it.
func warnFront(v *validator, c Config, now time.Time) {
	if len(c.TrustedProxies) > 0 && !c.proxyProtocolGiven {
		v.warn("trusted_proxies", "trusted_proxies", nil, "%s", trustedProxiesWarning)
	}
	if !c.TLS.Enabled() {
		return
	}
	config, err := certs.NewSource(c.TLS.files()).Config()
	if err != nil || len(config.Certificates) == 0 {
		return // Validate reports it
	}
	if ends := config.Certificates[0].Leaf.NotAfter; ends.Sub(now) < certificateEndsSoon {
		date := ends.UTC().Format(time.DateOnly)
		v.warn("tls.cert", "certificate", map[string]string{"date": date}, "ends on %s", date)
	}
}

// Trusts reports whether the address belongs to a trusted proxy.
func (c Config) Trusts(addr netip.Addr) bool {
	return slices.ContainsFunc(c.Proxies(), func(network netip.Prefix) bool { return network.Contains(addr) })
}
