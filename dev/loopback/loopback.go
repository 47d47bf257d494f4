// Package loopback settles the addresses the stack's parts listen on. Nothing of the stack is served elsewhere than
// on this machine.
package loopback

import (
	"errors"
	"net"
	"net/netip"
)

// ErrOutside refuses an address other machines could reach.
var ErrOutside = errors.New("only loopback addresses are served")

// Address returns listen with its host resolved and port 0 replaced by a free port, after it has bound it once: the
// libraries of the parts name neither the port they chose nor, in words a person understands, an address that is
// taken. Another process may still take the port before the caller does.
func Address(listen string) (netip.AddrPort, error) {
	resolved, err := net.ResolveTCPAddr("tcp", listen)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if !resolved.IP.IsLoopback() {
		return netip.AddrPort{}, ErrOutside
	}
	l, err := net.ListenTCP("tcp", resolved)
	if err != nil {
		return netip.AddrPort{}, err
	}
	bound, err := netip.ParseAddrPort(l.Addr().String())
	return netip.AddrPortFrom(bound.Addr().Unmap(), bound.Port()), errors.Join(err, l.Close())
}
