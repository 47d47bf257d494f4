package stack

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// Link is a TCP proxy in front of one process. A test can make it slow, cut it, stop one direction or leave it half open, and restore it,
// at any time. It is closed at the end of the test.
type Link struct {
	listener net.Listener
	target   string
	wait     sync.WaitGroup

	mu      sync.Mutex
	delay   time.Duration
	severed bool
	held    [2]chan struct{} // by direction, closed when it is let go; nil while bytes flow
	waiting [2]int           // reads that wait because their direction is held
	conns   map[net.Conn]struct{}
	done    bool
}

// Direction is one of the two in which bytes pass a link.
type Direction int

// The directions, seen from the client.
const (
	Towards Direction = iota // the target
	Back                     // from it
)

// linkChunks bounds the data in transit in one direction of one connection, in reads of linkBuffer bytes.
const (
	linkChunks = 256
	linkBuffer = 16 << 10
)

// NewLink listens for connections to the target.
func NewLink(t *testing.T, target string) *Link {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &Link{listener: listener, target: target, conns: make(map[net.Conn]struct{})}
	l.wait.Go(l.serve)
	t.Cleanup(l.close)
	return l
}

// Addr is where to connect instead of the target.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// Slow holds back every byte for so long in each direction, so an answer takes twice as long; throughput stays.
func (l *Link) Slow(delay time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay = delay
}

// Cut closes all connections, drops the data in transit, and refuses new connections.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.severed = true
	l.drop()
}

// Hold stops one direction: what comes waits in the link, and nothing is lost. New connections are accepted all the same.
func (l *Link) Hold(d Direction) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[d] == nil {
		l.held[d] = make(chan struct{})
	}
}

// Waiting counts the reads from the direction's connections that wait because it is held.
func (l *Link) Waiting(d Direction) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting[d]
}

// Freeze leaves connections half open: nothing passes any more and neither end learns of it.
func (l *Link) Freeze() {
	l.Hold(Towards)
	l.Hold(Back)
}

// Restore ends what Slow, Cut, Hold and Freeze have begun. What waited in a held connection arrives, late.
func (l *Link) Restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay, l.severed = 0, false
	l.release()
}

// drop closes all connections; the caller holds the lock.
func (l *Link) drop() {
	for conn := range l.conns {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset, as from a peer that is gone
		}
		_ = conn.Close()
	}
	clear(l.conns)
}

// release lets both directions flow; the caller holds the lock.
func (l *Link) release() {
	for d, held := range l.held {
		if held != nil {
			close(held)
			l.held[d] = nil
		}
	}
}

func (l *Link) close() {
	_ = l.listener.Close()
	l.mu.Lock()
	l.done = true
	l.drop()
	l.release()
	l.mu.Unlock()
	l.wait.Wait()
}

func (l *Link) serve() {
	for {
		in, err := l.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.DialTimeout("tcp", l.target, ReadyTimeout)
		if err != nil || !l.keep(in, out) {
			_ = in.Close()
			if err == nil {
				_ = out.Close()
			}
			continue
		}
		l.wait.Go(func() { l.pass(Towards, out, in) })
		l.wait.Go(func() { l.pass(Back, in, out) })
	}
}

// keep notes the connections; false where the link is cut.
func (l *Link) keep(conns ...net.Conn) bool {
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
func (l *Link) pass(d Direction, to io.WriteCloser, from io.ReadCloser) {
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
		l.await(d, c.due)
		if !broken {
			_, err := to.Write(c.data)
			broken = err != nil
		}
	}
	_, _ = to.Close(), from.Close()
}

// await waits until something that is due then may pass.
func (l *Link) await(d Direction, due time.Time) {
	l.mu.Lock()
	held, done := l.held[d], l.done
	l.mu.Unlock()
	if done {
		return
	}
	if late := time.Until(due); late > 0 {
		timer := time.NewTimer(late)
		<-timer.C
		l.mu.Lock()
		held = l.held[d]
		l.mu.Unlock()
	}
	if held != nil {
		l.countWaiting(d, 1)
		<-held
		l.countWaiting(d, -1)
	}
}

// countWaiting notes that n more reads wait.
func (l *Link) countWaiting(d Direction, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting[d] += n
}
