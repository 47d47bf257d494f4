package api

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/pires/go-proxyproto"

	"modelrelay/api/edge"
	"modelrelay/providers"
)

const (
	// proxyHeaderTimeout is how long a trusted proxy may take to send its PROXY header. Proxies send it at once.
	proxyHeaderTimeout = 5 * time.Second
	// proxyHeaderBuffer holds the usual header, in bytes; one of version 1 has at most 107.
	proxyHeaderBuffer = 256
	// fullRetry is when a request that found no place may come again.
	fullRetry = time.Second
)

// placed is a connection that gives its place back when it is closed, else a TCPConn, for the HTTP server's CloseWrite and ReadFrom.
type placed struct {
	*net.TCPConn

	listener *listener
	leave    func()
	// begun: its first bytes were checked.
	begun bool
}

// Close closes the descriptor before its place is free.
func (c *placed) Close() error {
	defer c.leave()
	return c.TCPConn.Close()
}

// LastReceived implements edge.Connection.
func (c *placed) LastReceived() time.Time { return lastReceived(c.TCPConn) }

// Read records in the log a header that does not count, which would be read as a broken request.
func (c *placed) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	if !c.begun && n > 0 {
		c.begun = true
		if bytes.HasPrefix(p[:n], proxyproto.SIGV1) || bytes.HasPrefix(p[:n], proxyproto.SIGV2) {
			c.listener.complain("a connection begins with a PROXY header that does not count: the balancer belongs in trusted_proxies, and proxy_protocol must be true", c.RemoteAddr(), nil)
		}
	}
	return n, err
}

// complain records a PROXY header that is wrong in the log, from time to time.
func (l *listener) complain(message string, peer net.Addr, err error) {
	if !l.due(warnHeader) {
		return
	}
	attrs := []any{"address", l.Addr().String(), "peer", peerAt(peer).String()}
	if err != nil {
		attrs = append(attrs, "error", err)
	}
	l.server.edge.Log().Warn(message, attrs...) //nolint:sloglint // the callers' messages are constant
}

// introduced is a connection of a trusted proxy, which begins with a PROXY header that names the client, or else has no address. The
// goroutine that uses the connection first reads the header, so that a slow proxy delays no other connection.
type introduced struct {
	*placed

	once    sync.Once
	buffer  *bufio.Reader // reads the header, and what came with it
	source  net.Addr
	uncount func() // releases the share of the client's network; nil: it has none
	err     error
}

// unknownAddr is the address of a client that the proxy does not name. It does not parse as an address.
type unknownAddr struct{}

// Network implements net.Addr.
func (unknownAddr) Network() string { return "tcp" }

// String implements net.Addr.
func (unknownAddr) String() string { return "unknown" }

// errShare ends a connection of a network that holds its share of the places.
var errShare = errors.New("the network holds its share of the places")

// introduce reads the header once.
func (c *introduced) introduce() {
	c.once.Do(func() {
		c.begun = true
		if c.err = c.readHeader(); c.err != nil {
			// The HTTP server closes a connection whose read fails so, without an answer.
			c.err = &net.OpError{Op: "read", Net: "tcp", Addr: c.source, Err: c.err}
		}
	})
}

// readHeader reads the header and counts the connection as one of the client's network.
func (c *introduced) readHeader() error {
	_ = c.SetReadDeadline(time.Now().Add(proxyHeaderTimeout)) // a closed connection fails at the read
	_, err := c.buffer.Peek(1)
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) { // a check whether the port is open; the end of the server
		return err
	}
	header, err := proxyproto.Read(c.buffer)
	_ = c.SetReadDeadline(time.Time{})
	if err != nil {
		c.listener.complain("a connection of a trusted proxy has no good PROXY header and is closed (proxy_protocol is true)",
			c.TCPConn.RemoteAddr(), err)
		return err
	}
	if header.Version == 2 && header.Command.IsLocal() { // a health check of the proxy itself; in version 1 the proxy does not know the client
		c.source = c.TCPConn.RemoteAddr()
		return nil
	}
	client, ok := header.SourceAddr.(*net.TCPAddr)
	if !ok {
		return nil
	}
	c.source = client
	uncount, ok := c.listener.shares(peerAt(client))
	if !ok {
		return errShare
	}
	c.uncount = sync.OnceFunc(uncount)
	return nil
}

// RemoteAddr is the client's address. It waits for the header.
func (c *introduced) RemoteAddr() net.Addr {
	c.introduce()
	return c.source
}

// Read reads what follows the header.
func (c *introduced) Read(p []byte) (int, error) {
	if c.introduce(); c.err != nil {
		return 0, c.err
	}
	if c.buffer.Buffered() > 0 {
		return c.buffer.Read(p)
	}
	return c.placed.Read(p)
}

// Close closes the connection, which ends a wait for its header.
func (c *introduced) Close() error {
	err := c.placed.Close()
	c.introduce() // which ends at once
	if c.uncount != nil {
		c.uncount()
	}
	return err
}

// withConnection notes in the context of a connection's requests what they come over.
func withConnection(ctx context.Context, conn net.Conn) context.Context {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	if c, ok := conn.(edge.Connection); ok {
		ctx = edge.WithConnection(ctx, c)
	}
	return ctx
}

// listenerOf returns where a request came in; nil: it is not known.
func listenerOf(r *http.Request) *listener {
	switch c := edge.ConnectionOf(r.Context()).(type) {
	case *placed:
		return c.listener
	case *introduced:
		return c.listener
	default:
		return nil
	}
}

// streams gives each request over HTTP/2 a place of its own, as well as its connection: each takes as many files as a connection
// of HTTP/1 does, and there are many in one. One that finds none, or whose network has its share, is refused.
func streams(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l := listenerOf(r)
		if l == nil || r.ProtoMajor < 2 || r.URL.Path == edge.AlivePath || r.URL.Path == edge.ReadyPath {
			next.ServeHTTP(w, r)
			return
		}
		x := edge.At(w)
		leave, fault := l.admit(x.Source())
		if fault != nil {
			x.Fail(fault)
			return
		}
		defer leave()
		next.ServeHTTP(w, r)
	})
}

// admit takes a place for a request until leave is called.
func (l *listener) admit(source netip.Addr) (leave func(), fault *providers.Fault) {
	select {
	case l.places <- struct{}{}:
	default:
		l.server.turnedAway.Add(1)
		return nil, &providers.Fault{
			Kind: providers.Overloaded, Message: "The gateway has no room for more requests at the moment.",
			RetryAfter: fullRetry,
		}
	}
	uncount, ok := l.shares(source)
	if !ok {
		<-l.places
		return nil, &providers.Fault{Kind: providers.RateLimited, Message: "Too many requests are open from this network.", RetryAfter: fullRetry}
	}
	return func() {
		uncount()
		<-l.places
	}, nil
}

// peerAt is the address at the other end of a connection, the zero Addr where it has none.
func peerAt(addr net.Addr) netip.Addr {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap().WithZone("")
}
