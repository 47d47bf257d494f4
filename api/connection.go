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
	// proxyHeaderBuffer is the size of the usual header, in bytes; a header of version 1 has at most 107.
	proxyHeaderBuffer = 256
	// fullRetry is the Retry-After of a request without a free slot.
	fullRetry = time.Second
)

// countedConn is a connection that releases its slot when it is closed. The HTTP server uses the CloseWrite and ReadFrom of its TCPConn.
type countedConn struct {
	*net.TCPConn

	listener *listener
	leave    func()
	// begun: the first bytes were checked.
	begun bool
}

// Close closes the descriptor before it releases the slot.
func (c *countedConn) Close() error {
	defer c.leave()
	return c.TCPConn.Close()
}

// LastReceived implements edge.Connection.
func (c *countedConn) LastReceived() time.Time { return lastReceived(c.TCPConn) }

// Read logs a PROXY header where none is expected. net/http answers it as a malformed request.
func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	if !c.begun && n > 0 {
		c.begun = true
		if bytes.HasPrefix(p[:n], proxyproto.SIGV1) || bytes.HasPrefix(p[:n], proxyproto.SIGV2) {
			c.listener.complain("a connection begins with a PROXY header that does not count: the balancer belongs in trusted_proxies, and proxy_protocol must be true", c.RemoteAddr(), nil)
		}
	}
	return n, err
}

// complain logs an invalid PROXY header, at most once a minute.
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

// proxiedConn is a connection of a trusted proxy, which begins with a PROXY header that names the client. The goroutine that uses the
// connection first reads the header, so that a slow proxy delays no other connection. Without a client address in the header, the
// connection has no address.
type proxiedConn struct {
	*countedConn

	once    sync.Once
	buffer  *bufio.Reader // has the bytes that were read with the header
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

// errShare ends a connection of a network that holds its share of the slots.
var errShare = errors.New("the network holds its share of the places")

// readHeaderOnce reads the header once.
func (c *proxiedConn) readHeaderOnce() {
	c.once.Do(func() {
		c.begun = true
		if c.err = c.readHeader(); c.err != nil {
			// The HTTP server closes a connection with such a read error without an answer.
			c.err = &net.OpError{Op: "read", Net: "tcp", Addr: c.source, Err: c.err}
		}
	})
}

// readHeader reads the header and counts the connection as one of the client's network.
func (c *proxiedConn) readHeader() error {
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

// RemoteAddr returns the client's address. It waits for the header.
func (c *proxiedConn) RemoteAddr() net.Addr {
	c.readHeaderOnce()
	return c.source
}

// Read reads the bytes after the header.
func (c *proxiedConn) Read(p []byte) (int, error) {
	if c.readHeaderOnce(); c.err != nil {
		return 0, c.err
	}
	if c.buffer.Buffered() > 0 {
		return c.buffer.Read(p)
	}
	return c.countedConn.Read(p)
}

// Close closes the connection, which ends a wait for its header.
func (c *proxiedConn) Close() error {
	err := c.countedConn.Close()
	c.readHeaderOnce() // which now fails immediately
	if c.uncount != nil {
		c.uncount()
	}
	return err
}

// withConnection stores the connection in the context of its requests.
func withConnection(ctx context.Context, conn net.Conn) context.Context {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	if c, ok := conn.(edge.Connection); ok {
		ctx = edge.WithConnection(ctx, c)
	}
	return ctx
}

// listenerOf returns the listener of a request; nil if unknown.
func listenerOf(r *http.Request) *listener {
	switch c := edge.ConnectionOf(r.Context()).(type) {
	case *countedConn:
		return c.listener
	case *proxiedConn:
		return c.listener
	default:
		return nil
	}
}

// perStream takes a slot for each request over HTTP/2, in addition to that of its connection. Each request uses as many files as a
// connection of HTTP/1, and a connection has many. It refuses a request if no slot is free, or if its network holds its share.
func perStream(next http.Handler) http.Handler {
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

// admit takes a slot for a request until leave is called.
func (l *listener) admit(source netip.Addr) (leave func(), fault *providers.Fault) {
	select {
	case l.slots <- struct{}{}:
	default:
		l.server.turnedAway.Add(1)
		return nil, &providers.Fault{
			Kind: providers.Overloaded, Message: "The gateway has no room for more requests at the moment.",
			RetryAfter: fullRetry,
		}
	}
	uncount, ok := l.shares(source)
	if !ok {
		<-l.slots
		return nil, &providers.Fault{Kind: providers.RateLimited, Message: "Too many requests are open from this network.", RetryAfter: fullRetry}
	}
	return func() {
		uncount()
		<-l.slots
	}, nil
}

// peerAt returns the address of the other end of a connection, the zero Addr if it has none.
func peerAt(addr net.Addr) netip.Addr {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap().WithZone("")
}
