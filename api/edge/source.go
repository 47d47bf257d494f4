package edge

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the networks whose word counts about whom they pass a request on for.
type Proxies []netip.Prefix

// Trusts reports whether the address is a proxy's.
func (p Proxies) Trusts(addr netip.Addr) bool {
	return slices.ContainsFunc(p, func(network netip.Prefix) bool { return network.Contains(addr) })
}

// source is the address that a request comes from: that of the connection or, where that is a trusted proxy's, the one
// it names, and so on. X-Forwarded-For and Forwarded are read from the right, where each proxy adds whom it heard; what
// is left of the first address that is not a proxy's is an unauthenticated client's word and not read. A name that is not an address ends
// the reading at the proxy that gave it. Where both headers are there and name different addresses, one of them is a
// client's own that no proxy has changed, and it is not known which: the zero Addr, which is in no network.
func (p Proxies) source(r *http.Request) netip.Addr {
	peer := peerOf(r)
	if !p.Trusts(peer) {
		return peer
	}
	legacy, standard := r.Header["X-Forwarded-For"], r.Header["Forwarded"]
	switch {
	case len(standard) == 0:
		return p.walk(peer, legacy, lastAddress)
	case len(legacy) == 0:
		return p.walk(peer, standard, lastElement)
	}
	addr := p.walk(peer, legacy, lastAddress)
	if addr != p.walk(peer, standard, lastElement) {
		return netip.Addr{}
	}
	return addr
}

// sourceBits6 is how much of an IPv6 address names a source: one subscriber has at least that much to itself.
const sourceBits6 = 64

// NetworkOf is the part of an address that counts as one source; the zero Prefix for what has no address.
func NetworkOf(source netip.Addr) netip.Prefix {
	bits := source.BitLen()
	if source.Is6() {
		bits = sourceBits6
	}
	prefix, _ := source.Prefix(bits) // its error is that of the zero Addr
	return prefix
}

// Origin returns the scheme and host at which the client reaches the gateway, without a slash at the end: Options.PublicURL,
// else the host that the request names. A trusted proxy reports the scheme.
func (e *Edge) Origin(r *http.Request) string {
	if e.options.PublicURL != "" {
		return e.options.PublicURL
	}
	scheme := "http"
	if e.Secured(r) {
		scheme = "https"
	}
	return scheme + "://" + r.Host
}

// Secured reports whether the client speaks TLS: to the gateway itself, or to the trusted proxy that the connection is of, which
// says so at the end of X-Forwarded-Proto or Forwarded.
func (e *Edge) Secured(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	if !e.options.Proxies.Trusts(peerOf(r)) {
		return false
	}
	if lines := r.Header["X-Forwarded-Proto"]; len(lines) > 0 {
		_, _, scheme := lastAddress(lines[len(lines)-1])
		return strings.EqualFold(strings.TrimSpace(scheme), "https")
	}
	lines := r.Header["Forwarded"]
	if len(lines) == 0 {
		return false
	}
	_, _, scheme := lastPair(lines[len(lines)-1], "proto")
	return strings.EqualFold(scheme, "https")
}

// walk follows a header's lines from their end as long as the addresses are proxies'. last cuts the last name off a line.
func (p Proxies) walk(addr netip.Addr, lines []string, last func(line string) (rest string, more bool, name string)) netip.Addr {
	for _, line := range slices.Backward(lines) {
		for more := true; more; {
			var name string
			line, more, name = last(line)
			next, ok := parseNode(name)
			if !ok {
				return addr
			}
			if addr = next; !p.Trusts(addr) {
				return addr
			}
		}
	}
	return addr
}

// lastAddress cuts the last address off a line of X-Forwarded-For.
func lastAddress(line string) (rest string, more bool, name string) {
	at := strings.LastIndexByte(line, ',')
	return line[:max(at, 0)], at >= 0, line[at+1:]
}

// lastElement cuts the last element off a line of Forwarded and returns what it is for.
func lastElement(line string) (rest string, more bool, name string) { return lastPair(line, "for") }

// lastPair cuts the last element off a line of Forwarded (RFC 7239) and returns one of its values. It reads backwards, so
// that a quote that a client opened before does not hide what a proxy added; no address holds an escaped one.
func lastPair(line, wanted string) (rest string, more bool, name string) {
	quoted, start := false, len(line)
	for start > 0 && (quoted || line[start-1] != ',') {
		start--
		quoted = quoted != (line[start] == '"')
	}
	for pair := range strings.SplitSeq(line[start:], ";") {
		key, value, found := strings.Cut(strings.TrimSpace(pair), "=")
		if found && strings.EqualFold(key, wanted) {
			name = value
			break
		}
	}
	if inner, ok := strings.CutPrefix(name, `"`); ok {
		name, ok = strings.CutSuffix(inner, `"`)
		if !ok {
			name = ""
		}
	}
	return line[:max(start-1, 0)], start > 0, name
}

// parseNode reads an address, with or without a port.
func parseNode(name string) (netip.Addr, bool) {
	name = strings.TrimSpace(name)
	addr, err := netip.ParseAddr(name)
	if err != nil && strings.HasPrefix(name, "[") && strings.HasSuffix(name, "]") {
		addr, err = netip.ParseAddr(name[1 : len(name)-1])
	}
	if err != nil {
		var with netip.AddrPort
		with, err = netip.ParseAddrPort(name)
		addr = with.Addr()
	}
	return addr.Unmap().WithZone(""), err == nil
}

// peerOf is the address at the other end of the connection, the zero Addr where it has none.
func peerOf(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}
