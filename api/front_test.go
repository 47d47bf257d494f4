package api_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"modelrelay/api"
	"modelrelay/providers"
	"modelrelay/storage/testcert"
	"modelrelay/storage/testwait"
	"modelrelay/storage/tokens"
)

// frontOptions are how a gateway is reached.
type frontOptions struct {
	places int
	listen *api.ListenOptions
	http   *api.HTTPOptions
}

// serveAt is listenWith for a gateway that is reached in another way.
func serveAt(t *testing.T, g *gateway, o frontOptions) listening {
	t.Helper()
	l, err := g.Listen(t.Context(), "127.0.0.1:0", o.places, o.listen)
	if err != nil {
		t.Fatal(err)
	}
	server := g.HTTPServer("", g.Handler(), o.http)
	ended := make(chan error, 1)
	go func() { ended <- api.Serve(server, l) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serve: %v", err)
		}
	})
	return listening{g, l.Addr().String()}
}

// selfSigned is a certificate for 127.0.0.1, and what trusts it.
func selfSigned(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	pair := testcert.New(t, t.TempDir())
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair.TLS}}, testcert.Trusted(pair)
}

// speaking is a client that speaks one kind of HTTP alone, over as few connections as that takes.
func speaking(t *testing.T, how string, trusts *tls.Config) *http.Client {
	t.Helper()
	protocols := new(http.Protocols)
	switch how {
	case "h2":
		protocols.SetHTTP2(true)
	case "h2c":
		protocols.SetUnencryptedHTTP2(true)
	default:
		protocols.SetHTTP1(true)
	}
	transport := &http.Transport{
		Protocols: protocols, TLSClientConfig: trusts.Clone(),
		HTTP2: &http.HTTP2Config{StrictMaxConcurrentRequests: true},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// TestListenProtocols: with a certificate the listener speaks TLS and HTTP/2 or HTTP/1.1, with H2C both in clear; calls,
// refusals of large bodies and streams are the same in each. Servers that share a configuration of TLS do not write into it.
func TestListenProtocols(t *testing.T) {
	t.Parallel()
	server, trusts := selfSigned(t)
	t.Cleanup(func() {
		if len(server.NextProtos) > 0 {
			t.Errorf("a server added %q to the configuration", server.NextProtos)
		}
	})
	for _, test := range []struct {
		how, scheme, proto string
		http               *api.HTTPOptions
	}{
		{"http/1.1", "http", "HTTP/1.1", nil},
		{"h2c", "http", "HTTP/2.0", &api.HTTPOptions{H2C: true}},
		{"http/1.1", "http", "HTTP/1.1", &api.HTTPOptions{H2C: true}},
		{"https", "https", "HTTP/1.1", &api.HTTPOptions{TLS: server}},
		{"h2", "https", "HTTP/2.0", &api.HTTPOptions{TLS: server}},
	} {
		t.Run(test.how+" over "+test.scheme, func(t *testing.T) {
			t.Parallel()
			g := serveAt(t, newGateway(t, func(_ context.Context, _ providers.Target, call *providers.Call) (*http.Response, error) {
				if call.Stream {
					return upstreamAnswer("text/event-stream", "data: {\"choices\":[]}\n\ndata: [DONE]\n\n"), nil
				}
				return upstreamAnswer("application/json", `{"ok":true}`), nil
			}, nil), frontOptions{places: 16, http: test.http})
			client := speaking(t, test.how, trusts)
			call := func(key, body string) (*http.Response, string) {
				t.Helper()
				req, err := http.NewRequestWithContext(within(t), http.MethodPost, test.scheme+"://"+g.address+"/v1/chat/completions",
					strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Authorization", "Bearer "+key)
				req.Header.Set("Content-Type", "application/json")
				resp, err := client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				text, err := io.ReadAll(resp.Body)
				if err != nil {
					t.Fatal(err)
				}
				return resp, string(text)
			}
			if resp, text := call(goodKey, chatText); resp.StatusCode != http.StatusOK || resp.Proto != test.proto || text != `{"ok":true}` {
				t.Errorf("got %s %d %s, want %s", resp.Proto, resp.StatusCode, text, test.proto)
			}
			if resp, text := call(goodKey, strings.Replace(chatText, "{", `{"stream":true,`, 1)); resp.StatusCode != http.StatusOK ||
				!strings.HasSuffix(text, "[DONE]\n\n") {
				t.Errorf("a stream: got %d %s", resp.StatusCode, text)
			}
			large := `{"model":"gpt-4o","messages":[{"role":"user","content":"` + strings.Repeat("x", 8<<20) + `"}]}`
			if resp, text := call("sk-wrong", large); resp.StatusCode != http.StatusUnauthorized || !strings.Contains(text, "invalid_api_key") {
				t.Errorf("a large body of an unknown key: got %d %s", resp.StatusCode, text)
			}
			if resp, _ := call(goodKey, large); resp.StatusCode != http.StatusOK {
				t.Errorf("a large body: got %d", resp.StatusCode)
			}
		})
	}
}

const chatText = `{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}]}`

// TestListenRefusesOldTLS: nothing below TLS 1.2.
func TestListenRefusesOldTLS(t *testing.T) {
	t.Parallel()
	server, trusts := selfSigned(t)
	g := serveAt(t, newGateway(t, nil, nil), frontOptions{places: 4, http: &api.HTTPOptions{TLS: server}})
	trusts.MinVersion, trusts.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	dialer := tls.Dialer{Config: trusts}
	for range 3 {
		if conn, err := dialer.DialContext(within(t), "tcp", g.address); err == nil {
			t.Errorf("got %s", tls.VersionName(conn.(*tls.Conn).ConnectionState().Version))
		}
	}
	testwait.Eventually(t, "the log has the error", patience, func() bool { return strings.Contains(g.log.String(), "TLS handshake error") })
	if n := strings.Count(g.log.String(), "TLS handshake error"); n != 1 {
		t.Errorf("the log has the error %d times:\n%s", n, g.log)
	}
}

// TestStreamsTakePlaces: one connection of HTTP/2 has no more requests open than a network has connections, and another
// network is served at the same time.
func TestStreamsTakePlaces(t *testing.T) {
	t.Parallel()
	const places = 8 // of which a network has 4: a connection and 3 requests
	hold, arrived := make(chan struct{}), make(chan struct{}, places)
	g := serveAt(t, newGateway(t, func(ctx context.Context, _ providers.Target, _ *providers.Call) (*http.Response, error) {
		arrived <- struct{}{}
		select {
		case <-hold:
		case <-ctx.Done():
		}
		return upstreamAnswer("application/json", `{"ok":true}`), nil
	}, nil), frontOptions{places: places, http: &api.HTTPOptions{H2C: true}})
	client := speaking(t, "h2c", nil)
	call := func() (int, string, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+g.address+"/v1/chat/completions",
			strings.NewReader(chatText))
		if err != nil {
			return 0, "", err
		}
		req.Header.Set("Authorization", "Bearer "+goodKey)
		resp, err := client.Do(req)
		if err != nil {
			return 0, "", err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return resp.StatusCode, resp.Header.Get("Retry-After") + " " + string(text), err
	}
	warm, err := client.Get("http://" + g.address + "/healthz") // so that there is one connection for all
	if err != nil {
		t.Fatal(err)
	}
	_ = warm.Body.Close()
	ended := make(chan int, 3)
	for range 3 {
		go func() {
			status, _, _ := call()
			ended <- status
		}()
	}
	for range 3 {
		<-arrived
	}
	if status, text, err := call(); err != nil || status != http.StatusTooManyRequests || !strings.HasPrefix(text, "1 ") ||
		!strings.Contains(text, "rate_limit_exceeded") {
		t.Errorf("beyond the share: got %d %s, %v", status, text, err)
	}
	if n := g.Open().Connections; n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	mustAnswer(t, g.connect(t, "127.0.0.2"))
	close(hold)
	for range 3 {
		if status := <-ended; status != http.StatusOK {
			t.Errorf("got %d", status)
		}
	}
	if status, text, err := call(); err != nil || status != http.StatusOK {
		t.Errorf("after the others: got %d %s, %v", status, text, err)
	}
}

// header2 is a header of version 2 for an IPv4 address.
func header2(addr [4]byte) string {
	return "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c" + string(addr[:]) + "\x0a\x00\x00\x01\x12\x34\x01\xbb"
}

// TestProxyProtocol: the caller is the address that a trusted proxy names; another's header is no request, and a proxy that sends none, or
// not at once, is closed and delays no other connection.
func TestProxyProtocol(t *testing.T) {
	t.Parallel()
	const held = "sk-held"
	ask := func(conn net.Conn, before, more string) (int, error) {
		if _, err := fmt.Fprintf(conn, "%sGET /v1/models HTTP/1.1\r\nHost: gateway.test\r\nAuthorization: Bearer %s\r\n%s\r\n", before, held,
			more); err != nil {
			return 0, err
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, err
	}
	for _, test := range []struct {
		name, from, before, more string
		off                      bool
		want                     int // 0: closed without an answer
		log                      string
	}{
		{name: "version 2", from: "127.0.0.1", before: header2([4]byte{203, 0, 113, 7}), want: 200},
		{name: "version 1", from: "127.0.0.1", before: "PROXY TCP4 203.0.113.7 10.0.0.1 1 2\r\n", want: 200},
		{name: "another client", from: "127.0.0.1", before: header2([4]byte{203, 0, 113, 8}), want: 403},
		{
			name: "another client that claims to be", from: "127.0.0.1", before: header2([4]byte{203, 0, 113, 8}),
			more: "X-Forwarded-For: 203.0.113.7\r\n", want: 403,
		},
		{
			name: "a proxy of HTTP behind it", from: "127.0.0.1", before: header2([4]byte{127, 0, 0, 1}), more: "X-Forwarded-For: 203.0.113.7\r\n",
			want: 200,
		},
		{name: "an unknown client", from: "127.0.0.1", before: "PROXY UNKNOWN\r\n", more: "X-Forwarded-For: 203.0.113.7\r\n", want: 403},
		{name: "the proxy itself", from: "127.0.0.1", before: "\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00", want: 403},
		{name: "no header", from: "127.0.0.1", log: "has no good PROXY header"},
		{name: "garbage", from: "127.0.0.1", before: "PROXY TCP4 here there 1 2\r\n", log: "has no good PROXY header"},
		{
			name: "an untrusted address", from: "127.0.0.2", before: header2([4]byte{203, 0, 113, 7}), want: 400,
			log: "PROXY header that does not count",
		},
		{
			name: "an untrusted address, version 1", from: "127.0.0.2", before: "PROXY TCP4 203.0.113.7 10.0.0.1 1 2\r\n", want: 400,
			log: "PROXY header that does not count",
		},
		{name: "an untrusted address without one", from: "127.0.0.2", want: 403},
		{
			name: "switched off", from: "127.0.0.1", before: header2([4]byte{203, 0, 113, 7}), off: true, want: 400,
			log: "PROXY header that does not count",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := serveAt(t, newGateway(t, nil, func(g *gateway, o *api.Options) {
				o.Proxies = proxiesOf("127.0.0.1/32")
				g.tokens[held] = &tokens.Token{ID: "held", Group: "default", Networks: []string{"203.0.113.7/32"}}
			}), frontOptions{places: 8, listen: &api.ListenOptions{ProxyProtocol: !test.off}})
			conn := g.connect(t, test.from)
			if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
				t.Fatal(err)
			}
			got, err := ask(conn, test.before, test.more)
			if got != test.want || (err == nil) != (test.want != 0) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %d, %v; want %d", got, err, test.want)
			}
			if test.log == "" && strings.Contains(g.log.String(), "PROXY") || !strings.Contains(g.log.String(), test.log) {
				t.Errorf("the log is %s", g.log)
			}
			_ = conn.Close()
			testwait.Eventually(t, "the place comes back", patience, func() bool { return g.Open().Connections == 0 })
		})
	}
}

// TestProxyProtocolDelaysNoOther: a connection whose header does not arrive delays no other one. The shares of networks are those of the
// clients.
func TestProxyProtocolDelaysNoOther(t *testing.T) {
	t.Parallel()
	g := serveAt(t, newGateway(t, nil, func(_ *gateway, o *api.Options) { o.Proxies = proxiesOf("127.0.0.1/32") }),
		frontOptions{places: 12, listen: &api.ListenOptions{ProxyProtocol: true}})
	for range 3 {
		slow := g.connect(t, "127.0.0.1")
		if _, err := io.WriteString(slow, "PROXY TC"); err != nil {
			t.Fatal(err)
		}
	}
	introduced := func(last byte) net.Conn {
		conn := g.connect(t, "127.0.0.1")
		if _, err := io.WriteString(conn, header2([4]byte{203, 0, 113, last})); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	first := introduced(7)
	mustAnswer(t, first)
	for range 5 {
		mustAnswer(t, introduced(7))
	}
	if err := asks(introduced(7)); err == nil {
		t.Error("a network has more than half of the places")
	}
	mustAnswer(t, introduced(8))
	_ = first.Close()
	testwait.Eventually(t, "the share comes back", patience, func() bool {
		conn := introduced(7)
		defer conn.Close()
		return asks(conn) == nil
	})
	testwait.Eventually(t, "the slow ones are closed", patience,
		func() bool { return strings.Contains(g.log.String(), "has no good PROXY header") })
}
