package main_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	main "modelrelay/cmd/gateway"
)

// TestPlacesFollowTheLimitOfFiles: half of what is left of it after the reserve.
func TestPlacesFollowTheLimitOfFiles(t *testing.T) {
	t.Parallel()
	for files, want := range map[int]int{383: 0, 384: 64, 1024: 384, 1 << 20: 524160} {
		got, err := main.ConnectionsWithin(files)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%d files: %d connections, %v; want %d", files, got, err, want)
		}
	}
}

func TestServeNeedsOpenFiles(t *testing.T) {
	t.Parallel()
	p := newProgram("serve", "--worker=false", "--config", writeFile(t, "gateway.yaml", configFor(redisAway, "http://u.test", "k", "")))
	p.OpenFiles = 300
	if code := p.do(t.Context()); code != main.ExitFailed ||
		!strings.Contains(p.err.String(), "the limit of open files is 300: raise it to at least 384") {
		t.Errorf("code %d\n%s", code, p.err)
	}
}

// TestOperatorIsServedWhileFull: with all connections of the public listener taken by clients without a key, the operator's
// own and that of the metrics answer.
func TestOperatorIsServedWhileFull(t *testing.T) {
	t.Parallel()
	text := "admin_key: some-admin-key\nadmin: {listen: 127.0.0.1:0}\ntrusted_proxies: [127.0.0.1]\n" +
		strings.Replace(configFor(redisAway, "http://u.test", "sk-demo", ""), `metrics: {listen: ""}`, "metrics: {listen: 127.0.0.1:0}", 1)
	s := serveWith(t, writeFile(t, "gateway.yaml", text), func(p *program) { p.OpenFiles = 384 }, "--worker=false")
	public := strings.TrimPrefix(s.url, "http://")
	var held []net.Conn
	for range 64 {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", public)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		// One that says nothing is closed after a while, one that did only later.
		if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: gateway.test\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		held = append(held, conn)
	}
	s.err.line(t, 1, "no new connection is accepted")
	at := s.scrape()
	at.want(t, 1, "gateway_connections_full")
	line := decode[struct{ Address string }](t, s.err.line(t, 1, `"msg":"the operator interface has its own address"`))
	if status, body := s.getAt("http://" + line.Address + "/healthz"); status != http.StatusOK {
		t.Errorf("healthz: %d %s", status, body)
	}
	for _, conn := range held {
		_ = conn.Close()
	}
	if status, body := s.get("/healthz"); status != http.StatusOK {
		t.Errorf("once they are gone: %d %s", status, body)
	}
}
