package api_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"testing"
)

// wire is a network of one address within the process. It serves in a bubble of testing/synctest, in which timeouts come
// when they are due and never because a machine is busy.
type wire struct {
	conns chan net.Conn
	done  chan struct{}
	close sync.Once
}

// newWire serves the handler until the end of the test and returns the client that reaches it under every address.
func newWire(t *testing.T, server *http.Server) *http.Client {
	t.Helper()
	w := &wire{conns: make(chan net.Conn), done: make(chan struct{})}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Serve(w); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	transport := &http.Transport{DialContext: w.dial}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
		serving.Wait()
	})
	return &http.Client{Transport: transport}
}

func (w *wire) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case w.conns <- far:
		return near, nil
	case <-w.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (w *wire) Accept() (net.Conn, error) {
	select {
	case conn := <-w.conns:
		return conn, nil
	case <-w.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (w *wire) Close() error {
	w.close.Do(func() { close(w.done) })
	return nil
}

// Addr implements net.Listener.
func (*wire) Addr() net.Addr { return &net.UnixAddr{Name: "wire"} }
