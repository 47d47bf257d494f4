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

// Limits of the HTTP server itself, the same at every listener.
const (
	// readHeaderTimeout is how long a request's header may take, and before it a handshake of TLS.
	readHeaderTimeout = 10 * time.Second
	// idleTimeout is how long a connection without a request stays open.
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 64 << 10

	// maxStreams is how many requests a connection of HTTP/2 may have open, 100 at least by the protocol. Proxies open another beyond it.
	maxStreams = 100
	// streamWindow is what a client may send ahead of the reader of one request's body, in bytes, and connectionWindow what it
	// may send ahead in all: a few requests whose bodies wait do not stop the others of their connection.
	streamWindow     = 512 << 10
	connectionWindow = 2 << 20
	// maxHeaderTable bounds what a connection keeps of headers that come again, in bytes.
	maxHeaderTable = 4 << 10
	// pingAfter and pingTimeout find a connection of HTTP/2 whose client is gone.
	pingAfter   = time.Minute
	pingTimeout = 15 * time.Second
)

// HTTPOptions are what a server speaks as well as HTTP/1.1; nil: nothing.
type HTTPOptions struct {
	// TLS has the certificate; the listener speaks TLS then, with HTTP/2 for who offers it. Several servers may have the same.
	TLS *tls.Config
	// H2C: HTTP/2 without TLS, for proxies that know that it is spoken.
	H2C bool
}

// HTTPServer is a server for a handler with the limits that a public listener needs; Serve begins it. There is no timeout over a
// whole request: a stream may last for hours. Bodies and unread answers have their own.
func (s *Server) HTTPServer(addr string, handler http.Handler, opts *HTTPOptions) *http.Server {
	if opts == nil {
		opts = new(HTTPOptions)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(opts.TLS != nil)
	protocols.SetUnencryptedHTTP2(opts.H2C)
	said := log.New(&serverLog{log: s.edge.Log()}, "", 0) //nolint:forbidigo // net/http asks for one; what it writes goes to slog
	return &http.Server{
		// net/http writes into its configuration when it begins to serve.
		Addr: addr, Handler: handler, TLSConfig: opts.TLS.Clone(), Protocols: protocols, ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:    idleTimeout,
		MaxHeaderBytes: maxHeaderBytes, ConnContext: withConnection, ErrorLog: said,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams, MaxDecoderHeaderTableSize: maxHeaderTable, MaxEncoderHeaderTableSize: maxHeaderTable,
			MaxReceiveBufferPerConnection: connectionWindow, MaxReceiveBufferPerStream: streamWindow,
			SendPingTimeout: pingAfter, PingTimeout: pingTimeout, WriteByteTimeout: edge.DefaultWriteTimeout,
		},
	}
}

// Serve serves the connections of a listener with what HTTPServer made, until the server ends: http.ErrServerClosed.
func Serve(server *http.Server, listener net.Listener) error {
	if server.TLSConfig != nil {
		return server.ServeTLS(listener, "", "")
	}
	return server.Serve(listener)
}

// serverLog takes what net/http has to say.
type serverLog struct {
	log    *slog.Logger
	logged fair.Rate[warning]
}

// handshakeFailed is how net/http begins what it says of those.
const handshakeFailed = "http: TLS handshake error"

// Write logs one line. Unauthenticated clients may make as many handshakes fail as they like: these are logged once a minute.
func (l *serverLog) Write(line []byte) (int, error) {
	if !bytes.HasPrefix(line, []byte(handshakeFailed)) || l.logged.Take(warnHandshake, 1, often(), time.Now()) == 0 {
		l.log.Warn("http server", "error", string(bytes.TrimSpace(line)))
	}
	return len(line), nil
}
