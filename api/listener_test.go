package api_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"modelrelay/api"
	"modelrelay/storage/testwait"
)

// listening is a gateway at a real listener.
type listening struct {
	*gateway

	address string
}

func listenWith(t *testing.T, g *gateway, places int) listening {
	t.Helper()
	l, err := g.Listen(t.Context(), "127.0.0.1:0", places, nil)
	if err != nil {
		t.Fatal(err)
	}
	server := g.HTTPServer("", g.Handler(), nil)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serve: %v", err)
		}
	})
	return listening{g, l.Addr().String()}
}

// connect opens a connection from one of this machine's own addresses.
func (l listening) connect(t *testing.T, from string) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from), 0))}
	conn, err := dialer.DialContext(within(t), "tcp", l.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// asks makes a request and returns what its connection's end looks like; nil: it was answered and stays open.
func asks(conn net.Conn) error {
	if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: gateway.test\r\n\r\n"); err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

func mustAnswer(t *testing.T, conn net.Conn) {
	t.Helper()
	if err := asks(conn); err != nil {
		t.Fatalf("not answered: %v", err)
	}
}

// TestListenStopsAtItsPlaces: with all of them held nothing is accepted, idle connections count, and a waiting client is served as
// soon as one is closed.
func TestListenStopsAtItsPlaces(t *testing.T) {
	t.Parallel()
	const places = 4
	g := listenWith(t, newGateway(t, nil, func(_ *gateway, o *api.Options) {
		o.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} // which may hold them all
	}), places)
	var held []net.Conn
	for range places {
		conn := g.connect(t, "127.0.0.1")
		mustAnswer(t, conn)
		held = append(held, conn)
	}
	waiting := g.connect(t, "127.0.0.1")
	answered := make(chan error, 1)
	go func() { answered <- asks(waiting) }()
	testwait.Eventually(t, "the listener stops accepting", patience, func() bool { return g.Open().Full })
	if n := g.Open().Connections; n != places {
		t.Errorf("%d connections, want %d", n, places)
	}
	select {
	case err := <-answered:
		t.Fatalf("served beyond the places: %v", err)
	default:
	}
	_ = held[0].Close()
	if err := <-answered; err != nil {
		t.Errorf("after a place was free: %v", err)
	}
	testwait.Eventually(t, "it is full again", patience, func() bool { return g.Open().Full })
	for _, conn := range append(held, waiting) {
		_ = conn.Close()
	}
	testwait.Eventually(t, "all places come back", patience, func() bool { o := g.Open(); return o.Connections == 0 && !o.Full })
	if n := strings.Count(g.log.String(), "no new connection is accepted"); n != 1 {
		t.Errorf("the log has the refusal %d times:\n%s", n, g.log)
	}
}

// TestListenSharesPlaces: one network holds half of the places at most, and another is served at the same time.
func TestListenSharesPlaces(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has a second loopback address by itself")
	}
	g := listenWith(t, newGateway(t, nil, nil), 4)
	first := g.connect(t, "127.0.0.1")
	mustAnswer(t, first)
	mustAnswer(t, g.connect(t, "127.0.0.1"))
	for range 3 {
		if err := asks(g.connect(t, "127.0.0.1")); err == nil {
			t.Fatal("a network has more than its share")
		}
	}
	if o := g.Open(); o.Connections != 2 || o.TurnedAway != 3 {
		t.Errorf("open: %+v", o)
	}
	if n := strings.Count(g.log.String(), `"network":"127.0.0.1/32"`); n != 1 {
		t.Errorf("the log has the refusal %d times:\n%s", n, g.log)
	}
	other := g.connect(t, "127.0.0.2")
	mustAnswer(t, other)
	_ = first.Close()
	testwait.Eventually(t, "the place comes back", patience, func() bool { return g.Open().Connections == 2 })
	mustAnswer(t, g.connect(t, "127.0.0.1"))
	mustAnswer(t, other)
}

// TestListenTakesBackConversations: a WebSocket, which the HTTP server no longer counts, holds its place until it is closed.
func TestListenTakesBackConversations(t *testing.T) {
	t.Parallel()
	d := newDialog(t, dialogOptions{}, echo)
	g := listenWith(t, d.gateway, 2)
	d.url = "http://" + g.address + realtimePath
	d.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for range 3 {
		conn := d.dial(t)
		mustEcho(t, conn, websocket.MessageText, []byte(`{"type":"session.update"}`))
		if n := g.Open().Connections; n != 1 {
			t.Errorf("%d connections, want 1", n)
		}
		_ = conn.Close(websocket.StatusNormalClosure, "")
		testwait.Eventually(t, "the place comes back", patience, func() bool { return g.Open().Connections == 0 })
	}
}

// TestListenGivesTCPConnections: the HTTP server closes one half of a connection whose request it refuses unread, and
// copies to it without a buffer, both only where it finds the methods.
func TestListenGivesTCPConnections(t *testing.T) {
	t.Parallel()
	l, err := newGateway(t, nil, nil).Listen(t.Context(), "127.0.0.1:0", 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	client, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := conn.(interface {
		io.ReaderFrom
		CloseWrite() error
	}); !ok {
		t.Errorf("%T is not what the HTTP server looks for", conn)
	}
	for range 2 {
		_ = conn.Close() // the second gives nothing back
	}
	ended := make(chan error)
	go func() {
		_, err := l.Accept()
		ended <- err
	}()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept: %v", err)
	}
}

// TestListenEndsWhileFull: a listener that waits for a place ends as any other.
func TestListenEndsWhileFull(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	l, err := g.Listen(t.Context(), "127.0.0.1:0", 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	server := g.HTTPServer("", g.Handler(), nil)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	conn := listening{g, l.Addr().String()}.connect(t, "127.0.0.1")
	mustAnswer(t, conn)
	testwait.Eventually(t, "it is full", patience, func() bool { return g.Open().Full })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("serve: %v", err)
	}
	testwait.Eventually(t, "the place comes back", patience, func() bool { return g.Open().Connections == 0 })
}
