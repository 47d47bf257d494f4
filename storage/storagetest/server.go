package storagetest

import (
	"context"
	"net"
	"sync"
	"syscall"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// Server is an embedded Redis without a port, which another process could take during Leave. It also works within a bubble of
// testing/synctest; its keys then expire by the bubble's clock.
type Server struct {
	*miniredis.Miniredis

	mu   sync.Mutex
	away bool
}

// NewServer starts a server that ends with the test.
func NewServer(tb testing.TB) *Server {
	tb.Helper()
	s := &Server{Miniredis: miniredis.NewMiniRedis()}
	s.ClockTTL(true)
	tb.Cleanup(s.Leave)
	return s
}

// Client opens a client of this server, closed at the end of the test.
func (s *Server) Client(tb testing.TB) *redis.Client {
	tb.Helper()
	opts := *Client(tb, "redis://embedded").Options()
	opts.Dialer = func(context.Context, string, string) (net.Conn, error) { return s.dial() }
	client := redis.NewClient(&opts)
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

// Leave closes all connections and refuses new ones until Return. The data stays.
func (s *Server) Leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = true
	s.Close()
}

// Return accepts connections again after Leave. A client may get an error once for each broken connection in its pool.
func (s *Server) Return() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = false
}

func (s *Server) dial() (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: syscall.ECONNREFUSED}
	}
	return s.Dial()
}
