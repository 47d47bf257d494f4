package upstream_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/coder/websocket"

	"modelrelay/providers/upstream"
)

// TestSocketFlood: frames that carry nothing end a conversation when they are too many, and honest ones, with an empty
// last fragment each, do not.
func TestSocketFlood(t *testing.T) {
	t.Parallel()
	message := []byte{0x02, 0x81, 0, 0, 0, 0, 'x', 0x80, 0x80, 0, 0, 0, 0} // a byte, and an empty last fragment
	for name, test := range map[string]struct {
		frames []byte
		flood  bool
	}{
		"pings":               {bytes.Repeat([]byte{0x89, 0x80, 0, 0, 0, 0}, 5000), true},
		"pongs":               {bytes.Repeat([]byte{0x8a, 0x80, 0, 0, 0, 0}, 5000), true},
		"empty fragments":     {append([]byte{0x01, 0x80, 0, 0, 0, 0}, bytes.Repeat([]byte{0x00, 0x80, 0, 0, 0, 0}, 5000)...), true},
		"fragments of a byte": {append([]byte{0x01, 0x80, 0, 0, 0, 0}, bytes.Repeat([]byte{0x00, 0x81, 0, 0, 0, 0, 'x'}, 5000)...), true},
		"empty messages":      {bytes.Repeat([]byte{0x81, 0x80, 0, 0, 0, 0}, 5000), true},
		"some pings":          {bytes.Repeat([]byte{0x89, 0x80, 0, 0, 0, 0}, 100), false},
		"short messages":      {bytes.Repeat([]byte{0x82, 0x81, 0, 0, 0, 0, 'x'}, 5000), false},
		"messages in pieces":  {bytes.Repeat(message, 100), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ended := make(chan error, 1)
			sink, far := accepted(t)
			go func() {
				for {
					if _, _, err := far.Read(context.WithoutCancel(t.Context())); err != nil {
						return
					}
				}
			}()
			carrier := &upstream.Carrier{Stall: 30 * time.Second}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				socket, err := upstream.AcceptSocket(w, r, "realtime")
				if err != nil {
					ended <- err
					return
				}
				defer socket.CloseNow()
				for err == nil {
					err = carrier.Carry(context.WithoutCancel(r.Context()), socket, sink, func(upstream.Piece) {})
				}
				ended <- err
			}))
			t.Cleanup(server.Close)
			var conn net.Conn
			client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				var err error
				conn, err = new(net.Dialer).DialContext(ctx, network, addr)
				return conn, err
			}}}
			socket, _, err := websocket.Dial(t.Context(), server.URL, &websocket.DialOptions{HTTPClient: client})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = socket.CloseNow() }()
			go func() { // pongs are read, so that the server can write them
				_, _, _ = socket.Read(context.WithoutCancel(t.Context()))
			}()
			_, _ = conn.Write(test.frames)
			if !test.flood {
				_ = conn.(*net.TCPConn).CloseWrite()
			}
			select {
			case err := <-ended:
				if got := errors.Is(err, upstream.ErrFlood); got != test.flood {
					t.Errorf("ended with %v, want a flood: %t", err, test.flood)
				}
			case <-time.After(30 * time.Second):
				t.Fatal("the conversation goes on")
			}
		})
	}
}
