package api

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"net"
	"net/netip"
	"sync"
	"time"

	"modelrelay/storage/fair"
)

// networkShares is the divisor of a listener's slots that one network may hold. So a single network cannot use all slots before a client
// has sent a key.
const networkShares = 2

// warning is a kind of log line. Each is logged at most once a minute, so that a flood of connections does not flood the log.
type warning int

const (
	warnFull      warning = iota // all slots are in use
	warnShare                    // a network holds its share of them
	warnHeader                   // a PROXY header is invalid, missing, or of an untrusted client
	warnHandshake                // a TLS handshake failed
)

// often is the rate limit of each warning.
func often() fair.Quota { return fair.Quota{Units: 1, Per: time.Minute} }

// ListenOptions describe the proxy in front of a listener; nil: there is none.
type ListenOptions struct {
	// ProxyProtocol: a connection of one of Options.Proxies begins with a PROXY header, and counts for the client in the header. Without the
	// header it is closed. A PROXY header of any other client is a malformed request.
	ProxyProtocol bool
}

// Listen listens at a TCP address with a limited number of slots, at least one. A connection, also a WebSocket, holds a slot until it is
// closed, and each request over HTTP/2 holds another. If all are in use, the listener accepts no connection, and connections wait in the
// kernel's queue. One network (also an IPv6 /64) may hold half of the slots; further connections of it are closed immediately.
// Options.Proxies may hold all, because many clients use them.
func (s *Server) Listen(ctx context.Context, address string, slots int, opts *ListenOptions) (net.Listener, error) {
	tcp, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	share := max(1, slots/networkShares)
	return &listener{
		TCPListener: tcp.(*net.TCPListener), //nolint:forcetypeassert // the network is tcp
		server:      s, proxied: opts != nil && opts.ProxyProtocol, slots: make(chan struct{}, slots), share: share,
		networks: fair.New[netip.Prefix](fair.Bounds{Total: math.MaxInt64, Share: int64(share)}), closed: make(chan struct{}),
	}, nil
}

type listener struct {
	*net.TCPListener

	server *Server
	// proxied: connections of proxies begin with a PROXY header.
	proxied bool
	slots   chan struct{} // one message for each slot in use
	share   int           // of the slots, for one network
	closed  chan struct{}
	close   sync.Once

	networks *fair.Semaphore[netip.Prefix] // the slots of each
	logged   fair.Rate[warning]
}

// Accept waits for a slot and then for a connection.
func (l *listener) Accept() (net.Conn, error) {
	for {
		if !l.take() {
			return nil, net.ErrClosed
		}
		conn, err := l.AcceptTCP()
		if err != nil {
			<-l.slots
			return nil, err
		}
		peer := peerAt(conn.RemoteAddr())
		if leave, ok := l.enter(peer); ok {
			counted := &countedConn{TCPConn: conn, listener: l, leave: leave}
			if l.proxied && l.server.proxies.Trusts(peer) {
				return &proxiedConn{countedConn: counted, buffer: bufio.NewReaderSize(conn, proxyHeaderBuffer), source: unknownAddr{}}, nil
			}
			return counted, nil
		}
		_ = conn.Close() // it has sent nothing
		<-l.slots
	}
}

// take waits for a slot; false if the listener is closed.
func (l *listener) take() bool {
	select {
	case l.slots <- struct{}{}:
		return true
	default:
	}
	l.server.full.Add(1)
	defer l.server.full.Add(-1)
	if l.due(warnFull) {
		l.server.edge.Log().Warn("no new connection is accepted: all places are taken", "address", l.Addr().String(), "connections",
			cap(l.slots))
	}
	select {
	case l.slots <- struct{}{}:
		return true
	case <-l.closed:
		return false
	}
}

// enter counts a connection until leave is called. It reports false if its network holds its share.
func (l *listener) enter(peer netip.Addr) (leave func(), ok bool) {
	uncount, ok := l.shares(peer)
	if !ok {
		return nil, false
	}
	l.server.connections.Add(1)
	return sync.OnceFunc(func() {
		uncount()
		l.server.connections.Add(-1)
		<-l.slots
	}), true
}

// shares counts a slot for a network until uncount is called. It reports false if the network holds its share. Proxies have no share.
func (l *listener) shares(addr netip.Addr) (uncount func(), ok bool) {
	if l.server.proxies.Trusts(addr) {
		return func() {}, true
	}
	network := fair.NetworkOf(addr)
	if l.networks.Try(network, 1) == nil {
		return func() { l.networks.Release(network, 1) }, true
	}
	l.server.turnedAway.Add(1)
	if l.due(warnShare) {
		l.server.edge.Log().Warn("new connections of a network are closed: it holds its share of the places (a reverse proxy belongs in trusted_proxies)",
			"address", l.Addr().String(), "network", network.String(), "connections", l.share)
	}
	return nil, false
}

// due reports whether a warning may be logged again. The caller logs it.
func (l *listener) due(of warning) bool { return l.logged.Take(of, 1, often(), time.Now()) == 0 }

// Close ends Accept. Open connections continue.
func (l *listener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return l.TCPListener.Close()
}
