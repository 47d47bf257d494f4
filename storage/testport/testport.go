// Package testport reserves addresses for the servers of tests. It is only for tests and imports nothing of the product.
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
	// lowest and highest bound the ports: above those of the development stack, and below the ephemeral ports, so that no outgoing
	// connection takes a server's port while the server is down.
	lowest, highest = 15_000, 32_000
	// tries is the number of tries for a free port.
	tries = 100
)

// Address returns a loopback address, 127.0.0.1:port, on which no server listens. No other caller in any process gets it during the test,
// so a killed server can use it again.
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
		addr := fmt.Sprintf("127.0.0.1:%d", lowest+rand.IntN(highest-lowest)) //nolint:gosec // not a secret
		mark, err := take(ctx, addr)
		if err == nil {
			return addr, func() { _ = mark.Close() }, nil
		}
	}
	return "", nil, fmt.Errorf("no free port among %d", tries)
}

// take reserves an address by the UDP socket of the same number, which no TCP server uses. The error reports that one of the two is in use.
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
