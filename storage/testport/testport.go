// Package testport gives addresses to the servers of tests. It is for tests only and knows nothing of the product.
package testport

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

const (
	// lowest and highest bound the ports: above those of the development stack, and below those that systems give to outgoing
	// connections, so that none takes a server's port while the server is down.
	lowest, highest = 15_000, 32_000
	// tries is how many of them may be in use.
	tries = 100
)

// Address is a loopback address, 127.0.0.1:port, on which nobody listens. No other caller is given it, in whatever process,
// while the test lasts: a server that is killed finds it again when it is started again.
func Address(tb testing.TB) string {
	tb.Helper()
	for range tries {
		addr := fmt.Sprintf("127.0.0.1:%d", lowest+rand.IntN(highest-lowest)) //nolint:gosec // any will do
		mark, err := take(tb.Context(), addr)
		if err == nil {
			tb.Cleanup(func() { _ = mark.Close() })
			return addr
		}
	}
	tb.Fatalf("no free port among %d", tries)
	return ""
}

// take marks an address as given away by the UDP socket of the same number, which no server of TCP minds; an error where somebody
// else has one of the two.
func take(ctx context.Context, addr string) (mark net.PacketConn, err error) {
	var listen net.ListenConfig
	mark, err = listen.ListenPacket(ctx, "udp", addr)
	if err != nil {
		return nil, err
	}
	listener, err := listen.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, errors.Join(err, mark.Close())
	}
	return mark, listener.Close()
}
