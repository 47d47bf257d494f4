package api_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"modelrelay/api"
	"modelrelay/api/edge"
	"modelrelay/providers/relay"
	"modelrelay/storage"
	"modelrelay/storage/limits"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/testwait"
	"modelrelay/storage/tokens"
)

// closeFrame is what one side said at the end; code -1: it broke off.
type closeFrame struct {
	code   websocket.StatusCode
	reason string
}

func frameOf(err error) closeFrame {
	if closed, ok := errors.AsType[websocket.CloseError](err); ok {
		return closeFrame{closed.Code, closed.Reason}
	}
	return closeFrame{code: -1}
}

// listen is an upstream that reports how the gateway closed.
func listen(ends chan<- closeFrame) func(context.Context, *websocket.Conn) {
	return func(ctx context.Context, conn *websocket.Conn) {
		for {
			if _, _, err := conn.Read(ctx); err != nil {
				ends <- frameOf(err)
				return
			}
		}
	}
}

func (d *dialog) wantEnd(t *testing.T, ends <-chan closeFrame, want closeFrame) {
	t.Helper()
	select {
	case got := <-ends:
		if got != want {
			t.Errorf("upstream: ended with %+v, want %+v", got, want)
		}
	case <-within(t).Done():
		t.Error("the upstream received no close")
	}
}

func TestRealtimeCloseOfTheUpstream(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		close  func(*websocket.Conn)
		code   websocket.StatusCode
		reason string
	}{
		{"normal", func(c *websocket.Conn) { _ = c.Close(websocket.StatusNormalClosure, "") }, websocket.StatusNormalClosure, ""},
		{"private", func(c *websocket.Conn) { _ = c.Close(4001, "session_expired é") }, 4001, "session_expired é"},
		{"longest reason", func(c *websocket.Conn) { _ = c.Close(3000, strings.Repeat("x", 123)) }, 3000, strings.Repeat("x", 123)},
		{"no reason in words", func(c *websocket.Conn) { _ = c.Close(3000, "a\xffb") }, 3000, "ab"},
		{"no code", func(c *websocket.Conn) { _ = c.Close(websocket.StatusNoStatusRcvd, "") }, websocket.StatusNoStatusRcvd, ""},
		{"cut", func(c *websocket.Conn) { _ = c.CloseNow() }, websocket.StatusInternalError, "the upstream disconnected"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d := newDialog(t, dialogOptions{}, func(ctx context.Context, conn *websocket.Conn) {
				_ = conn.Write(ctx, websocket.MessageText, []byte("last words"))
				tc.close(conn)
			})
			conn := d.dial(t)
			if _, got, err := conn.Read(within(t)); err != nil || string(got) != "last words" {
				t.Errorf("got %q and %v before the end", got, err)
			}
			mustEnd(t, conn, tc.code, tc.reason)
		})
	}
}

func TestRealtimeCloseOfTheClient(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		close func(*websocket.Conn)
		want  closeFrame
	}{
		{
			"normal", func(c *websocket.Conn) { _ = c.Close(websocket.StatusNormalClosure, "bye") },
			closeFrame{websocket.StatusNormalClosure, "bye"},
		},
		{"private", func(c *websocket.Conn) { _ = c.Close(4999, "") }, closeFrame{4999, ""}},
		{"no code", func(c *websocket.Conn) { _ = c.Close(websocket.StatusNoStatusRcvd, "") }, closeFrame{websocket.StatusNoStatusRcvd, ""}},
		{"gone", func(c *websocket.Conn) { _ = c.CloseNow() }, closeFrame{websocket.StatusGoingAway, "the client disconnected"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			ends := make(chan closeFrame, 1)
			d := newDialog(t, dialogOptions{}, listen(ends))
			tc.close(d.dial(t))
			d.wantEnd(t, ends, tc.want)
		})
	}
}

// TestRealtimeCloseWhileTheOtherTalks: the code of a side that closes is not lost to the error of a write to it.
func TestRealtimeCloseWhileTheOtherTalks(t *testing.T) {
	t.Parallel()
	ends := make(chan closeFrame, 1)
	d := newDialog(t, dialogOptions{}, func(ctx context.Context, conn *websocket.Conn) {
		go func() {
			for conn.Write(ctx, websocket.MessageBinary, make([]byte, 100)) == nil {
			}
		}()
		listen(ends)(ctx, conn)
	})
	for range 20 {
		conn := d.dial(t)
		if _, _, err := conn.Read(within(t)); err != nil {
			t.Fatal(err)
		}
		_ = conn.Close(4002, "enough")
		d.wantEnd(t, ends, closeFrame{4002, "enough"})
	}
}

func TestRealtimeTooBig(t *testing.T) {
	t.Parallel()
	big := make([]byte, 32<<20+1)
	t.Run("client", func(t *testing.T) {
		t.Parallel()
		ends := make(chan closeFrame, 1)
		d := newDialog(t, dialogOptions{}, listen(ends))
		conn := d.dial(t)
		go func() { _ = conn.Write(within(t), websocket.MessageBinary, big) }()
		mustEnd(t, conn, websocket.StatusMessageTooBig, "*")
		d.wantEnd(t, ends, closeFrame{websocket.StatusMessageTooBig, "a message is larger than 32 MiB"})
	})
	t.Run("upstream", func(t *testing.T) {
		t.Parallel()
		d := newDialog(t, dialogOptions{}, func(ctx context.Context, conn *websocket.Conn) {
			_ = conn.Write(ctx, websocket.MessageBinary, big)
			_, _, _ = conn.Read(ctx)
		})
		mustEnd(t, d.dial(t), websocket.StatusMessageTooBig, "a message is larger than 32 MiB")
	})
}

// raw opens a conversation and leaves its bare connection to the test.
func (d *dialog) raw(t *testing.T) net.Conn {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := (&net.Dialer{Timeout: patience}).DialContext(t.Context(), "tcp", req.URL.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, err = io.WriteString(conn, "GET "+req.URL.RequestURI()+" HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+goodKey+
		"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	var head []byte
	for one := make([]byte, 1); !bytes.HasSuffix(head, []byte("\r\n\r\n")); head = append(head, one[0]) {
		if _, err := conn.Read(one); err != nil {
			t.Fatalf("%v after %q", err, head)
		}
	}
	if !bytes.HasPrefix(head, []byte("HTTP/1.1 101 ")) {
		t.Fatalf("got %q, want 101", head)
	}
	return conn
}

func TestRealtimeGarbage(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, frame string }{
		{"unmasked", "\x81\x02hi"},
		{"reserved bits", "\xf1\x80\x00\x00\x00\x00"},
		{"unknown opcode", "\x83\x80\x00\x00\x00\x00"},
		{"continuation of nothing", "\x80\x80\x00\x00\x00\x00"},
		{"long control frame", "\x89\xfe\x00\x80\x00\x00\x00\x00"},
		{"code that may not be sent", "\x88\x82\x00\x00\x00\x00\x03\xee"},
		{"another protocol", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"},
		{"end within a frame", "\x81\xfe\x10\x00\x00\x00\x00\x00hal"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			ends := make(chan closeFrame, 1)
			d := newDialog(t, dialogOptions{}, listen(ends))
			conn := d.raw(t)
			if _, err := io.WriteString(conn, tc.frame); err != nil {
				t.Fatal(err)
			}
			if half, ok := conn.(*net.TCPConn); ok {
				_ = half.CloseWrite()
			}
			answer, err := io.ReadAll(conn)
			if err != nil {
				t.Errorf("the connection was not closed: %v", err)
			}
			if tc.name != "end within a frame" && (len(answer) < 4 || answer[0] != 0x88 || answer[2] != 0x03 || answer[3] != 0xea) {
				t.Errorf("got %q, want a close frame with 1002", answer)
			}
			d.wantEnd(t, ends, closeFrame{websocket.StatusGoingAway, "the client disconnected"})
		})
	}
}

// TestRealtimeFlood: a client that sends nothing, much too often, is closed with 1008, however it does so.
func TestRealtimeFlood(t *testing.T) {
	t.Parallel()
	const mask = "\x00\x00\x00\x00"
	for name, flood := range map[string]string{
		"pongs": strings.Repeat("\x8a\x80"+mask, 2000), "empty fragments": "\x01\x80" + mask + strings.Repeat("\x00\x80"+mask, 2000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ends := make(chan closeFrame, 1)
			d := newDialog(t, dialogOptions{}, listen(ends))
			conn := d.raw(t)
			if _, err := io.WriteString(conn, flood); err != nil {
				t.Fatal(err)
			}
			if half, ok := conn.(*net.TCPConn); ok {
				_ = half.CloseWrite()
			}
			answer, err := io.ReadAll(conn)
			if err != nil || len(answer) < 4 || answer[0] != 0x88 || answer[2] != 0x03 || answer[3] != 0xf0 {
				t.Errorf("got %q, %v, want a close frame with 1008", answer, err)
			}
			d.wantEnd(t, ends, closeFrame{websocket.StatusGoingAway, "the client disconnected"})
			testwait.Eventually(t, "the log has the fault", patience, func() bool { return strings.Contains(d.log.String(), `"fault":"rate_limited"`) })
		})
	}
}

func TestRealtimeGarbageOfTheUpstream(t *testing.T) {
	t.Parallel()
	d := newDialog(t, dialogOptions{}, func(ctx context.Context, conn *websocket.Conn) {
		_ = conn.Write(ctx, 3, []byte("no such opcode"))
		_, _, _ = conn.Read(ctx)
	})
	mustEnd(t, d.dial(t), websocket.StatusInternalError, "the upstream disconnected")
	testwait.Eventually(t, "the log has the fault", patience, func() bool { return strings.Contains(d.log.String(), `"fault":"upstream"`) })
}

// revocable are the tokens of the harness until off.
type revocable struct {
	edge.Tokens

	off *atomic.Pointer[error]
}

func (r revocable) Authenticate(ctx context.Context, key string) (*tokens.Token, error) {
	if err := r.off.Load(); err != nil {
		return nil, *err
	}
	return r.Tokens.Authenticate(ctx, key)
}

func TestRealtimeRevokedToken(t *testing.T) {
	t.Parallel()
	ends := make(chan closeFrame, 1)
	off := new(atomic.Pointer[error])
	d := newDialog(t, dialogOptions{api: func(o *api.Options) {
		o.Tokens = revocable{o.Tokens, off}
	}}, listen(ends))
	conn := d.dial(t)
	unavailable, gone := storage.ErrUnavailable, storage.ErrNotFound
	off.Store(&unavailable)
	// Redis being away ends nothing: two checks pass.
	quiet, cancel := context.WithTimeout(t.Context(), 1200*time.Millisecond)
	defer cancel()
	select {
	case end := <-ends:
		t.Errorf("ended with %+v while Redis is away", end)
	case <-quiet.Done():
	}
	off.Store(&gone)
	began := time.Now()
	const reason = "going away: the API key may no longer be used"
	mustEnd(t, conn, websocket.StatusGoingAway, reason)
	d.wantEnd(t, ends, closeFrame{websocket.StatusGoingAway, reason})
	t.Logf("ended after %s", time.Since(began))
}

func TestRealtimeDrain(t *testing.T) {
	t.Parallel()
	ends := make(chan closeFrame, 2)
	d := newDialog(t, dialogOptions{}, listen(ends))
	first, second := d.dial(t), d.dial(t)
	d.Drain()
	d.Drain()
	const reason = "going away: the gateway is stopping"
	for _, conn := range []*websocket.Conn{first, second} {
		mustEnd(t, conn, websocket.StatusGoingAway, reason)
		d.wantEnd(t, ends, closeFrame{websocket.StatusGoingAway, reason})
	}
	_, answer, err := d.try(t, d.url)
	if err == nil || answer.status != http.StatusServiceUnavailable || answer.header.Get("Retry-After") == "" {
		t.Errorf("a new conversation: got %d, %v, want 503 with Retry-After", answer.status, err)
	}
}

func TestRealtimeIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ends := make(chan closeFrame, 1)
		d := newDialogInABubble(t, dialogOptions{relay: relay.Options{SocketIdle: 10 * time.Minute, SocketPing: 20 * time.Second}}, listen(ends))
		const reason = "going away: no message for too long"
		began, reading := time.Now(), make(chan error, 1)
		conn := d.dial(t)
		go func() {
			_, _, err := conn.Read(t.Context())
			reading <- err
		}()
		if got, want := frameOf(<-reading), (closeFrame{websocket.StatusGoingAway, reason}); got != want { // pings and pongs are no talk
			t.Errorf("client: ended with %+v, want %+v", got, want)
		}
		if took := time.Since(began); took < 10*time.Minute || took > 11*time.Minute {
			t.Errorf("ended after %v, want ten minutes", took)
		}
		d.wantEnd(t, ends, closeFrame{websocket.StatusGoingAway, reason})
	})
}

// TestRealtimeSilentPeer: a side that answers no ping is gone, however open its connection looks.
func TestRealtimeSilentPeer(t *testing.T) {
	t.Parallel()
	opts := dialogOptions{relay: relay.Options{SocketPing: time.Second, SocketIdle: 2 * time.Hour}}
	t.Run("client", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			ends := make(chan closeFrame, 1)
			d := newDialogInABubble(t, opts, listen(ends))
			d.quiet(t)
			d.wantEnd(t, ends, closeFrame{websocket.StatusGoingAway, "the client disconnected"})
		})
	})
	t.Run("upstream", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			silent := opts
			silent.silent = true
			ends := make(chan closeFrame, 1)
			d := newDialogInABubble(t, silent, listen(ends))
			mustEnd(t, d.dial(t), websocket.StatusInternalError, "the upstream disconnected")
			<-ends
		})
	})
	t.Run("neither", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			d := newDialogInABubble(t, opts, echo)
			conn := d.dial(t)
			reading := conn.CloseRead(t.Context())
			select {
			case <-time.After(time.Hour):
			case <-reading.Done():
				t.Error("the conversation ended though both sides answer pings")
			}
		})
	})
}

// quiet opens a conversation, reads all that comes and answers nothing.
func (d *dialog) quiet(t *testing.T) {
	t.Helper()
	conn, _, err := websocket.Dial(within(t), d.url, &websocket.DialOptions{
		HTTPClient: d.client, HTTPHeader: http.Header{"Authorization": {"Bearer " + goodKey}},
		OnPingReceived: func(context.Context, []byte) bool { return false },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	conn.CloseRead(t.Context())
}

// TestRealtimeStalledPeer: a side that takes nothing at all is cut off in the end.
func TestRealtimeStalledPeer(t *testing.T) {
	t.Parallel()
	ends := make(chan closeFrame, 1)
	d := newDialog(t, dialogOptions{relay: relay.Options{SocketStall: 200 * time.Millisecond}},
		func(ctx context.Context, conn *websocket.Conn) {
			go func() {
				for conn.Write(ctx, websocket.MessageBinary, make([]byte, 1<<20)) == nil {
				}
			}()
			listen(ends)(ctx, conn)
		})
	d.raw(t)
	d.wantEnd(t, ends, closeFrame{websocket.StatusGoingAway, "the client disconnected"})
}

// TestRealtimeMaxSockets: the limit holds over the processes that share one Redis, and a place comes back.
func TestRealtimeMaxSockets(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	client := storagetest.Client(t, "redis://"+server.Addr())
	start := func() *dialog {
		return newDialog(t, dialogOptions{api: func(o *api.Options) {
			limiter := limits.New(client, nil)
			t.Cleanup(func() { _ = limiter.Close(context.WithoutCancel(t.Context())) })
			o.Limits = limiter
			o.Tokens = fakeTokens{goodKey: {ID: "good", Name: "good", Group: "default", Limits: tokens.Limits{MaxSockets: 2}}}
		}}, echo)
	}
	one, two := start(), start()
	first := one.dial(t)
	mustEcho(t, two.dial(t), websocket.MessageText, []byte("hi"))
	for _, d := range []*dialog{one, two} {
		_, answer, err := d.try(t, d.url)
		if err == nil || answer.status != http.StatusTooManyRequests || answer.header.Get("Retry-After") == "" {
			t.Fatalf("a third connection: got %d, %v, want 429 with Retry-After", answer.status, err)
		}
	}
	_ = first.Close(websocket.StatusNormalClosure, "")
	testwait.Eventually(t, "the place is free again", patience, func() bool {
		_, _, err := two.try(t, two.url)
		return err == nil
	})
}

// TestRealtimeLeaksNothing: after conversations of every ending no goroutine of the servers is left. Goroutines inherit
// labels, so other tests do not disturb.
func TestRealtimeLeaksNothing(t *testing.T) {
	t.Parallel()
	pprof.Do(t.Context(), pprof.Labels("leaks", "realtime"), func(context.Context) {
		converseInEveryWay(t) //nolint:contextcheck // the test's own context bounds it
	})
	testwait.Eventually(t, "goroutines end", patience, func() bool { return leaked(t) == 0 })
}

// converseInEveryWay runs a gateway and an upstream through every ending, the last with both running on.
func converseInEveryWay(t *testing.T) {
	t.Helper()
	ends := make(chan closeFrame, 100)
	d := &dialog{shakes: make(chan *http.Request, 100)}
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("intent") == "refuse" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		ctx := context.WithoutCancel(r.Context())
		if r.URL.Query().Get("intent") == "close" {
			_ = conn.Close(4000, "")
			return
		}
		listen(ends)(ctx, conn)
	}))
	d.start(t, dialogOptions{}, upstream)
	for range 10 {
		_ = d.dial(t).Close(websocket.StatusNormalClosure, "")
		_ = d.dial(t).CloseNow()
		_ = d.raw(t).Close()
		conn, _, err := d.try(t, d.url+"&intent=close")
		if err != nil {
			t.Fatal(err)
		}
		mustEnd(t, conn, 4000, "")
		if _, _, err := d.try(t, d.url+"&intent=refuse"); err == nil {
			t.Fatal("not refused")
		}
	}
	open := []*websocket.Conn{d.dial(t), d.dial(t)}
	if leaked(t) == 0 {
		t.Error("open conversations do not show, so leaks would not")
	}
	d.Drain()
	for _, conn := range open {
		mustEnd(t, conn, websocket.StatusGoingAway, "*")
	}
}

// leaked counts the goroutines under the test's label that carry or attend a conversation, or an upstream's end of one.
func leaked(t *testing.T) int {
	t.Helper()
	var all strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		t.Fatal(err)
	}
	n := 0
	for stack := range strings.SplitSeq(all.String(), "\n\n") {
		if strings.Contains(stack, `"leaks":"realtime"`) &&
			(strings.Contains(stack, "coder/websocket") || strings.Contains(stack, "modelrelay/providers") ||
				strings.Contains(stack, "modelrelay/api.")) {
			n++
		}
	}
	return n
}

// edited answers with tokens as an operator left them.
type edited struct {
	edge.Tokens

	edit *atomic.Pointer[func(*tokens.Token)]
}

func (e edited) Authenticate(ctx context.Context, key string) (*tokens.Token, error) {
	token, err := e.Tokens.Authenticate(ctx, key)
	if edit := e.edit.Load(); err == nil && edit != nil {
		changed := *token
		(*edit)(&changed)
		return &changed, nil
	}
	return token, err
}

// TestRealtimeLostPermission: a conversation does not outlive what its token was allowed.
func TestRealtimeLostPermission(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*tokens.Token){
		"operation": func(token *tokens.Token) { token.Operations = []string{tokens.OperationRelay} },
		"network":   func(token *tokens.Token) { token.Networks = []string{"203.0.113.0/24"} },
		"model":     func(token *tokens.Token) { token.Models = []string{"something-else"} },
		"expiry":    func(token *tokens.Token) { token.Expires = time.Now().Add(-time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ends := make(chan closeFrame, 1)
			change := new(atomic.Pointer[func(*tokens.Token)])
			d := newDialog(t, dialogOptions{api: func(o *api.Options) { o.Tokens = edited{o.Tokens, change} }}, listen(ends))
			conn := d.dial(t)
			change.Store(&edit)
			const reason = "going away: the API key may no longer be used"
			mustEnd(t, conn, websocket.StatusGoingAway, reason)
			d.wantEnd(t, ends, closeFrame{websocket.StatusGoingAway, reason})
		})
	}
}
