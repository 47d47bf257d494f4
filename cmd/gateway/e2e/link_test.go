package e2e_test

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// link is a TCP proxy in front of one process, which a test makes slow, cuts, or leaves half open, and mends again. It may
// be changed at any time, while bytes are under way. The test's end closes it.
type link struct {
	listener net.Listener
	target   string
	wait     sync.WaitGroup

	mu      sync.Mutex
	delay   time.Duration
	severed bool
	frozen  chan struct{} // closed at the thaw; nil while bytes flow
	conns   map[net.Conn]struct{}
	done    bool
}

// linkChunks bounds what is under way in one direction of one connection, in reads of linkBuffer bytes.
const (
	linkChunks = 256
	linkBuffer = 16 << 10
)

func newLink(t *testing.T, target string) *link {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{listener: listener, target: target, conns: make(map[net.Conn]struct{})}
	l.wait.Go(l.serve)
	t.Cleanup(l.close)
	return l
}

// addr is where to connect instead of the target.
func (l *link) addr() string { return l.listener.Addr().String() }

// slow holds back every byte for so long in each direction, so an answer takes twice as long; throughput stays.
func (l *link) slow(delay time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay = delay
}

// cut closes all connections, with what is under way, and refuses new ones.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.severed = true
	l.drop()
}

// freeze leaves connections half open: nothing passes any more and nobody is told. New ones are accepted all the same.
func (l *link) freeze() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.frozen == nil {
		l.frozen = make(chan struct{})
	}
}

// mend ends what slow, cut and freeze have begun. What waited in a frozen connection arrives, late.
func (l *link) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay, l.severed = 0, false
	l.thaw()
}

// drop closes all connections; the caller holds the lock.
func (l *link) drop() {
	for conn := range l.conns {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset, as from a peer that is gone
		}
		_ = conn.Close()
	}
	clear(l.conns)
}

// thaw lets frozen connections flow; the caller holds the lock.
func (l *link) thaw() {
	if l.frozen != nil {
		close(l.frozen)
		l.frozen = nil
	}
}

func (l *link) close() {
	_ = l.listener.Close()
	l.mu.Lock()
	l.done = true
	l.drop()
	l.thaw()
	l.mu.Unlock()
	l.wait.Wait()
}

func (l *link) serve() {
	for {
		in, err := l.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.DialTimeout("tcp", l.target, readyTimeout)
		if err != nil || !l.keep(in, out) {
			_ = in.Close()
			if err == nil {
				_ = out.Close()
			}
			continue
		}
		l.wait.Go(func() { l.pass(out, in) })
		l.wait.Go(func() { l.pass(in, out) })
	}
}

// keep notes the connections; false where the link is cut.
func (l *link) keep(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.severed || l.done {
		return false
	}
	for _, conn := range conns {
		l.conns[conn] = struct{}{}
	}
	return true
}

// chunk is what one read brought, and when it is due at the other end.
type chunk struct {
	data []byte
	due  time.Time
}

// pass carries one direction of a connection until it ends, then closes both ends.
func (l *link) pass(to io.WriteCloser, from io.ReadCloser) {
	chunks := make(chan chunk, linkChunks)
	l.wait.Go(func() {
		defer close(chunks)
		for {
			data := make([]byte, linkBuffer)
			n, err := from.Read(data)
			if n > 0 {
				l.mu.Lock()
				due := time.Now().Add(l.delay)
				l.mu.Unlock()
				chunks <- chunk{data: data[:n], due: due}
			}
			if err != nil {
				return
			}
		}
	})
	broken := false
	for c := range chunks {
		l.hold(c.due)
		if !broken {
			_, err := to.Write(c.data)
			broken = err != nil
		}
	}
	_, _ = to.Close(), from.Close()
}

// hold waits until something that is due then may pass.
func (l *link) hold(due time.Time) {
	l.mu.Lock()
	frozen, done := l.frozen, l.done
	l.mu.Unlock()
	if done {
		return
	}
	if late := time.Until(due); late > 0 {
		timer := time.NewTimer(late)
		<-timer.C
		l.mu.Lock()
		frozen = l.frozen
		l.mu.Unlock()
	}
	if frozen != nil {
		<-frozen
	}
}

// TestLink: bytes pass whole and in order, late where the link is slow, not at all while it is frozen, and a cut is felt.
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
	l := newLink(t, echo.Addr().String())
	dial := func() net.Conn {
		t.Helper()
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.addr())
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
	if !said("hello", readyTimeout) {
		t.Fatal("nothing passes")
	}
	l.slow(200 * time.Millisecond)
	began := time.Now()
	if !said("slow", readyTimeout) || time.Since(began) < 400*time.Millisecond {
		t.Errorf("an answer over a slow link took %v", time.Since(began))
	}
	l.mend()
	l.freeze()
	if said("late", 300*time.Millisecond) {
		t.Error("bytes pass a frozen link")
	}
	l.mend()
	if !said("", readyTimeout) {
		t.Error("what waited in the frozen link is lost")
	}
	l.cut()
	if said("cut", readyTimeout) {
		t.Error("a connection outlives the cut")
	}
	l.mend()
	conn = dial()
	if !said("again", readyTimeout) {
		t.Error("the mended link does not pass")
	}
}
