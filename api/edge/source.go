package edge

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the networks of reverse proxies whose headers about the source of a request are trusted.
type Proxies []netip.Prefix

// Trusts reports whether the address belongs to a trusted proxy.
func (p Proxies) Trusts(addr netip.Addr) bool {
	return slices.ContainsFunc(p, func(network netip.Prefix) bool { return network.Contains(addr) })
}

// source returns the source address of a request: that of the connection, or if that is a trusted proxy's, the address that the proxy
// reports, and so on. It reads X-Forwarded-For and Forwarded from the right, because each proxy appends the address of its peer. It stops
// at the first address that is not a trusted proxy's: any client can have written what is left of it. An entry that is not an address ends
// the walk at the proxy that added it. If the two headers name different addresses, a client sent one of them and it is unknown which:
// source returns the zero Addr, which is in no network.
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

// Secured reports whether the client uses TLS: to the gateway, or as its trusted proxy reports at the end of the forwarding headers.
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

// walk reads a header's lines from their end while the addresses are trusted proxies'. last cuts the last entry off a line.
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

// lastElement cuts the last element off a line of Forwarded and returns its value of "for".
func lastElement(line string) (rest string, more bool, name string) { return lastPair(line, "for") }

// lastPair cuts the last element off a line of Forwarded (RFC 7239) and returns one of its values. It reads backwards, so a quote that a
// client opened earlier does not hide the element of a proxy. An address contains no escaped quote.
func lastPair(line, parameter string) (rest string, more bool, name string) {
	quoted, start := false, len(line)
	for start > 0 && (quoted || line[start-1] != ',') {
		start--
		quoted = quoted != (line[start] == '"')
	}
	for pair := range strings.SplitSeq(line[start:], ";") {
		key, value, found := strings.Cut(strings.TrimSpace(pair), "=")
		if found && strings.EqualFold(key, parameter) {
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

// peerOf returns the remote address of the connection; the zero Addr if it has none.
func peerOf(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}
