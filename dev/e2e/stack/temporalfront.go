package stack

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
	"time"

	"modelrelay/storage/testcert"
)

// FrontOptions are what a TemporalFront asks of its clients.
type FrontOptions struct {
	// CertFile and KeyFile are the server's own; "": it speaks no TLS.
	CertFile, KeyFile string
	// Clients signs the clients' certificates; nil: they need none.
	Clients *testcert.Authority
	// APIKey is what clients must send; "": nothing. Each request of a namespace must name it then, as Temporal Cloud wants it.
	APIKey string
}

// TemporalFront is a proxy of a Temporal server as the front of a managed cluster is: it ends TLS, asks for certificates and
// keys, counts requests, and refuses those that a test wants refused. It is HTTP/2 in and out, and knows no message.
type TemporalFront struct {
	// Address is host:port; with TLS the host is localhost.
	Address string
	options FrontOptions
	server  *http.Server

	mu sync.Mutex
	// calls counts requests by method; refuse holds the gRPC status of those that get no further.
	calls  map[string]int
	refuse map[string]FrontRefusal
	// serials are those of the certificates that clients came with.
	serials map[string]bool
	conns   map[net.Conn]bool
}

// FrontRefusal is a gRPC status with its message.
type FrontRefusal struct {
	Code    int
	Message string
}

// NewTemporalFront starts one in front of the server at the address.
func NewTemporalFront(t *testing.T, behind string, o FrontOptions) *TemporalFront {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &TemporalFront{
		Address: l.Addr().String(), options: o, calls: map[string]int{}, refuse: map[string]FrontRefusal{}, serials: map[string]bool{},
		conns: map[net.Conn]bool{},
	}
	silent := slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	plain := new(http.Protocols)
	plain.SetUnencryptedHTTP2(true)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: behind})
	proxy.Transport, proxy.FlushInterval, proxy.ErrorLog = &http.Transport{Protocols: plain}, -1, silent
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, err error) { refuse(w, FrontRefusal{14, err.Error()}) }
	f.server = &http.Server{
		Handler: f.handler(proxy), ErrorLog: silent, ReadHeaderTimeout: time.Minute, ConnState: f.follow, Protocols: plain,
	}
	serve := func() error { return f.server.Serve(l) }
	if o.CertFile != "" {
		f.Address = net.JoinHostPort("localhost", fmt.Sprint(l.Addr().(*net.TCPAddr).Port))
		f.server.Protocols = new(http.Protocols)
		f.server.Protocols.SetHTTP2(true)
		f.server.TLSConfig = &tls.Config{
			MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"},
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				pair, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
				return &pair, err
			},
		}
		if o.Clients != nil {
			f.server.TLSConfig.ClientAuth, f.server.TLSConfig.ClientCAs = tls.RequireAndVerifyClientCert, o.Clients.Pool()
		}
		serve = func() error { return f.server.ServeTLS(l, "", "") }
	}
	served := make(chan struct{})
	go func() {
		_ = serve() // it ends with the server
		close(served)
	}()
	t.Cleanup(func() {
		_ = f.server.Close()
		<-served
	})
	return f
}

// follow keeps the connections that are open.
func (f *TemporalFront) follow(conn net.Conn, state http.ConnState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if state == http.StateClosed {
		delete(f.conns, conn)
	} else {
		f.conns[conn] = true
	}
}

// CutOff ends all connections; clients make new ones.
func (f *TemporalFront) CutOff() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for conn := range f.conns {
		_ = conn.Close()
	}
}

// Refuse has requests of a method, such as /temporal.api.workflowservice.v1.WorkflowService/StartWorkflowExecution, refused; the
// zero refusal lets them pass again.
func (f *TemporalFront) Refuse(method string, with FrontRefusal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.refuse, method)
	if with.Code != 0 {
		f.refuse[method] = with
	}
}

// SetAPIKey has clients send another key from now on.
func (f *TemporalFront) SetAPIKey(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.options.APIKey = key
}

// Calls is how many requests of a method came.
func (f *TemporalFront) Calls(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[method]
}

// Certificates is how many certificates clients came with.
func (f *TemporalFront) Certificates() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.serials)
}

func (f *TemporalFront) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refusal := f.judge(r); refusal.Code != 0 {
			refuse(w, refusal)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// judge counts a request and returns why it gets no further, if it does not.
func (f *TemporalFront) judge(r *http.Request) FrontRefusal {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[r.URL.Path]++
	if r.TLS != nil {
		for _, cert := range r.TLS.PeerCertificates {
			f.serials[cert.SerialNumber.String()] = true
		}
	}
	if f.options.APIKey != "" {
		if r.Header.Get("Authorization") != "Bearer "+f.options.APIKey {
			return FrontRefusal{16, "Request unauthorized."}
		}
		if r.Header.Get("Temporal-Namespace") == "" && !global[r.URL.Path] {
			return FrontRefusal{3, "no temporal-namespace in the request of " + r.URL.Path}
		}
	}
	return f.refuse[r.URL.Path]
}

// global are the requests that are of no namespace.
var global = map[string]bool{
	"/grpc.health.v1.Health/Check":                                           true,
	"/temporal.api.workflowservice.v1.WorkflowService/GetSystemInfo":         true,
	"/temporal.api.workflowservice.v1.WorkflowService/GetClusterInfo":        true,
	"/temporal.api.workflowservice.v1.WorkflowService/RecordWorkerHeartbeat": true,
}

// refuse answers a gRPC request with a status.
func refuse(w http.ResponseWriter, with FrontRefusal) {
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Grpc-Status", fmt.Sprint(with.Code))
	w.Header().Set("Grpc-Message", url.PathEscape(with.Message))
	w.WriteHeader(http.StatusOK)
}
