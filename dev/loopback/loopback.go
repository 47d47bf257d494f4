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
	// connections, so that none takes a port between its choice and the part's start, and below those that the gateway's
	// end-to-end tests hand out.
	lowestPort, highestPort = 10_000, 15_000
	// portTries is how many of them may be in use.
	portTries = 100
)

// Address returns listen with its host resolved and port 0 replaced by a free port, after it has bound it once: the
// libraries of the parts name neither the port they chose nor, in words a person understands, an address that is
// taken. No other caller of Address, in any process, is given the port while this process lives; another program may
// still take it before the caller does.
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
		mark, err := net.ListenUDP("udp", &net.UDPAddr{IP: resolved.IP, Port: resolved.Port})
		if err != nil {
			continue
		}
		addr, err := bind(resolved)
		if err == nil {
			go keep(mark)
			return addr, nil
		}
		_ = mark.Close()
	}
	resolved.Port = 0 // what the system gives
	return bind(resolved)
}

// keep holds a port's mark, the UDP socket of the same number, until the process ends. What is sent to it is dropped.
func keep(mark *net.UDPConn) {
	for {
		if _, _, err := mark.ReadFromUDP(make([]byte, 1)); err != nil {
			return
		}
	}
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
