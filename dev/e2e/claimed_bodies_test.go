package e2e_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"modelrelay/dev/e2e/stack"
)

const (
	// claims are the sockets that claim a body of claimedSize and send one byte of it.
	claims      = 1000
	claimedSize = 64 << 20
	// claimsMemory is how much memory the gateway may have more with them than idle.
	claimsMemory = 200 << 20
)

// TestClaimedBodies: sockets of two tokens that claim the largest body, and send one byte, cost the gateway what has come and
// not what was claimed, and a third token is served at the same time.
func TestClaimedBodies(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.SharedRelay(t)
	third := stack.Token + "-third"
	g := s.StartGateway(stack.GatewayOptions{Channels: s.AnyModel(), Tokens: "  - {name: third, key: " + third + ", models: [\"*\"]}\n"})
	served := func() {
		t.Helper()
		if resp := postChat(t, g, http.DefaultClient, third, strings.NewReader(chatBody("gpt-4o", 1<<20))); resp != http.StatusOK {
			t.Fatalf("a chat of the third token: got %d, want 200", resp)
		}
	}
	served() // what a first call makes the gateway take
	idle := g.Memory(t)
	g.ResetPeakMemory(t)

	for i := range claims {
		key := stack.Token
		if i%2 > 0 {
			key += "-other"
		}
		claimBody(t, g, key)
	}
	served()
	peak := g.PeakMemory(t)
	t.Logf("idle %d MB, with %d sockets that claim %d MB each %d MB, at most %d MB", idle>>20, claims, claimedSize>>20, g.Memory(t)>>20,
		peak>>20)
	if peak-idle > claimsMemory {
		t.Errorf("the gateway took %d MB more, want at most %d", (peak-idle)>>20, claimsMemory>>20)
	}
}

// claimBody opens a socket, claims a large body, and sends its first byte when the gateway reads it. The socket stays open until
// the test's end.
func claimBody(t *testing.T, g *stack.Gateway, key string) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", g.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(stack.ReadyTimeout)); err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n", key, claimedSize)
	if err != nil {
		t.Fatal(err)
	}
	// net/http says this with the first look into the body, when the memory for it is taken.
	line, err := bufio.NewReader(conn).ReadString('\n')
	if want := "HTTP/1.1 100 Continue"; err != nil || strings.TrimSpace(line) != want {
		t.Fatalf("got %q, %v; want %q", line, err, want)
	}
	if _, err := conn.Write([]byte("{")); err != nil {
		t.Fatal(err)
	}
}

// chatBody asks for a chat, in at least so many bytes.
func chatBody(model string, size int) string {
	return fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":%q}]}`, model, strings.Repeat("abcdefg ", size/8))
}
