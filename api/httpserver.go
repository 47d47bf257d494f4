package api

import (
	"bytes"
	"crypto/tls"
	"log"
	"log/slog"
	"net"
	"net/http"
	"time"

	"modelrelay/api/edge"
	"modelrelay/storage/fair"
)

// Limits of the HTTP server, the same for every listener.
const (
	// readHeaderTimeout is how long a request's header may take to arrive, and also a TLS handshake.
	readHeaderTimeout = 10 * time.Second
	// idleTimeout is how long a connection without a request stays open.
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 64 << 10

	// maxStreams is the maximum number of open requests of an HTTP/2 connection. Proxies then open another connection. RFC 9113 recommends at
	// least 100.
	maxStreams = 100
	// streamWindow is how many bytes of one body a client may send before the gateway reads them, and connectionWindow the same for all
	// requests of a connection. A few unread bodies do not block the other requests of their connection.
	streamWindow     = 512 << 10
	connectionWindow = 2 << 20
	// maxHeaderTable bounds a connection's compression table for repeated headers, in bytes.
	maxHeaderTable = 4 << 10
	// pingAfter and pingTimeout detect a client of an HTTP/2 connection that no longer answers.
	pingAfter   = time.Minute
	pingTimeout = 15 * time.Second
)

// HTTPOptions are the protocols of a server in addition to HTTP/1.1; nil: none.
type HTTPOptions struct {
	// TLS has the certificate. The listener then uses TLS, with HTTP/2 for clients that offer it. Several servers may share it.
	TLS *tls.Config
	// H2C: HTTP/2 without TLS, for proxies that are configured to use it.
	H2C bool
}

// HTTPServer returns a server for a handler, with the limits of a public listener. Serve starts it. A whole request has no timeout, because
// a stream may last for hours. Bodies and unread answers have their own.
func (s *Server) HTTPServer(addr string, handler http.Handler, opts *HTTPOptions) *http.Server {
	if opts == nil {
		opts = new(HTTPOptions)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(opts.TLS != nil)
	protocols.SetUnencryptedHTTP2(opts.H2C)
	errorLog := log.New(&serverLog{log: s.edge.Log()}, "", 0) //nolint:forbidigo // net/http requires one; serverLog writes to slog
	return &http.Server{
		// net/http changes its configuration when it starts.
		Addr: addr, Handler: handler, TLSConfig: opts.TLS.Clone(), Protocols: protocols, ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:    idleTimeout,
		MaxHeaderBytes: maxHeaderBytes, ConnContext: withConnection, ErrorLog: errorLog,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams, MaxDecoderHeaderTableSize: maxHeaderTable, MaxEncoderHeaderTableSize: maxHeaderTable,
			MaxReceiveBufferPerConnection: connectionWindow, MaxReceiveBufferPerStream: streamWindow,
			SendPingTimeout: pingAfter, PingTimeout: pingTimeout, WriteByteTimeout: edge.DefaultWriteTimeout,
		},
	}
}

// Serve serves a listener with a server of HTTPServer until the server ends: http.ErrServerClosed.
func Serve(server *http.Server, listener net.Listener) error {
	if server.TLSConfig != nil {
		return server.ServeTLS(listener, "", "")
	}
	return server.Serve(listener)
}

// serverLog receives the log lines of net/http.
type serverLog struct {
	log    *slog.Logger
	logged fair.Rate[warning]
}

// handshakeFailed is the beginning of net/http's line about a failed handshake.
const handshakeFailed = "http: TLS handshake error"

// Write logs one line. Unauthenticated clients can cause any number of failed handshakes, so it logs one of these a minute.
func (l *serverLog) Write(line []byte) (int, error) {
	if !bytes.HasPrefix(line, []byte(handshakeFailed)) || l.logged.Take(warnHandshake, 1, often(), time.Now()) == 0 {
		l.log.Warn("http server", "error", string(bytes.TrimSpace(line)))
	}
	return len(line), nil
}
