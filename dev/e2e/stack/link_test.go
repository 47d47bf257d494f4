package stack

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestLink: bytes pass whole and in order, not at all while the link is frozen, and a cut is felt.
func TestLink(t *testing.T) {
	t.Parallel()
	echo, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		for {
			conn, err := echo.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}()
		}
	}()
	l := NewLink(t, echo.Addr().String())
	dial := func() net.Conn {
		t.Helper()
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	conn := dial()
	said := func(word string, within time.Duration) bool {
		t.Helper()
		if word != "" {
			if _, err := conn.Write([]byte(word)); err != nil {
				return false
			}
		} else {
			word = "late"
		}
		_ = conn.SetReadDeadline(time.Now().Add(within))
		got := make([]byte, len(word))
		_, err := io.ReadFull(conn, got)
		return err == nil && string(got) == word
	}
	if !said("hello", ReadyTimeout) {
		t.Fatal("nothing passes")
	}
	l.Freeze()
	if said("late", 300*time.Millisecond) {
		t.Error("bytes pass a frozen link")
	}
	l.Restore()
	if !said("", ReadyTimeout) {
		t.Error("what waited in the frozen link is lost")
	}
	l.Cut()
	if said("cut", ReadyTimeout) {
		t.Error("a connection outlives the cut")
	}
	l.Restore()
	conn = dial()
	if !said("again", ReadyTimeout) {
		t.Error("the mended link does not pass")
	}
}

// TestSlowLink: bytes pass a slow link late, each by the same time, in order.
func TestSlowLink(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const delay = 200 * time.Millisecond
		client, in := net.Pipe()
		out, server := net.Pipe()
		l := new(Link)
		l.Slow(delay)
		l.wait.Go(func() { l.pass(Towards, out, in) })
		began := time.Now()
		for _, word := range []string{"one", "two"} {
			if _, err := client.Write([]byte(word)); err != nil {
				t.Fatal(err)
			}
		}
		got := make([]byte, len("onetwo"))
		if _, err := io.ReadFull(server, got); err != nil || string(got) != "onetwo" || time.Since(began) != delay {
			t.Errorf("got %q after %v, %v; want all after %v", got, time.Since(began), err, delay)
		}
		_ = client.Close()
		l.wait.Wait()
	})
}
