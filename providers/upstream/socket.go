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

// MaxMessage is the largest WebSocket message that passes, in bytes, either way. Realtime events hold up to 15 MiB of
// sound, which base64 makes 20 MiB. A message is carried in pieces, and held whole by CarryChecked alone.
const MaxMessage = 32 << 20

const (
	// socketPiece is how much of a message is carried at once; a message that fits stays one frame.
	socketPiece = 32 << 10
	// pongWait is how long the answer to a ping waits for the peer to take the message before it. The library gives the
	// answer five seconds and then gives up the connection, with which a peer that reads slowly would be punished.
	pongWait = 4 * time.Second
	// pongRoom is how long the next message to such a peer lets the answer go first.
	pongRoom = 50 * time.Millisecond
)

// Socket is one side of a realtime conversation. One goroutine carries its messages on, others may carry messages to
// it, one after the other; Ping and the closes may be called at any time. Pings of the peer are answered while its messages are awaited.
type Socket struct {
	conn *websocket.Conn
	// requestID is what an upstream calls its handshake.
	requestID string
	// reads counts beginnings and ends of waits for the peer: odd while one lasts.
	reads atomic.Uint64
	// free holds one token while nothing is being written, and whole one while no message is under way, which may be written in
	// pieces.
	free, whole chan struct{}
}

// oneMessage waits until no other message is under way to the socket; done lets the next one begin.
func (s *Socket) oneMessage() (done func()) {
	<-s.whole
	return func() { s.whole <- struct{}{} }
}

// RequestID is what the upstream calls the request that opened the conversation, "" where it does not say.
func (s *Socket) RequestID() string { return s.requestID }

func newSocket() *Socket {
	s := &Socket{free: make(chan struct{}, 1), whole: make(chan struct{}, 1)}
	s.free <- struct{}{}
	s.whole <- struct{}{}
	return s
}

// DialSocket opens a WebSocket through the process's client to upstreams. Compression is not offered: what passes is
// mostly encoded sound, and would be inflated only to be deflated again. The error is a *Fault as Send makes it; of a
// refusal's body its Reply holds the first KiB.
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
		return nil, &providers.Fault{Kind: providers.Upstream, Message: "The upstream switched protocols wrongly.", Blame: providers.BlameChannel, Err: err}
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body) // the library has read it, bounded
	fault := Refusal(resp.StatusCode, resp.Header)
	fault.Upstream = &providers.Reply{
		Status: resp.StatusCode, ContentType: resp.Header.Get("Content-Type"), Body: body, RequestID: RequestID(resp.Header),
	}
	return nil, fault
}

// AcceptSocket takes a client's WebSocket. Of the subprotocols it offers only the one given may be selected. The
// library answers what is no WebSocket request, in plain text: check before. Any origin is welcome: a page must know
// a token to come this far, since no browser adds one by itself as it adds cookies.
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

// pinged tells whether a ping is to be answered. A peer that takes no message would not take the answer either.
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

// Piece is a part of a message that was carried.
type Piece struct {
	Text  bool // of a text message, not a binary one
	Last  bool // ends its message
	Lost  bool // the socket it was carried to took it no more
	Bytes []byte
}

// Broken is why a message could not be carried on: the socket at fault and what it said.
type Broken struct {
	Socket *Socket
	// Writing: the socket took no more; else no more could be read from it.
	Writing bool
	Err     error
}

// Error implements error.
func (b *Broken) Error() string { return b.Err.Error() }

// Unwrap returns the cause.
func (b *Broken) Unwrap() error { return b.Err }

// Carrier carries messages between sockets. Its zero value is ready; it is safe for concurrent use.
type Carrier struct {
	// Stall is how long a peer may leave a piece of a message untaken before its connection is cut; 0 means at once.
	Stall time.Duration

	buffers sync.Pool // of *[socketPiece]byte: a silent socket holds none
}

// Carry waits for the next message of a socket and carries it to another as that takes it, so that a slow reader slows
// the sender down. carried sees each piece once it is written, and must not keep it; those of a message that the other
// socket takes no more it sees all the same, since they may say what was used. What ends a Carry, before a
// message or within one, is that either socket ends; the error is then a *Broken. ctx should not end while the sockets
// are in use: it would cut them off without a word.
func (c *Carrier) Carry(ctx context.Context, from, to *Socket, carried func(Piece)) error {
	kind, message, err := from.next(ctx)
	if err != nil {
		return &Broken{Socket: from, Err: err}
	}
	return c.pass(ctx, from, to, kind, message, carried)
}

// MaxChecked is the size of the largest message that CarryChecked carries, in bytes: it is held whole until it is looked
// at. A tenth of a second of speech, in which clients send it, is a few KiB, and the rest of what they say is smaller.
const MaxChecked = 1 << 20

// Check looks at messages before they are carried on.
type Check struct {
	// Look returns what the sender is answered instead of having its message carried on, a text; nil: the message goes on. A
	// message of nil is one that was not held, for being longer than MaxChecked or for want of room, and must be answered.
	Look func(message []byte, text bool) (answer []byte)
	// Hold takes room for n bytes more of a message, Release gives back what was taken. One goroutine calls them.
	Hold    func(n int) error
	Release func()
}

// CarryChecked is Carry for messages that are looked at first.
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

// all reads the rest of a message; nil: it is longer than MaxChecked or there is no room for it, and it has been read to its end
// all the same.
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
		// A piece at a time: a peer whose bytes come is there, however slowly they do.
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

// discard reads the rest of a message, a piece at a time as all does.
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

// pass carries a message that has begun.
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

// write keeps answers to pings out of the way and cuts off a peer that takes nothing for too long.
func (s *Socket) write(stall time.Duration, write func() error) error {
	<-s.free
	defer func() { s.free <- struct{}{} }()
	stalled := time.AfterFunc(stall, s.CloseNow)
	defer stalled.Stop()
	return write()
}

// next waits for a message.
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

// Ping asks the peer for a sign of life and tells whether it is gone: it was listened to for the whole of the wait and
// let nothing be heard. A peer whose messages were not being awaited, or that is being written to, is not judged, nor
// any once ctx has ended. It returns when the socket is closed, not with ctx.
func (s *Socket) Ping(ctx context.Context, wait time.Duration) (gone bool) {
	select {
	case <-s.free: // nothing is being written; what begins to be waits for the ping to be out, or goes first
		s.free <- struct{}{}
	default:
		return false
	}
	before := s.reads.Load()
	// A context that ends while the ping is being written would cut the connection before its goodbye.
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), wait)
	defer cancel()
	err := s.conn.Ping(limit)
	return err != nil && ctx.Err() == nil && before%2 == 1 && s.reads.Load() == before
}

// Close says goodbye with the code and reason and waits for the peer's own, each for five seconds at most. A code that
// must not be sent becomes 1011; 1005, which means that none was given, gives none. Closing twice is no error.
func (s *Socket) Close(code websocket.StatusCode, reason string) {
	if !sendable(code) {
		code = websocket.StatusInternalError
	}
	reason = strings.ToValidUTF8(reason, "")
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "")
	}
	_ = s.conn.Close(code, reason) // it is closed in any case
}

// CloseNow cuts the connection.
func (s *Socket) CloseNow() { _ = s.conn.CloseNow() }

// maxReason is what a close frame has room for, in bytes.
const maxReason = 123

// sendable tells the codes that RFC 6455, section 7.4, lets stand in a close frame, and 1005, which stands for none.
func sendable(code websocket.StatusCode) bool {
	switch code {
	case 1004, websocket.StatusAbnormalClosure, websocket.StatusTLSHandshake:
		return false
	}
	return code >= websocket.StatusNormalClosure && code <= websocket.StatusBadGateway || code >= 3000 && code <= 4999
}
