package api_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"modelrelay/storage/testwait"
)

// TestCreateWaitedInTheSocket: a create is as old as its data in the socket. A process that stood still reads it later, when the
// client's retry may have made the task elsewhere.
func TestCreateWaitedInTheSocket(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	l, err := g.Listen(t.Context(), "127.0.0.1:0", 10, nil)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := (&net.Dialer{}).DialContext(within(t), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	const body = `{"model":"sora-2","prompt":"a cat"}`
	if _, err := fmt.Fprintf(conn, "POST /v1/videos HTTP/1.1\r\nHost: gateway.test\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", goodKey, len(body), body); err != nil {
		t.Fatal(err)
	}
	const age = 100 * time.Millisecond
	testwait.Eventually(t, "the data is old", patience, func() bool { return sinceSent(t, conn.(*net.TCPConn)) >= age }) //nolint:forcetypeassert // of tcp
	read := time.Now()
	server, ended := g.HTTPServer("", g.Handler(), nil), make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, _ := io.ReadAll(resp.Body)
	const tick = 10 * time.Millisecond // of the system's clock of this
	if resp.StatusCode != http.StatusOK || len(g.tasks.creates) != 1 || g.tasks.creates[0].Arrived.After(read.Add(tick-age)) {
		t.Errorf("%d %s: arrived %+v, read at %v", resp.StatusCode, answer, g.tasks.creates, read)
	}
}

// sinceSent returns how long ago the system sent the last data of a connection.
func sinceSent(t *testing.T, conn *net.TCPConn) (age time.Duration) {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			t.Error(err)
			return
		}
		age = time.Duration(info.Last_data_sent) * time.Millisecond
	})
	if err != nil {
		t.Fatal(err)
	}
	return age
}
