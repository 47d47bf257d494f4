package upstream

import (
	"bufio"
	"encoding/binary"
	"errors"
	"net"
	"net/http"
	"time"
)

// ErrFlood reports a peer that sends frames without content faster than any client needs to.
var ErrFlood = errors.New("too many WebSocket frames without data")

const (
	// idleFrameRate is how many frames without content a client may send each second, idleFrameBurst how many at once. Usual: one ping.
	idleFrameRate  = 20
	idleFrameBurst = 400
	// minFragment is the size from which a fragment counts as content, in bytes. Clients that send fragments send kilobytes.
	minFragment = 64
	// floodLinger is how long the connection stays open after ErrFlood, so that the client can read the close frame.
	floodLinger = time.Second
)

// frames parses the frames of a client and counts those without content: control frames, and fragments that are empty or nearly so.
// The last fragment of a message may be empty, as libraries send it.
type frames struct {
	head    [14]byte
	have    int   // bytes of head
	left    int64 // of the payload
	carried bool  // the current message had content
	room    float64
	at      time.Time
}

// saw parses the next bytes. It returns false if there are too many frames without content.
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

// length returns the lengths of the header and of the payload. It reports false while the header is incomplete.
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

// idle reports whether the frame with the current header has no content.
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
	return payload < minFragment
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

// watchedConn is a client's connection whose frames are counted. One goroutine reads.
type watchedConn struct {
	net.Conn
	frames frames
	flood  bool
}

// Read implements net.Conn.
func (c *watchedConn) Read(p []byte) (int, error) {
	for first := true; c.flood; first = false {
		if first {
			_ = c.SetReadDeadline(time.Now().Add(floodLinger)) // fails only on a connection without deadlines
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

// watchedWriter wraps the hijacked connection in a watchedConn.
type watchedWriter struct{ http.ResponseWriter }

// Hijack implements http.Hijacker.
func (w watchedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, both, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	c := &watchedConn{Conn: conn}
	early, _ := both.Peek(both.Reader.Buffered()) // never blocks
	c.flood = !c.frames.saw(early, time.Now())
	return c, both, nil
}
