package storage_test

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"modelrelay/storage"
	"modelrelay/storage/storagetest"
)

// lossy passes bytes on to a Redis, and closes the connection in place of the next answer once it was told to.
type lossy struct {
	listener net.Listener
	target   string
	lose     atomic.Bool
	lost     atomic.Int32
	running  sync.WaitGroup
}

func newLossy(t *testing.T, target string) *lossy {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &lossy{listener: listener, target: target}
	l.running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := new(net.Dialer).DialContext(t.Context(), "tcp", target)
			if err != nil {
				_ = client.Close()
				continue
			}
			l.running.Go(func() { l.pass(server, client, false) })
			l.running.Go(func() { l.pass(client, server, true) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		l.running.Wait()
	})
	return l
}

func (l *lossy) pass(to, from net.Conn, answers bool) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if answers && n > 0 && l.lose.CompareAndSwap(true, false) {
			l.lost.Add(1)
			return
		}
		if _, failed := to.Write(buf[:n]); failed != nil || err != nil {
			return
		}
	}
}

// TestAdmitIsRepeatable: when the answer to an admission is lost, the client asks again by itself, and the place that the
// first asking took is the call's own.
func TestAdmitIsRepeatable(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	proxy := newLossy(t, server.Addr())
	client, err := storage.OpenRedis("redis://"+proxy.listener.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	limits := newLimits(t, client, nil)
	one := &storage.Token{ID: "one", Concurrency: 1}
	admit(t, limits, one, storage.Cost{Requests: 1}).Release(0) // Redis knows the script from here on
	proxy.lose.Store(true)
	grant := admit(t, limits, one, storage.Cost{Requests: 1})
	if !grant.Allowed || proxy.lost.Load() != 1 {
		t.Fatalf("allowed: %t with %d answers lost, want true with 1", grant.Allowed, proxy.lost.Load())
	}
	if admit(t, limits, one, storage.Cost{Requests: 1}).Allowed {
		t.Error("a second call was admitted beside the first")
	}
	grant.Release(0)
	if !admit(t, limits, one, storage.Cost{Requests: 1}).Allowed {
		t.Error("the place is still taken after the release")
	}
}
