package upstream_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// secure is a server with a certificate of httptest's own authority, and where it is.
func secure(t *testing.T) (server *httptest.Server, host string) {
	t.Helper()
	server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return server, providers.HostPort(u)
}

// TestTrust: an authority counts at its own host, in every kind of client, and nowhere else; the next one counts from then on.
func TestTrust(t *testing.T) {
	t.Parallel()
	private, host := secure(t)
	other, _ := secure(t)
	var given atomic.Pointer[tls.Config]
	var failed atomic.Bool
	errFile := errors.New("the file cannot be read")
	client := upstream.NewClient(&upstream.ClientOptions{Trust: func(asked string) (*tls.Config, error) {
		if asked != host {
			return nil, nil //nolint:nilnil // the usual one
		}
		if failed.Load() {
			return nil, errFile
		}
		return given.Load(), nil
	}})
	t.Cleanup(client.CloseIdleConnections)
	get := func(client *http.Client, address string) (string, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return string(body), err
	}
	unknown := func(what string, err error) {
		t.Helper()
		if _, ok := errors.AsType[x509.UnknownAuthorityError](err); !ok {
			t.Errorf("%s: got %v, want an unknown authority", what, err)
		}
	}
	_, err := get(client, private.URL)
	unknown("without an authority", err)
	pool := x509.NewCertPool()
	pool.AddCert(private.Certificate())
	given.Store(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12})
	for name, client := range map[string]*http.Client{"kept": client, "fresh": upstream.Fresh(client)} {
		for range 2 {
			if proto, err := get(client, private.URL); err != nil || proto != "HTTP/2.0" {
				t.Errorf("%s: got %q, %v", name, proto, err)
			}
		}
		_, err := get(client, other.URL) // the authority is configured for the first host only
		unknown(name+" at another host", err)
	}
	given.Store(&tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12})
	_, err = get(client, private.URL)
	unknown("after another authority took its place", err)
	failed.Store(true)
	if _, err := get(client, private.URL); !errors.Is(err, errFile) {
		t.Errorf("a file that cannot be read: got %v", err)
	}
	if at := providers.HostPort(&url.URL{Host: "API.Example.com"}); at != "api.example.com:443" || !strings.HasPrefix(host, "127.0.0.1:") {
		t.Errorf("where addresses lead: %s, %s", at, host)
	}
}
