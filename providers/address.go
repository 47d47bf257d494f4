package providers

import (
	"net"
	"net/url"
	"strings"
)

// HostPort is where an address leads, in lower case and with its port: https means 443.
func HostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "443"
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}
