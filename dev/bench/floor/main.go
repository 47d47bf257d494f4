// Command floor is what the gateway is compared with: the reverse proxy of Go's standard library at its best, and nothing
// else. It is a program of its own because the heap and the packages of a larger program would be part of its figures.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address")
	upstream := flag.String("upstream", "", "address of the upstream, without a path")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := serve(ctx, *listen, *upstream, log); err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to stop
	}
}

// buffers is a pool of copy buffers. Without one the proxy allocates a buffer for each call.
type buffers struct{ sync.Pool }

// bufferSize is the size of the buffers that the proxy allocates itself.
const bufferSize = 32 << 10

// Get implements httputil.BufferPool.
func (b *buffers) Get() []byte {
	if buf, ok := b.Pool.Get().(*[bufferSize]byte); ok {
		return buf[:]
	}
	return make([]byte, bufferSize)
}

// Put implements httputil.BufferPool.
func (b *buffers) Put(buf []byte) { b.Pool.Put((*[bufferSize]byte)(buf)) }

// idlePerHost is large enough to keep the connections of every load open between its requests.
const idlePerHost = 4096

// serve serves until ctx ends, which is not an error. It reads the body before it passes a request on. Without that the
// proxy cuts streams, because an upstream that answers early ends the body, and with it the client's request.
func serve(ctx context.Context, listen, upstream string, log *slog.Logger) error {
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: upstream}) },
		FlushInterval: -1,
		Transport:     &http.Transport{MaxIdleConnsPerHost: idlePerHost, DisableCompression: true},
		BufferPool:    new(buffers),
		ErrorLog:      slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body := make([]byte, max(0, r.ContentLength))
			if _, err := io.ReadFull(r.Body, body); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			proxy.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          proxy.ErrorLog,
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // the clients have ended
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
