package upstream_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/coder/websocket"

	"modelrelay/providers/upstream"
)

// accepted is the server's side of a conversation, and the client's.
func accepted(t *testing.T) (*upstream.Socket, *websocket.Conn) {
	t.Helper()
	sockets := make(chan *upstream.Socket, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		socket, err := upstream.AcceptSocket(w, r, "realtime")
		if err != nil {
			t.Error(err)
		}
		sockets <- socket
	}))
	t.Cleanup(server.Close)
	conn, _, err := websocket.Dial(t.Context(), server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	socket := <-sockets
	t.Cleanup(func() {
		_ = conn.CloseNow()
		socket.CloseNow()
	})
	return socket, conn
}

// TestCarryShowsWhatGotLost: a message whose reader has left is seen all the same, to its end: it may have the usage that the
// upstream charges.
func TestCarryShowsWhatGotLost(t *testing.T) {
	t.Parallel()
	for name, message := range map[string][]byte{"of one piece": []byte("used: 7"), "of several": bytes.Repeat([]byte("used: 7 "), 20_000)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			side, vendor := accepted(t)
			client, _ := accepted(t)
			client.CloseNow()
			sent := make(chan error, 1)
			go func() { sent <- vendor.Write(context.WithoutCancel(t.Context()), websocket.MessageText, message) }()
			var carrier upstream.Carrier
			var seen []byte
			ended := false
			err := carrier.Carry(context.WithoutCancel(t.Context()), side, client, func(piece upstream.Piece) {
				if !piece.Lost || !piece.Text {
					t.Errorf("a piece of %d bytes: lost %t, text %t", len(piece.Bytes), piece.Lost, piece.Text)
				}
				seen, ended = append(seen, piece.Bytes...), piece.Last
			})
			var broken *upstream.Broken
			if !errors.As(err, &broken) || broken.Socket != client || !broken.Writing {
				t.Errorf("got %v, want that the client takes no more", err)
			}
			if err := <-sent; err != nil || !ended || !bytes.Equal(seen, message) {
				t.Errorf("saw %d of %d bytes, the end: %t, %v", len(seen), len(message), ended, err)
			}
		})
	}
}
