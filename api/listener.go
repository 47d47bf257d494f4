package api

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"modelrelay/api/edge"
)

const (
	// sharesOfPlaces: one network may hold one of so many equal shares of a listener's places, so that it alone cannot
	// fill them before anybody has shown a key.
	sharesOfPlaces = 2
	// fullSaidEvery keeps a flood of connections from being a flood of log lines.
	fullSaidEvery = time.Minute
)

// Listen listens at a TCP address with a bounded number of places, at least one. A connection holds its place until it is
// closed, a WebSocket too. While all are held the listener accepts nothing: connections wait in the kernel's queue. One
// network (an IPv6 /64 is one) holds half of the places at most, beyond which its connections are closed at once;
// Options.Proxies may hold all, because many clients come through them.
func (s *Server) Listen(ctx context.Context, address string, places int) (net.Listener, error) {
	tcp, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return &listener{
		TCPListener: tcp.(*net.TCPListener), //nolint:forcetypeassert // it was asked for
		server:      s, places: make(chan struct{}, places), share: max(1, places/sharesOfPlaces),
		networks: make(map[netip.Prefix]int), closed: make(chan struct{}),
	}, nil
}

type listener struct {
	*net.TCPListener

	server *Server
	places chan struct{} // one message for each that is held
	share  int           // of places, for one network
	closed chan struct{}
	close  sync.Once

	mu sync.Mutex
	// networks counts the connections of each; who has none is not in it, so it is never longer than there are places.
	networks map[netip.Prefix]int
	// When the log was last told that all places, or those of a network, are held.
	fullSaid, shareSaid time.Time
}

// Accept waits for a place and then for a connection.
func (l *listener) Accept() (net.Conn, error) {
	for {
		if !l.take() {
			return nil, net.ErrClosed
		}
		conn, err := l.AcceptTCP()
		if err != nil {
			<-l.places
			return nil, err
		}
		if leave, ok := l.enter(peerAt(conn.RemoteAddr())); ok {
			return &placed{TCPConn: conn, leave: leave}, nil
		}
		_ = conn.Close() // it said nothing yet
		<-l.places
	}
}

// take waits for a place; false when the listener is closed.
func (l *listener) take() bool {
	select {
	case l.places <- struct{}{}:
		return true
	default:
	}
	l.server.full.Add(1)
	defer l.server.full.Add(-1)
	if l.due(&l.fullSaid) {
		l.server.edge.Log().Warn("no new connection is accepted: all places are taken", "address", l.Addr().String(), "connections", cap(l.places))
	}
	select {
	case l.places <- struct{}{}:
		return true
	case <-l.closed:
		return false
	}
}

// enter counts a connection until leave is called; false where its network has its share.
func (l *listener) enter(peer netip.Addr) (leave func(), ok bool) {
	network, proxy := edge.NetworkOf(peer), l.server.proxies.Trusts(peer)
	if !proxy && !l.count(network) {
		l.server.turnedAway.Add(1)
		if l.due(&l.shareSaid) {
			l.server.edge.Log().Warn("new connections of a network are closed: it holds its share of the places (a reverse proxy belongs into trusted_proxies)",
				"address", l.Addr().String(), "network", network.String(), "connections", l.share)
		}
		return nil, false
	}
	l.server.connections.Add(1)
	return sync.OnceFunc(func() {
		if !proxy {
			l.uncount(network)
		}
		l.server.connections.Add(-1)
		<-l.places
	}), true
}

func (l *listener) count(network netip.Prefix) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.networks[network] >= l.share {
		return false
	}
	l.networks[network]++
	return true
}

func (l *listener) uncount(network netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.networks[network]--; l.networks[network] == 0 {
		delete(l.networks, network)
	}
}

// due tells whether something was not said for a while, and that it is said now.
func (l *listener) due(last *time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if now.Sub(*last) < fullSaidEvery {
		return false
	}
	*last = now
	return true
}

// Close ends Accept; open connections stay.
func (l *listener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return l.TCPListener.Close()
}

// placed is a connection that gives its place back when it is closed. It is a TCPConn in all else: the HTTP server looks
// for its CloseWrite and ReadFrom.
type placed struct {
	*net.TCPConn

	leave func()
}

// Close closes the descriptor before its place is free.
func (c *placed) Close() error {
	defer c.leave()
	return c.TCPConn.Close()
}

// peerAt is the address at the other end of a connection, the zero Addr where it has none.
func peerAt(addr net.Addr) netip.Addr {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap().WithZone("")
}
