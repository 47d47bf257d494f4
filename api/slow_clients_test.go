package api_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"modelrelay/api"
	"modelrelay/providers"
	"modelrelay/storage/testwait"
)

// TestBodyThatNeverComes: if a body does not arrive, the request is answered and its connection closed in time, with or without a token.
func TestBodyThatNeverComes(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, func(_ *gateway, o *api.Options) { o.BodyTimeout = 100 * time.Millisecond })
	server := httptest.NewServer(g.Handler())
	t.Cleanup(server.Close)
	form := "--b\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\na cat\r\n--b--\r\n"
	for _, test := range []struct {
		name, method, path, key, header, body string
		status                                int
	}{
		{"no token", "POST", "/v1/chat/completions", "sk-none", "Content-Length: 100", "", 401},
		{"no token, chunked", "POST", "/v1/chat/completions", "sk-none", "Transfer-Encoding: chunked", "5\r\n{\"mod", 401},
		{"no route", "POST", "/nope", "", "Content-Length: 100", "", 404},
		{"probe", "GET", "/healthz", "", "Content-Length: 100", "", 200},
		{"nothing to read", "GET", "/v1/models", goodKey, "Content-Length: 100", "{", 200},
		{"broken off", "POST", "/v1/chat/completions", goodKey, "Content-Length: 100", `{"model":`, 400},
		{"refused", "POST", "/v1/chat/completions", goodKey, "Content-Encoding: br\r\nContent-Length: 100", "", 415},
		{
			"form with more to come", "POST", "/v1/videos", goodKey,
			"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 1000", form, 400,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n%s\r\n\r\n%s",
				test.method, test.path, test.key, test.header, test.body)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatalf("no answer: %v", err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != test.status || !resp.Close {
				t.Errorf("got %d, closed after it: %t, want %d and true", resp.StatusCode, resp.Close, test.status)
			}
		})
	}
}

// TestBodyTimeoutSparesTheAnswer: the timeout of a body ends with the body, so a long answer is not cut off.
func TestBodyTimeoutSparesTheAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, bodyTimeoutSparesTheAnswer)
}

func bodyTimeoutSparesTheAnswer(t *testing.T) {
	const timeout = 50 * time.Millisecond
	g := newGateway(t, func(ctx context.Context, _ providers.Target, _ *providers.Call) (*http.Response, error) {
		select {
		case <-time.After(4 * timeout):
			return upstreamAnswer("application/json", `{"ok":true}`), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}, func(_ *gateway, o *api.Options) { o.BodyTimeout = timeout })
	client := newWire(t, &http.Server{Handler: g.Handler(), ReadHeaderTimeout: patience})
	for range 2 { // on one connection
		req, err := http.NewRequestWithContext(t.Context(), "POST", "http://gateway.test/v1/chat/completions", strings.NewReader(smallChat))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+goodKey)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 200 {
			t.Errorf("got %d %s %v, want 200", resp.StatusCode, body, err)
		}
	}
}

// TestUnreadAnswers: if a client does not read its answer, the connection is closed in time, with or without a token.
func TestUnreadAnswers(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, func(_ *gateway, o *api.Options) { o.WriteTimeout = 200 * time.Millisecond })
	server := httptest.NewUnstartedServer(g.Handler())
	ended := make(chan struct{})
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			close(ended)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	for range 200 { // more than any socket holds; what is no longer taken need not be written
		if _, err := io.WriteString(conn, "GET /docs/rapidoc-min.js HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			break
		}
	}
	testwait.Eventually(t, "the upstream's call ends", patience, func() bool { return closed(ended) })
}
