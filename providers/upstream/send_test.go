package upstream_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// client returns an HTTP client of the product that the test lets go of.
func client(t *testing.T, opts *upstream.ClientOptions) *http.Client {
	t.Helper()
	c := upstream.NewClient(opts)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

func post(ctx context.Context, t *testing.T, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(`{"pay":1}`))
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// sendFault sends a request that must fail, and returns the fault.
func sendFault(t *testing.T, c *http.Client, req *http.Request) *providers.Fault {
	t.Helper()
	resp, err := upstream.Send(c, req)
	if err == nil {
		resp.Body.Close()
		t.Fatalf("got status %d, want a fault", resp.StatusCode)
	}
	var fault *providers.Fault
	if !errors.As(err, &fault) {
		t.Fatalf("got error %v, want a fault", err)
	}
	return fault
}

func TestSendStatus(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status   int
		kind     providers.Kind
		accepted providers.Accepted
		blame    providers.Blame
	}{
		{302, providers.Upstream, providers.AcceptedUnknown, providers.BlameChannel},
		{400, providers.Invalid, providers.NotAccepted, providers.BlameNone},
		{401, providers.Upstream, providers.NotAccepted, providers.BlameKey},
		{402, providers.Upstream, providers.NotAccepted, providers.BlameKey},
		{403, providers.Upstream, providers.NotAccepted, providers.BlameKey},
		{404, providers.NotFound, providers.NotAccepted, providers.BlameNone},
		{408, providers.Timeout, providers.AcceptedUnknown, providers.BlameChannel},
		{409, providers.Conflict, providers.NotAccepted, providers.BlameNone},
		{413, providers.TooLarge, providers.NotAccepted, providers.BlameNone},
		{422, providers.Invalid, providers.NotAccepted, providers.BlameNone},
		{429, providers.RateLimited, providers.NotAccepted, providers.BlameKey},
		{500, providers.Upstream, providers.AcceptedUnknown, providers.BlameChannel},
		{502, providers.Upstream, providers.AcceptedUnknown, providers.BlameChannel},
		{503, providers.Overloaded, providers.AcceptedUnknown, providers.BlameChannel},
		{529, providers.Overloaded, providers.AcceptedUnknown, providers.BlameChannel},
	} {
		t.Run(http.StatusText(tc.status), func(t *testing.T) {
			t.Parallel()
			server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Location", "/elsewhere")
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, `{"secret":"words"}`)
			})
			fault := sendFault(t, client(t, nil), post(t.Context(), t, server.URL))
			if fault.Kind != tc.kind || fault.Accepted != tc.accepted || fault.Blame != tc.blame {
				t.Errorf("got %s accepted %d blame %d, want %s, %d, %d", fault.Kind, fault.Accepted, fault.Blame, tc.kind, tc.accepted, tc.blame)
			}
			if fault.RetryAfter != 7*time.Second {
				t.Errorf("got RetryAfter %s", fault.RetryAfter)
			}
			up := fault.Upstream
			if up == nil || up.Status != tc.status || string(up.Body) != `{"secret":"words"}` {
				t.Errorf("got upstream reply %+v", up)
			}
			if strings.Contains(fault.Error(), "words") {
				t.Errorf("the message %q repeats the upstream", fault.Error())
			}
		})
	}
}

func TestSendErrorBodyIsBounded(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write(bytes.Repeat([]byte("x"), 3*upstream.MaxErrorBody))
	})
	fault := sendFault(t, client(t, nil), post(t.Context(), t, server.URL))
	if got := len(fault.Upstream.Body); got != upstream.MaxErrorBody {
		t.Errorf("read %d bytes, want %d", got, upstream.MaxErrorBody)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, tc := range []struct {
			name, value string
			want        time.Duration
		}{
			{"Retry-After", "3", 3 * time.Second},
			{"Retry-After", " 1.5 ", 1500 * time.Millisecond},
			{"Retry-After", "0", 0},
			{"Retry-After", "-3", 0},
			{"Retry-After", "soon", 0},
			{"Retry-After", "NaN", 0},
			{"Retry-After", "1e300", 0},
			{"Retry-After", "31000000000", 0}, // more nanoseconds than a Duration holds
			{"Retry-After", "", 0},
			{"Retry-After", time.Now().Add(90 * time.Second).UTC().Format(http.TimeFormat), 90 * time.Second},
			{"Retry-After", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat), 0},
			{"Retry-After-Ms", "250", 250 * time.Millisecond},
		} {
			header := http.Header{tc.name: {tc.value}}
			if got := upstream.RetryAfter(header); got != tc.want {
				t.Errorf("%s: %q: got %s, want %s", tc.name, tc.value, got, tc.want)
			}
		}
		both := http.Header{"Retry-After": {"9"}, "Retry-After-Ms": {"40"}}
		if got := upstream.RetryAfter(both); got != 40*time.Millisecond {
			t.Errorf("got %s, want the finer one", got)
		}
	})
}

// refusedURL refuses connections: nothing listens on port 1. A port that was free a moment ago may belong to another test now.
const refusedURL = "http://127.0.0.1:1"

func TestSendNothingWritten(t *testing.T) {
	t.Parallel()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // the failed handshake is what the test wants
	secure.StartTLS()
	t.Cleanup(secure.Close)
	plain := serve(t, func(http.ResponseWriter, *http.Request) {})
	for name, url := range map[string]string{
		"refused":         refusedURL,
		"untrusted TLS":   secure.URL,
		"no TLS at all":   strings.Replace(plain.URL, "http:", "https:", 1),
		"no such scheme":  "gopher://127.0.0.1/",
		"no host":         "http:///x",
		"refused, secret": refusedURL + "/?key=hunter2",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fault := sendFault(t, client(t, nil), post(t.Context(), t, url))
			if fault.Kind != providers.Upstream || fault.Accepted != providers.NotAccepted || fault.Blame != providers.BlameChannel {
				t.Errorf("got %s accepted %d blame %d (%v), want upstream, surely not accepted, the channel's", fault.Kind, fault.Accepted, fault.Blame,
					fault)
			}
			if strings.Contains(fault.Error(), "hunter2") {
				t.Errorf("the error repeats the query: %v", fault)
			}
		})
	}
}

// hijack answers requests by what the function does with the connection.
func hijack(t *testing.T, answer func(net.Conn)) *httptest.Server {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		answer(conn)
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestSendBroken(t *testing.T) {
	t.Parallel()
	for name, words := range map[string]string{
		"closed without a word": "",
		"half a header":         "HTTP/1.1 200 OK\r\nContent-Ty",
		"not HTTP":              "EHLO relay\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := hijack(t, func(conn net.Conn) { _, _ = io.WriteString(conn, words) })
			fault := sendFault(t, client(t, nil), post(t.Context(), t, server.URL))
			if fault.Kind != providers.Upstream || fault.Accepted != providers.AcceptedUnknown || fault.Blame != providers.BlameChannel {
				t.Errorf("got %s accepted %d blame %d (%v), want upstream, unknown, the channel's", fault.Kind, fault.Accepted, fault.Blame, fault)
			}
		})
	}
}

// TestSendOnce: net/http writes the body of a request once, whatever the connection does, and even with a header by which it may repeat
// the request. A second one would be paid twice.
func TestSendOnce(t *testing.T) {
	t.Parallel()
	var paid atomic.Int32
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer func() { _ = conn.Close() }()
				in := bufio.NewReader(conn)
				for n := range 2 {
					req, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, req.Body)
					if n == 1 {
						paid.Add(1)
						return // takes the second request of a connection and dies
					}
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				}
			})
		}
	})
	t.Cleanup(func() { _ = listener.Close(); conns.Wait() })

	c := client(t, nil)
	warm, err := upstream.Send(c, post(t.Context(), t, "http://"+listener.Addr().String()))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, warm.Body)
	warm.Body.Close()

	req := post(t.Context(), t, "http://"+listener.Addr().String())
	req.Header.Set("Idempotency-Key", "k") // which makes a POST replayable in net/http's eyes
	if req.GetBody == nil {
		t.Fatal("the request could not be repeated anyway; the test shows nothing")
	}
	fault := sendFault(t, c, req)
	if fault.Accepted != providers.AcceptedUnknown {
		t.Errorf("got accepted %d, want unknown", fault.Accepted)
	}
	if fault.Blame != providers.BlameNone {
		t.Errorf("got blame %d for a kept connection that ended, want none", fault.Blame)
	}
	if got := paid.Load(); got != 1 {
		t.Errorf("the upstream took the request %d times, want once", got)
	}
}

func TestSendContext(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{}, 3)
	gone := make(chan struct{}, 3)
	server := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		entered <- struct{}{}
		<-r.Context().Done()
		gone <- struct{}{}
	})
	late := &providers.Fault{Kind: providers.Timeout, Message: "late", Blame: providers.BlameChannel}
	for _, tc := range []struct {
		name  string
		cause error
		kind  providers.Kind
		blame providers.Blame
	}{
		{"canceled", nil, providers.Canceled, providers.BlameNone},
		{"a fault as the cause", late, providers.Timeout, providers.BlameChannel},
		{"deadline", context.DeadlineExceeded, providers.Timeout, providers.BlameChannel},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() { <-entered; cancel(tc.cause) }()
			fault := sendFault(t, client(t, nil), post(ctx, t, server.URL))
			if fault.Kind != tc.kind || fault.Blame != tc.blame || fault.Accepted != providers.AcceptedUnknown {
				t.Errorf("got %s blame %d accepted %d, want %s, %d, unknown", fault.Kind, fault.Blame, fault.Accepted, tc.kind, tc.blame)
			}
			if fault == late {
				t.Error("the cause itself came back; it is shared")
			}
			<-gone // the upstream notices
		})
	}
	t.Run("before anything was written", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		fault := sendFault(t, client(t, nil), post(ctx, t, server.URL))
		if fault.Kind != providers.Canceled || fault.Accepted != providers.NotAccepted {
			t.Errorf("got %s accepted %d, want canceled, surely not accepted", fault.Kind, fault.Accepted)
		}
	})
}

func TestSendKeepsBytesAndRedirects(t *testing.T) {
	t.Parallel()
	packed := []byte("\x1f\x8b not really packed")
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/there", http.StatusTemporaryRedirect)
			return
		}
		if got := r.Header.Get("Accept-Encoding"); got != "" {
			t.Errorf("asked for the encoding %q", got)
		}
		w.Header().Set("Content-Encoding", "deflate")
		_, _ = w.Write(packed)
	})
	c := client(t, nil)
	get, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/moved", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := upstream.Send(c, get)
	if err != nil {
		t.Fatalf("a GET does not follow a redirect: %v", err)
	}
	defer resp.Body.Close()
	if got, _ := io.ReadAll(resp.Body); !bytes.Equal(got, packed) {
		t.Errorf("got body %q, want it untouched", got)
	}
	if fault := sendFault(t, c, post(t.Context(), t, server.URL+"/moved")); fault.Upstream.Status != http.StatusTemporaryRedirect {
		t.Errorf("got %v, want the redirect of a POST left alone", fault)
	}
}

// TestReuse counts connections under load.
func TestReuse(t *testing.T) {
	t.Parallel()
	var opened atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	c := client(t, nil)
	const workers, each = 64, 100
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for range each {
				resp, err := upstream.Send(c, post(t.Context(), t, server.URL))
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
	all.Wait()
	// net/http dials ahead while a connection is still being made, hence up to two for each worker.
	if got := opened.Load(); got > 2*workers {
		t.Errorf("opened %d connections for %d requests", got, workers*each)
	}
}

func TestHTTP2(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	trust := new(tls.Config)
	trust.RootCAs = x509.NewCertPool()
	trust.RootCAs.AddCert(server.Certificate())
	resp, err := upstream.Send(client(t, &upstream.ClientOptions{TLS: trust}), post(t.Context(), t, server.URL))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, _ := io.ReadAll(resp.Body); string(got) != "HTTP/2.0" {
		t.Errorf("got %s", got)
	}
}

// TestRedirectsWithin: a redirect is followed within the origin that was asked, and not beyond.
func TestRedirectsWithin(t *testing.T) {
	t.Parallel()
	asked := 0
	stranger := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	t.Cleanup(stranger.Close)
	mux := http.NewServeMux()
	mux.HandleFunc("/within", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/end", http.StatusFound) })
	mux.HandleFunc("/beyond", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, stranger.URL, http.StatusFound) })
	mux.HandleFunc("/end", func(http.ResponseWriter, *http.Request) {})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	own := client(t, nil)
	for path, status := range map[string]int{"/within": 0, "/beyond": http.StatusFound} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := upstream.Send(own, req)
		if err == nil {
			_ = resp.Body.Close()
		}
		fault, refused := errors.AsType[*providers.Fault](err)
		if refused != (status > 0) || refused && fault.Upstream.Status != status || asked > 0 {
			t.Errorf("%s: got %v, %d requests beyond", path, err, asked)
		}
	}
}

// TestMediaType: what two readers may take for two things is nothing.
func TestMediaType(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		values []string
		want   string
	}{
		{nil, ""},
		{[]string{"application/json"}, "application/json"},
		{[]string{" Application/JSON ; charset=utf-8"}, "application/json"},
		{[]string{"application/json", "application/json"}, "application/json"},
		{[]string{"application/json", "text/html"}, ""},
		{[]string{"audio/mpeg, text/html"}, ""},
		{[]string{"application/json;a=b, text/html"}, ""},
	} {
		if got := upstream.MediaType(http.Header{"Content-Type": test.values}); got != test.want {
			t.Errorf("%q: got %q, want %q", test.values, got, test.want)
		}
	}
}
