package providers

import (
	"net"
	"net/url"
	"strings"
)

// HostPort returns the host and port of a URL, in lower case. The default port is 443.
func HostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "443"
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}
