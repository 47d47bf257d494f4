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

// sharesOfPlaces: a network may hold one of so many equal shares of a listener's places: it cannot fill them before a client shows a key.
const sharesOfPlaces = 2

// warning is a kind of log line. Each comes once a minute at most, so that a flood of connections is no flood of log lines.
type warning int

const (
	warnFull      warning = iota // all places are held
	warnShare                    // a network holds its share of them
	warnHeader                   // a PROXY header does not count, or is missing
	warnHandshake                // a TLS handshake failed
)

// often is how often each warning is logged.
func often() fair.Quota { return fair.Quota{Units: 1, Per: time.Minute} }

// ListenOptions describe what is in front of a listener; nil: nothing is.
type ListenOptions struct {
	// ProxyProtocol: a connection of one of Options.Proxies begins with a header of the PROXY protocol, and counts as one of
	// the client that this names. Without the header it is closed. Others' headers are no request.
	ProxyProtocol bool
}

// Listen listens at a TCP address with a bounded number of places, at least one. A connection holds its place until it is
// closed, a WebSocket too, and each request over HTTP/2 one more. While all are held the listener accepts nothing: connections
// wait in the kernel's queue. One network (an IPv6 /64 is one) holds half of the places at most, beyond which its connections
// are closed at once; Options.Proxies may hold all, because many clients come through them.
func (s *Server) Listen(ctx context.Context, address string, places int, opts *ListenOptions) (net.Listener, error) {
	tcp, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	share := max(1, places/sharesOfPlaces)
	return &listener{
		TCPListener: tcp.(*net.TCPListener), //nolint:forcetypeassert // it was asked for
		server:      s, introduced: opts != nil && opts.ProxyProtocol, places: make(chan struct{}, places), share: share,
		networks: fair.New[netip.Prefix](fair.Bounds{Total: math.MaxInt64, Share: int64(share)}), closed: make(chan struct{}),
	}, nil
}

type listener struct {
	*net.TCPListener

	server *Server
	// introduced: connections of proxies begin with a PROXY header.
	introduced bool
	places     chan struct{} // one message for each that is held
	share      int           // of places, for one network
	closed     chan struct{}
	close      sync.Once

	networks *fair.Semaphore[netip.Prefix] // the places of each
	logged   fair.Rate[warning]
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
		peer := peerAt(conn.RemoteAddr())
		if leave, ok := l.enter(peer); ok {
			placed := &placed{TCPConn: conn, listener: l, leave: leave}
			if l.introduced && l.server.proxies.Trusts(peer) {
				return &introduced{placed: placed, buffer: bufio.NewReaderSize(conn, proxyHeaderBuffer), source: unknownAddr{}}, nil
			}
			return placed, nil
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
	if l.due(warnFull) {
		l.server.edge.Log().Warn("no new connection is accepted: all places are taken", "address", l.Addr().String(), "connections",
			cap(l.places))
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
	uncount, ok := l.shares(peer)
	if !ok {
		return nil, false
	}
	l.server.connections.Add(1)
	return sync.OnceFunc(func() {
		uncount()
		l.server.connections.Add(-1)
		<-l.places
	}), true
}

// shares counts a place for a network, which is no proxy's, until uncount is called; false where it has its share.
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

// due reports whether a warning was not logged for a while. The caller logs it.
func (l *listener) due(of warning) bool { return l.logged.Take(of, 1, often(), time.Now()) == 0 }

// Close ends Accept; open connections stay.
func (l *listener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return l.TCPListener.Close()
}
