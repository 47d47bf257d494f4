package openai_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/coder/websocket"

	"modelrelay/providers"
	"modelrelay/providers/openai"
	"modelrelay/providers/upstream"
)

// TestDialRealtimeOverTLS: an upstream that prefers HTTP/2 is asked in HTTP/1.1, which alone can be upgraded, and the
// end of the dial's context does not touch the conversation.
func TestDialRealtimeOverTLS(t *testing.T) {
	t.Parallel()
	said := make(chan string, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 || r.URL.String() != "/v1/realtime?model=up" || r.Header.Get("Authorization") != "Bearer k" {
			t.Errorf("got %s %s %v", r.Proto, r.URL, r.Header)
		}
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.CloseNow()
		_, message, err := conn.Read(context.WithoutCancel(r.Context()))
		if err != nil {
			t.Error(err)
		}
		said <- string(message)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	client := upstream.NewClient(&upstream.ClientOptions{TLS: &tls.Config{RootCAs: roots}})

	talking, err := dial(t, client, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	// Something to carry: a pair of sockets whose other end writes.
	near := make(chan *upstream.Socket, 1)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		socket, err := upstream.AcceptSocket(w, r, "realtime")
		if err != nil {
			t.Error(err)
			return
		}
		near <- socket
		var carrier upstream.Carrier
		carrier.Stall = time.Minute
		if err := carrier.Carry(context.WithoutCancel(r.Context()), socket, talking, func(upstream.Piece) {}); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(front.Close)
	conn, _, err := websocket.Dial(t.Context(), front.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Write(t.Context(), websocket.MessageText, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if got := <-said; got != "hello" {
		t.Errorf("got %q, want hello", got)
	}
	talking.CloseNow()
	(<-near).CloseNow()
	_ = conn.CloseNow()
}

// dial opens a conversation whose context has ended when dial returns.
func dial(t *testing.T, client *http.Client, url string, cause error) (*upstream.Socket, error) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	if cause != nil {
		cancel(cause)
	}
	to := providers.Target{Channel: providers.Channel{BaseURL: url + "/v1"}, Key: "k", Model: "up"}
	var socket *upstream.Socket
	err := openai.NewRealtime(client).DialRealtime(to, providers.RealtimeCall{Model: "pub"},
		func(client *http.Client, address string, header http.Header) (err error) {
			socket, err = upstream.DialSocket(ctx, client, address, header)
			return err
		})
	return socket, err
}

func TestDialRealtimeFaults(t *testing.T) {
	t.Parallel()
	answer := func(status int, headers ...string) *httptest.Server {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i+1 < len(headers); i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(`{"error":{"code":"c","param":"model"}}`))
		}))
		t.Cleanup(server.Close)
		return server
	}
	away := &httptest.Server{URL: "http://127.0.0.1:1"} // nothing listens on port 1
	slow := &providers.Fault{Kind: providers.Timeout, Message: "slow", Blame: providers.BlameChannel}
	for _, tc := range []struct {
		name   string
		server *httptest.Server
		cause  error
		kind   providers.Kind
		blame  providers.Blame
		after  time.Duration
	}{
		{name: "away", server: away, kind: providers.Upstream, blame: providers.BlameChannel},
		{name: "too slow", server: answer(200), cause: slow, kind: providers.Timeout, blame: providers.BlameChannel},
		{name: "caller gone", server: answer(200), cause: context.Canceled, kind: providers.Canceled},
		{name: "key", server: answer(401), kind: providers.Upstream, blame: providers.BlameKey},
		{name: "bad", server: answer(400), kind: providers.Invalid},
		{name: "rate", server: answer(429, "Retry-After", "3"), kind: providers.RateLimited, blame: providers.BlameKey, after: 3 * time.Second},
		{name: "full", server: answer(503), kind: providers.Overloaded, blame: providers.BlameChannel},
		{name: "no upgrade", server: answer(200), kind: providers.Upstream, blame: providers.BlameChannel},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			socket, err := dial(t, upstream.NewClient(nil), tc.server.URL, tc.cause)
			var fault *providers.Fault
			if !errors.As(err, &fault) {
				t.Fatalf("got %v and %v, want a fault", socket, err)
			}
			if fault.Kind != tc.kind || fault.Blame != tc.blame || fault.RetryAfter != tc.after {
				t.Errorf("got %+v, want kind %s, blame %d, after %s", fault, tc.kind, tc.blame, tc.after)
			}
			if tc.kind == providers.Invalid && (fault.Upstream == nil || fault.Upstream.Format != providers.OpenAI || fault.Code != "c" ||
				fault.Param != "model") {
				t.Errorf("the upstream's own words are lost: %+v", fault)
			}
		})
	}
}
