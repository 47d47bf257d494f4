package upstream

import (
	"bufio"
	"encoding/binary"
	"errors"
	"net"
	"net/http"
	"time"
)

// ErrFlood says that a peer sends frames that carry nothing, faster than any client has reason to.
var ErrFlood = errors.New("too many WebSocket frames that carry nothing")

const (
	// idleFrameRate is how many frames that carry nothing a client may send each second, and idleFrameBurst how many at once:
	// a ping a second is usual.
	idleFrameRate  = 20
	idleFrameBurst = 400
	// fragmentLeast is what a fragment must carry to count as one that carries something, in bytes: clients that send in
	// pieces send kilobytes.
	fragmentLeast = 64
	// floodLinger is how long a client that was told off may take to read it, and what it still sends is discarded.
	floodLinger = time.Second
)

// frames follows the frames of a client and counts those that carry nothing: control frames, and fragments that are
// empty or nearly so. The last fragment of a message may be empty, as libraries send it.
type frames struct {
	head    [14]byte
	have    int   // bytes of head
	left    int64 // of the payload
	carried bool  // the message under way has carried something
	room    float64
	at      time.Time
}

// saw follows the next bytes; false at too many frames that carry nothing.
func (f *frames) saw(p []byte, now time.Time) bool {
	for len(p) > 0 {
		if f.left > 0 {
			n := min(f.left, int64(len(p)))
			f.left, p = f.left-n, p[n:]
			continue
		}
		f.head[f.have] = p[0]
		f.have, p = f.have+1, p[1:]
		size, payload, whole := f.length()
		if !whole || f.have < size {
			continue
		}
		f.have, f.left = 0, payload
		if f.idle(payload) && !f.spend(now) {
			return false
		}
	}
	return true
}

// length is that of the header, and of the payload behind it; false as long as the header does not tell.
func (f *frames) length() (size int, payload int64, known bool) {
	if f.have < 2 {
		return 0, 0, false
	}
	size, payload = 2, int64(f.head[1]&0x7f)
	switch payload {
	case 126:
		if size += 2; f.have < size {
			return 0, 0, false
		}
		payload = int64(binary.BigEndian.Uint16(f.head[2:]))
	case 127:
		if size += 8; f.have < size {
			return 0, 0, false
		}
		payload = int64(binary.BigEndian.Uint64(f.head[2:]) & (1<<63 - 1))
	}
	if f.head[1]&0x80 != 0 {
		size += 4
	}
	return size, payload, true
}

// idle tells whether the frame whose header is there carries nothing.
func (f *frames) idle(payload int64) bool {
	last, code := f.head[0]&0x80 != 0, f.head[0]&0x0f
	if code >= 8 {
		return true
	}
	carried := payload > 0 || f.carried
	f.carried = carried && !last
	if last {
		return !carried
	}
	return payload < fragmentLeast
}

func (f *frames) spend(now time.Time) bool {
	if f.at.IsZero() {
		f.room = idleFrameBurst
	} else {
		f.room = min(idleFrameBurst, f.room+now.Sub(f.at).Seconds()*idleFrameRate)
	}
	f.at = now
	f.room--
	return f.room >= 0
}

// watchedConn is a client's connection whose frames are followed. One goroutine reads.
type watchedConn struct {
	net.Conn
	frames frames
	flood  bool
}

// Read implements net.Conn.
func (c *watchedConn) Read(p []byte) (int, error) {
	for first := true; c.flood; first = false {
		if first {
			_ = c.SetReadDeadline(time.Now().Add(floodLinger)) // a connection without deadlines has none
		}
		if _, err := c.Conn.Read(p); err != nil {
			return 0, err
		}
	}
	n, err := c.Conn.Read(p)
	if !c.frames.saw(p[:n], time.Now()) {
		c.flood = true
		return 0, ErrFlood
	}
	return n, err
}

// watchedWriter gives its connection away followed.
type watchedWriter struct{ http.ResponseWriter }

// Hijack implements http.Hijacker.
func (w watchedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, both, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	c := &watchedConn{Conn: conn}
	early, _ := both.Peek(both.Reader.Buffered()) // what is buffered is there
	c.flood = !c.frames.saw(early, time.Now())
	return c, both, nil
}
