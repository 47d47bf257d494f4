package config

import (
	"net/url"

	"modelrelay/cmd/gateway/internal/certs"
	"modelrelay/providers"
)

// Authorities returns the files of certificates that may sign those of upstreams, by providers.HostPort.
func (c Config) Authorities(catalog providers.Catalog) map[string]string {
	files := make(map[string]string)
	for _, channel := range c.Channels {
		if channel.CA == "" {
			continue
		}
		if u := channel.address(catalog[channel.Vendor]); u != nil {
			files[providers.HostPort(u)] = channel.CA
		}
	}
	return files
}

// address returns the address of a channel, nil if unknown.
func (c Channel) address(vendor providers.Vendor) *url.URL {
	text := c.BaseURL
	if text == "" {
		text = vendor.BaseURL
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return nil
	}
	return u
}

// checkAuthorities checks the files of channels' authorities. A file applies to every channel with the same host, so they must be equal.
func (c Config) checkAuthorities(v *validator, vendors providers.Catalog) {
	files := make(map[string]string)
	for i, channel := range c.Channels {
		if channel.CA == "" {
			continue
		}
		at := key("channels", i) + ".ca"
		u := channel.address(vendors[channel.Vendor])
		if u == nil || u.Scheme != "https" {
			v.add(at, "requires a base_url that begins with https://")
			continue
		}
		if problem := (certs.Files{CA: channel.CA}).Check(); problem != nil {
			v.add(at, "%v", problem.Err)
		}
		host := providers.HostPort(u)
		if other, taken := files[host]; taken && other != channel.CA {
			v.add(at, "differs from the ca of an earlier channel with the same host, %s", host)
		}
		files[host] = channel.CA
	}
}
