package main_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"modelrelay/storage/testcert"
)

// TestServeTLS: every listener but the metrics' speaks TLS, HTTP/2 as well, and a certificate that takes the place of another
// counts from the next connection on, without a restart; half of a pair does not.
func TestServeTLS(t *testing.T) {
	t.Parallel()
	u := startUpstream(t, "A")
	close(u.release)
	dir := t.TempDir()
	first := testcert.New(t, dir)
	file := filepath.Join(dir, "gateway.yaml")
	text := "tls: {cert: tls.crt, key: tls.key}\nadmin_key: an-operators-own-key\nadmin: {listen: 127.0.0.1:0}\n" +
		configFor(redisAway, u.URL, "sk-demo", "")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serveFile(t, file, "--worker=false")
	admin := decode[struct{ Address string }](t, s.err.line(t, 1, `"msg":"the operator interface has its own address"`)).Address
	s.url = strings.Replace(s.url, "http:", "https:", 1)
	trusting := func(pairs ...testcert.Pair) *http.Client {
		transport := &http.Transport{TLSClientConfig: testcert.Trusted(pairs...), ForceAttemptHTTP2: true}
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport}
	}
	client := trusting(first)
	if status, body, err := s.chat(t.Context(), client, "sk-demo"); status != http.StatusOK || err != nil {
		t.Errorf("got %d %s, %v", status, body, err)
	}
	for _, at := range []string{s.url, "https://" + admin} {
		resp, err := client.Get(at + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK || resp.Proto != "HTTP/2.0" {
			t.Errorf("%s: got %s %s", at, resp.Proto, resp.Status)
		}
	}
	next := testcert.New(t, t.TempDir())
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	answers := func(pair testcert.Pair) error {
		resp, err := trusting(pair).Get(s.url + "/healthz")
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}
	move(next.Key, first.Key)
	if err := answers(first); err != nil {
		t.Errorf("while the key alone is another: %v", err)
	}
	move(next.Cert, first.Cert)
	if err := answers(next); err != nil {
		t.Errorf("after both were replaced: %v", err)
	}
	if err := answers(first); err == nil {
		t.Error("the old certificate is still shown")
	}
	if resp, err := client.Get(s.url + "/healthz"); err != nil { // over the connection that it has
		t.Error(err)
	} else {
		_ = resp.Body.Close()
	}
}

// TestHealthOfFront: the program asks an API that speaks TLS, or that requires a PROXY header.
func TestHealthOfFront(t *testing.T) {
	t.Parallel()
	u := startUpstream(t, "A")
	close(u.release)
	for name, keys := range map[string]string{
		"tls": "tls: {cert: tls.crt, key: tls.key}\n", "proxy protocol": "proxy_protocol: true\ntrusted_proxies: [127.0.0.0/8]\n",
		"others' proxy protocol": "proxy_protocol: true\ntrusted_proxies: [10.0.0.0/8]\n",
		"both":                   "tls: {cert: tls.crt, key: tls.key}\nproxy_protocol: true\ntrusted_proxies: [127.0.0.0/8]\n",
		"h2c":                    "h2c: true\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			testcert.New(t, dir)
			text := keys + configFor(redisAway, u.URL, "sk-demo", "")
			file := filepath.Join(dir, "gateway.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			s := serveFile(t, file, "--worker=false")
			here := filepath.Join(dir, "here.yaml")
			if err := os.WriteFile(here, []byte(strings.Replace(text, "listen: 127.0.0.1:0", "listen: "+strings.TrimPrefix(s.url, "http://"), 1)),
				0o600); err != nil {
				t.Fatal(err)
			}
			// It answers, that Redis was never there.
			if stdout, stderr, code := run(t, nil, "health", "--for", "relay", "--config", here); code != 1 ||
				!strings.Contains(stderr, "listen: 503") {
				t.Errorf("exit code %d, %q %q", code, stdout, stderr)
			}
		})
	}
}

// TestServeProxyProtocol: the address that a trusted balancer names is the one that the log and the networks of tokens have.
func TestServeProxyProtocol(t *testing.T) {
	t.Parallel()
	u := startUpstream(t, "A")
	close(u.release)
	text := "proxy_protocol: true\ntrusted_proxies: [127.0.0.1]\n" +
		strings.Replace(configFor(redisAway, u.URL, "sk-demo", ""), "{name: demo, key: sk-demo}",
			"{name: demo, key: sk-demo, networks: [203.0.113.0/24]}", 1)
	s := serve(t, text, "--worker=false")
	for client, want := range map[string]int{"203.0.113.7": http.StatusOK, "198.51.100.9": http.StatusForbidden} {
		transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			if err == nil {
				_, err = fmt.Fprintf(conn, "PROXY TCP4 %s 127.0.0.1 1 2\r\n", client)
			}
			return conn, err
		}}
		if status, body, err := s.chat(t.Context(), &http.Client{Transport: transport}, "sk-demo"); status != want || err != nil {
			t.Errorf("%s: got %d %s, %v; want %d", client, status, body, err, want)
		}
	}
	s.err.line(t, 1, `"source":"198.51.100.9"`)
	if resp, err := http.Get(s.url + "/healthz"); err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		t.Errorf("without a header: got %s", resp.Status)
	}
	s.err.line(t, 1, "has no good PROXY header")
}
