package config

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"modelrelay/storage"
)

func (v *validator) allFilled(at string, values []string) {
	for i, value := range values {
		if strings.TrimSpace(value) == "" {
			v.add(key(at, i), "is empty")
		}
	}
}

func (v *validator) oneOf(at, value string, allowed ...string) {
	switch {
	case slices.Contains(allowed, value):
	case value == "":
		v.add(at, "is missing; known are %s", strings.Join(allowed, ", "))
	default:
		v.add(at, "%q is unknown; known are %s", value, strings.Join(allowed, ", "))
	}
}

func (v *validator) amount(at string, n float64) {
	switch {
	case n < 0:
		v.add(at, "is negative")
	case n > 0 && storage.Billionths(n) == 0: // 0 means no limit
		v.add(at, "is below one billionth, the smallest amount of money")
	case math.IsNaN(n):
		v.add(at, "is not a number")
	}
}

// address checks host:port. It permits addresses of other machines.
func (v *validator) address(at, value string) {
	_, port, err := net.SplitHostPort(value)
	if err != nil {
		v.add(at, "%q is not a host:port", value)
		return
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		v.add(at, "%q is not a port", port)
	}
}

// listener checks the address of an optional separate listener; taken is the message for an address of another listener.
func (v *validator) listener(at, value, taken string, others ...string) {
	if value == "" {
		return
	}
	v.address(at, value)
	if _, port, _ := net.SplitHostPort(value); slices.Contains(others, value) && port != "0" {
		v.add(at, "%s", taken)
	}
}

// httpURL checks an absolute http or https URL. Messages do not repeat its text, which may contain credentials.
func (v *validator) httpURL(at, value string) (*url.URL, bool) {
	if value == "" {
		v.add(at, "is missing")
		return nil, false
	}
	u, err := url.Parse(value)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		v.add(at, "must be http://host or https://host")
	case u.User != nil:
		v.add(at, "must not contain a user or a password")
	case u.Fragment != "":
		v.add(at, "must not contain a # and a fragment")
	default:
		return u, true
	}
	return nil, false
}

func (v *validator) store(key, address string) {
	if endpoint, ok := v.httpURL(key, address); ok && strings.Trim(endpoint.Path, "/") != "" {
		v.add(key, "must not contain a path")
	}
}

// anyOrigin permits the pages of every origin.
const anyOrigin = "*"

// checkOrigin returns the problem of one of n origins, "" for none. Browsers send origins in lower case and without a path.
func checkOrigin(origin string, n int) string {
	if origin == anyOrigin {
		if n > 1 {
			return `"*" allows every origin and must be the only entry`
		}
		return ""
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme == "" || u.Host == "" || strings.ToLower(u.Scheme+"://"+u.Host) != origin {
		return fmt.Sprintf("%q is not an origin such as https://app.example.com: in lower case, without a path", origin)
	}
	return ""
}

// unique checks that no two entries of a list have the same value of a field. Messages do not repeat the value, which may be a key.
func (v *validator) unique(list, field string, n int, value func(int) string) {
	first := map[string]int{}
	for i := range n {
		text := value(i)
		if text == "" {
			continue
		}
		if before, twice := first[text]; twice {
			v.add(key(list, i)+"."+field, "is the same as %s.%s", key(list, before), field)
			continue
		}
		first[text] = i
	}
}

func key(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }

// mappedBits is the length of the prefix of an IPv4-mapped IPv6 address.
const mappedBits = 96

// parseNetwork parses a CIDR range, or one address as a range.
func parseNetwork(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		addr = addr.Unmap().WithZone("")
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("parse network: %w", err)
	}
	if addr := prefix.Addr(); addr.Is4In6() && prefix.Bits() >= mappedBits {
		prefix = netip.PrefixFrom(addr.Unmap(), prefix.Bits()-mappedBits)
	}
	return prefix.Masked(), nil
}
