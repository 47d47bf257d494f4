// Package loopback settles the addresses the stack's parts listen on. Nothing of the stack is served elsewhere than
// on this machine.
package loopback

import (
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
)

// ErrOutside refuses an address other machines could reach.
var ErrOutside = errors.New("only loopback addresses are served")

const (
	// lowestPort and highestPort bound the ports that stand for port 0: below those that systems give to outgoing
	// connections, so that none takes a port between its choice and the part's start.
	lowestPort, highestPort = 10_000, 32_000
	// portTries is how many of them may be in use.
	portTries = 100
)

// Address returns listen with its host resolved and port 0 replaced by a free port, after it has bound it once: the
// libraries of the parts name neither the port they chose nor, in words a person understands, an address that is
// taken. Another process may still take the port before the caller does, if it listens there.
func Address(listen string) (netip.AddrPort, error) {
	resolved, err := net.ResolveTCPAddr("tcp", listen)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if !resolved.IP.IsLoopback() {
		return netip.AddrPort{}, ErrOutside
	}
	if resolved.Port != 0 {
		return bind(resolved)
	}
	for range portTries {
		resolved.Port = lowestPort + rand.IntN(highestPort-lowestPort) //nolint:gosec // any will do
		if addr, err := bind(resolved); err == nil {
			return addr, nil
		}
	}
	resolved.Port = 0 // what the system gives
	return bind(resolved)
}

// bind tries an address.
func bind(addr *net.TCPAddr) (netip.AddrPort, error) {
	l, err := net.ListenTCP("tcp", addr)
	if err != nil {
		return netip.AddrPort{}, err
	}
	bound, err := netip.ParseAddrPort(l.Addr().String())
	return netip.AddrPortFrom(bound.Addr().Unmap(), bound.Port()), errors.Join(err, l.Close())
}
