package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"modelrelay/api"
	"modelrelay/storage/tokens"
)

// dialServer connects to a server that serves the gateway.
func dialServer(t *testing.T, g *gateway) net.Conn {
	t.Helper()
	server := httptest.NewServer(g.Handler())
	t.Cleanup(server.Close)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestRefusalOfALargeUpload: a client that sends the whole body before it reads the answer gets the answer.
func TestRefusalOfALargeUpload(t *testing.T) {
	t.Parallel()
	const large = 30 << 20
	for _, test := range []struct {
		name, path, key string
		length          int
		status          int
	}{
		{"no token", "/v1/chat/completions", "sk-none", large, 401},
		{"too large", "/v1/chat/completions", goodKey, large, 413},
		{"no such path", "/nope", goodKey, large, 404},
		{"a video, no token", "/v1/videos", "sk-none", large, 401},
		{"a video, too large", "/v1/videos", goodKey, large, 413},
		{"over its limits", "/v1/chat/completions", "sk-limited", large, 429},
		{"chunked, no token", "/v1/chat/completions", "sk-none", -large, 401},
		{"chunked, too large", "/v1/chat/completions", goodKey, -large, 413},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			limits := redisLimits(t)
			g := newGateway(t, nil, func(g *gateway, o *api.Options) {
				o.MaxBody, o.Limits = 29<<20, limits
				g.tokens["sk-limited"] = &tokens.Token{ID: "l", Name: "l", Group: "default", Limits: tokens.Limits{RequestsPerMinute: 1}}
			})
			if test.status == 429 {
				g.do(t, request("POST", "/v1/chat/completions", smallChat, "Authorization", "Bearer sk-limited"))
			}
			conn := dialServer(t, g)
			head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n", test.path, test.key)
			body, end := io.Writer(conn), ""
			if test.length >= 0 {
				fmt.Fprintf(conn, "%sContent-Length: %d\r\n\r\n", head, test.length)
			} else {
				fmt.Fprintf(conn, "%sTransfer-Encoding: chunked\r\n\r\n%x\r\n", head, large)
				end = "\r\n0\r\n\r\n"
			}
			if n, err := io.CopyN(body, zeros{}, large); err != nil {
				t.Fatalf("reset after %d bytes: %v", n, err)
			}
			if _, err := io.WriteString(conn, end); err != nil {
				t.Fatalf("reset at the end: %v", err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatalf("the answer is lost: %v", err)
			}
			defer resp.Body.Close()
			if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != test.status {
				t.Errorf("got %d %s, %v, want %d", resp.StatusCode, text, err, test.status)
			}
			if resp.ContentLength <= 0 {
				t.Error("the answer has no length: it ends when the body does, and proxies wait for that")
			}
		})
	}
}

// zeros are without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestTwoLengths: a request that gives its length in two ways is the last of its connection, so that what another client in
// front takes for a part of it is never a request of its own.
func TestTwoLengths(t *testing.T) {
	t.Parallel()
	smuggled := "GET /v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + goodKey + "\r\n\r\n"
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(smallChat), smallChat)
	for name, head := range map[string]string{
		"length and encoding": fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\nTransfer-Encoding: chunked\r\n",
			len(chunked)+len(smuggled)),
		"encoding and length": "POST /v1/chat/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n",
		"no such path":        "POST /nope HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := dialServer(t, newGateway(t, nil, nil))
			fmt.Fprintf(conn, "%sHost: x\r\nAuthorization: Bearer %s\r\n\r\n%s%s", head, goodKey, chunked, smuggled)
			answers, err := io.ReadAll(conn)
			if err != nil && len(answers) == 0 {
				t.Fatal(err)
			}
			if n := strings.Count(string(answers), "HTTP/1.1 "); n != 1 || !strings.Contains(string(answers), "Connection: close") {
				t.Errorf("%d answers, want one that closes the connection:\n%s", n, answers)
			}
		})
	}
}
