package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"modelrelay/providers"
)

// MaxMessage is the size of the largest WebSocket message in both directions, in bytes. Realtime events contain up to 15 MiB of
// audio, 20 MiB in Base64. Messages are copied in pieces; only CarryChecked holds a whole message.
const MaxMessage = 32 << 20

const (
	// socketPiece is how much of a message is copied at once. A message of at most this size stays one frame.
	socketPiece = 32 << 10
	// pongWait is how long the answer to a ping waits until the peer has accepted the message before it. The library gives the
	// answer five seconds and then closes the connection, which would affect peers that read slowly.
	pongWait = 4 * time.Second
	// pongRoom is how long the next message to such a peer waits for that answer.
	pongRoom = 50 * time.Millisecond
)

// Socket is one side of a realtime conversation. One goroutine reads its messages. Others may write messages to it one after the
// other. Ping and the closes may be called at any time. It answers the peer's pings while it waits for messages.
type Socket struct {
	conn *websocket.Conn
	// requestID is the upstream's id of the handshake.
	requestID string
	// reads counts the beginnings and ends of waits for the peer. It is odd during a wait.
	reads atomic.Uint64
	// free holds one token while nothing is being written. whole holds one while no message, which may have several pieces, is being written.
	free, whole chan struct{}
}

// oneMessage waits until no other message is being written to the socket. done lets the next one begin.
func (s *Socket) oneMessage() (done func()) {
	<-s.whole
	return func() { s.whole <- struct{}{} }
}

// RequestID is the upstream's id of the request that opened the conversation, "" for none.
func (s *Socket) RequestID() string { return s.requestID }

func newSocket() *Socket {
	s := &Socket{free: make(chan struct{}, 1), whole: make(chan struct{}, 1)}
	s.free <- struct{}{}
	s.whole <- struct{}{}
	return s
}

// DialSocket opens a WebSocket through the process's client to upstreams. It does not offer compression, because most of the
// content is encoded audio. The error is a *Fault as Send returns it. Its Reply holds the first KiB of a refusal.
func DialSocket(ctx context.Context, client *http.Client, address string, header http.Header) (*Socket, error) {
	seen := new(connection)
	seen.trace.GotConn = seen.got
	s := newSocket()
	conn, resp, err := websocket.Dial(httptrace.WithClientTrace(ctx, &seen.trace), address, &websocket.DialOptions{
		HTTPClient: client, HTTPHeader: header, OnPingReceived: s.pinged,
	})
	switch {
	case err == nil:
		s.conn, s.requestID = conn, RequestID(resp.Header)
		conn.SetReadLimit(MaxMessage)
		return s, nil
	case resp == nil:
		return nil, seen.fault(ctx, err)
	case resp.StatusCode == http.StatusSwitchingProtocols:
		return nil, &providers.Fault{
			Kind: providers.Upstream, Message: "The upstream switched protocols wrongly.", Blame: providers.BlameChannel,
			Err: err,
		}
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body) // the library has read it, bounded
	fault := Refusal(resp.StatusCode, resp.Header)
	fault.Upstream = reply(resp.StatusCode, resp.Header, body)
	return nil, fault
}

// AcceptSocket accepts a client's WebSocket. It selects no subprotocol other than the given one. The library answers other requests in
// plain text, so the caller checks before. Any origin is accepted: a page needs a token, which browsers do not add by themselves.
func AcceptSocket(w http.ResponseWriter, r *http.Request, subprotocol string) (*Socket, error) {
	s := newSocket()
	conn, err := websocket.Accept(watchedWriter{w}, r, &websocket.AcceptOptions{
		Subprotocols: []string{subprotocol}, InsecureSkipVerify: true, OnPingReceived: s.pinged,
	})
	if err != nil {
		return nil, err
	}
	s.conn = conn
	conn.SetReadLimit(MaxMessage)
	return s, nil
}

// pinged reports whether a ping is answered. A peer that accepts no message would not accept the answer either.
func (s *Socket) pinged(ctx context.Context, _ []byte) bool {
	select {
	case <-s.free:
		s.free <- struct{}{}
		return true
	default:
	}
	timer := time.NewTimer(pongWait)
	defer timer.Stop()
	select {
	case <-s.free: // the next message waits until the answer is out
		time.AfterFunc(pongRoom, func() { s.free <- struct{}{} })
		return true
	case <-timer.C:
		return false
	case <-ctx.Done():
		return false
	}
}

// Piece is a part of a copied message.
type Piece struct {
	Text  bool // of a text message, not a binary one
	Last  bool // the last of its message
	Lost  bool // the destination no longer accepts it
	Bytes []byte
}

// Broken is the error of a message that could not be copied: the failed socket and the cause.
type Broken struct {
	Socket *Socket
	// Writing: a write to the socket failed; otherwise a read.
	Writing bool
	Err     error
}

// Error implements error.
func (b *Broken) Error() string { return b.Err.Error() }

// Unwrap returns the cause.
func (b *Broken) Unwrap() error { return b.Err }

// Carrier copies messages between sockets. Its zero value is ready. It is safe for concurrent use.
type Carrier struct {
	// Stall is how long a peer may leave a piece of a message unread before its connection is cut; 0 means at once.
	Stall time.Duration

	buffers sync.Pool // of *[socketPiece]byte; a silent socket holds none
}

// Carry waits for the next message of a socket and copies it to another at the speed of that peer. It calls carried with each piece after
// writing it; carried must not keep the piece. If the destination accepts no more of a message, carried still sees the rest, which may
// contain usage. Carry returns a *Broken when either socket has ended. ctx should not end while the sockets are in use, which cuts them.
func (c *Carrier) Carry(ctx context.Context, from, to *Socket, carried func(Piece)) error {
	kind, message, err := from.next(ctx)
	if err != nil {
		return &Broken{Socket: from, Err: err}
	}
	return c.pass(ctx, from, to, kind, message, carried)
}

// MaxChecked is the size of the largest message that CarryChecked copies, in bytes. Clients send audio in events of a few KiB.
const MaxChecked = 1 << 20

// Check reads messages before they are copied.
type Check struct {
	// Look returns an answer for the sender; the message is then dropped. nil copies the message. A nil message was not held, because
	// it is longer than MaxChecked or there was no memory; Look must answer it.
	Look func(message []byte, text bool) (answer []byte)
	// Hold reserves memory for n more bytes of a message. Release returns what was reserved. One goroutine calls them.
	Hold    func(n int) error
	Release func()
}

// CarryChecked is Carry with a check of each message.
func (c *Carrier) CarryChecked(ctx context.Context, from, to *Socket, check *Check, carried func(Piece)) error {
	kind, message, err := from.next(ctx)
	if err != nil {
		return &Broken{Socket: from, Err: err}
	}
	defer check.Release()
	whole, err := from.all(message, check.Hold)
	if err != nil {
		return &Broken{Socket: from, Err: err}
	}
	receiver, as, words := to, kind, whole
	if answer := check.Look(whole, kind == websocket.MessageText); answer != nil {
		receiver, as, words = from, websocket.MessageText, answer
	}
	defer receiver.oneMessage()()
	if err := receiver.write(c.Stall, func() error { return receiver.conn.Write(ctx, as, words) }); err != nil {
		return &Broken{Socket: receiver, Writing: true, Err: err}
	}
	carried(Piece{Text: kind == websocket.MessageText, Last: true, Bytes: whole})
	return nil
}

// all reads the rest of a message. nil, after reading to the end: the message is longer than MaxChecked or there is no memory for it.
func (s *Socket) all(message io.Reader, hold func(n int) error) ([]byte, error) {
	var whole []byte
	for {
		if len(whole) == cap(whole) {
			room := min(max(socketPiece, 2*len(whole)), MaxChecked+1)
			if len(whole) > MaxChecked || hold(room-len(whole)) != nil {
				return nil, s.discard(message)
			}
			whole = append(make([]byte, 0, room), whole...)
		}
		// In pieces: a peer that sends bytes, however slowly, is alive.
		n, err := s.fill(message, whole[len(whole):min(len(whole)+socketPiece, cap(whole))])
		switch whole = whole[:len(whole)+n]; {
		case err == nil:
		case !errors.Is(err, io.EOF):
			return nil, err
		case len(whole) > MaxChecked:
			return nil, nil
		default:
			return whole, nil
		}
	}
}

func (s *Socket) discard(message io.Reader) error {
	var piece [4 << 10]byte
	for {
		switch _, err := s.fill(message, piece[:]); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

func (c *Carrier) pass(ctx context.Context, from, to *Socket, kind websocket.MessageType, message io.Reader, carried func(Piece)) error {
	defer to.oneMessage()()
	buf, ok := c.buffers.Get().(*[socketPiece]byte)
	if !ok {
		buf = new([socketPiece]byte)
	}
	defer c.buffers.Put(buf)
	piece := Piece{Text: kind == websocket.MessageText}
	var out io.WriteCloser // nil for a message of one piece
	var lost error         // *Broken: the rest is only read
	for !piece.Last {
		n, err := from.fill(message, buf[:])
		switch {
		case err == nil || errors.Is(err, io.EOF):
		case lost != nil:
			return lost
		default:
			return &Broken{Socket: from, Err: err}
		}
		piece.Last, piece.Bytes = err != nil, buf[:n]
		if piece.Lost {
			carried(piece)
			continue
		}
		if err := to.write(c.Stall, func() (err error) {
			switch {
			case out == nil && piece.Last:
				return to.conn.Write(ctx, kind, piece.Bytes)
			case out == nil:
				out, err = to.conn.Writer(ctx, kind)
			}
			if err == nil && n > 0 {
				_, err = out.Write(piece.Bytes)
			}
			if err == nil && piece.Last {
				err = out.Close()
			}
			return err
		}); err != nil {
			piece.Lost, lost = true, &Broken{Socket: to, Writing: true, Err: err}
		}
		carried(piece)
	}
	return lost
}

// write prevents answers to pings during a write, and closes the connection of a peer that reads nothing for too long.
func (s *Socket) write(stall time.Duration, write func() error) error {
	<-s.free
	defer func() { s.free <- struct{}{} }()
	stalled := time.AfterFunc(stall, s.CloseNow)
	defer stalled.Stop()
	return write()
}

func (s *Socket) next(ctx context.Context) (websocket.MessageType, io.Reader, error) {
	s.reads.Add(1)
	defer s.reads.Add(1)
	return s.conn.Reader(ctx)
}

// fill reads until the buffer is full or, with io.EOF, the message has ended.
func (s *Socket) fill(message io.Reader, buf []byte) (n int, err error) {
	s.reads.Add(1)
	defer s.reads.Add(1)
	for n < len(buf) && err == nil {
		var more int
		more, err = message.Read(buf[n:])
		n += more
	}
	return n, err
}

// Ping sends a ping and reports whether the peer is gone: the socket was read during the whole wait, and nothing arrived. It reports
// false for a peer that is not being read or that is being written to, and after the end of ctx. It returns when the socket is closed,
// not with ctx.
func (s *Socket) Ping(ctx context.Context, wait time.Duration) (gone bool) {
	select {
	case <-s.free: // nothing is being written, and the next write waits for the ping
		s.free <- struct{}{}
	default:
		return false
	}
	before := s.reads.Load()
	// A context that ends during the write of the ping would cut the connection before its close frame.
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), wait)
	defer cancel()
	err := s.conn.Ping(limit)
	return err != nil && ctx.Err() == nil && before%2 == 1 && s.reads.Load() == before
}

// Close sends a close frame with the code and reason and waits for the peer's, each for five seconds at most. A code that must not
// be sent becomes 1011. 1005 sends no code. Closing twice is safe.
func (s *Socket) Close(code websocket.StatusCode, reason string) {
	if !sendable(code) {
		code = websocket.StatusInternalError
	}
	reason = strings.ToValidUTF8(reason, "")
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "")
	}
	_ = s.conn.Close(code, reason) // closed in any case
}

// CloseNow cuts the connection.
func (s *Socket) CloseNow() { _ = s.conn.CloseNow() }

// maxReason is the maximum of a reason in a close frame, in bytes.
const maxReason = 123

// sendable reports whether RFC 6455, section 7.4, permits a code in a close frame; 1005 means no code.
func sendable(code websocket.StatusCode) bool {
	switch code {
	case 1004, websocket.StatusAbnormalClosure, websocket.StatusTLSHandshake:
		return false
	}
	return code >= websocket.StatusNormalClosure && code <= websocket.StatusBadGateway || code >= 3000 && code <= 4999
}
