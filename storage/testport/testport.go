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

// Address is a loopback address, 127.0.0.1:port, on which no server listens. No other caller in any process gets it while the
// test lasts: a server that is killed finds it free when it is started again.
func Address(tb testing.TB) string {
	tb.Helper()
	addr, release, err := Claim(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(release)
	return addr
}

// Claim is Address for a server that outlives a test: the address is the caller's until release.
func Claim(ctx context.Context) (addr string, release func(), err error) {
	for range tries {
		addr := fmt.Sprintf("127.0.0.1:%d", lowest+rand.IntN(highest-lowest)) //nolint:gosec // any will do
		mark, err := take(ctx, addr)
		if err == nil {
			return addr, func() { _ = mark.Close() }, nil
		}
	}
	return "", nil, fmt.Errorf("no free port among %d", tries)
}

// take marks an address as given away by the UDP socket of the same number, which no server of TCP uses; an error where another process
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
