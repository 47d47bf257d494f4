package upstream

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"modelrelay/dev/loopback"
	"modelrelay/dev/upstream/jobs"
)

// Options say where the fakes listen, what they keep and how fast they are.
type Options struct {
	// Listen is the address to listen on; empty means 127.0.0.1 and a free port.
	Listen string
	// Data is the folder the video jobs are kept in; it is made when absent. Empty: jobs end with the process.
	Data string
	// Ready, when set, is called once with the address, as soon as calls are answered.
	Ready func(addr string)
	// Log receives one line at start and what goes wrong inside; nil discards.
	Log *slog.Logger

	// VideoMin and VideoMax bound how long a video job takes; both zero means 15 to 25 seconds. Each job has its own
	// duration between them, which depends on nothing but how many jobs came before.
	VideoMin, VideoMax time.Duration
	// ChunkInterval is the time between two events of a stream; zero means 20 ms, negative none.
	ChunkInterval time.Duration
	// LinkLife is how long a result link works; zero means what the vendor says, else an hour.
	LinkLife time.Duration
}

func (o Options) withDefaults() Options {
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.VideoMin <= 0 && o.VideoMax <= 0 {
		o.VideoMin, o.VideoMax = 15*time.Second, 25*time.Second
	}
	o.VideoMax = max(o.VideoMin, o.VideoMax)
	if o.ChunkInterval == 0 {
		o.ChunkInterval = 20 * time.Millisecond
	}
	return o
}

// stopGrace is how long Run waits for calls in progress after ctx and their own contexts have ended.
const stopGrace = 2 * time.Second

// Run serves the fakes until ctx ends, then returns nil. It cuts calls that are still in progress, also those that hang.
func Run(ctx context.Context, o Options) error {
	o = o.withDefaults()
	store, err := jobs.Open(o.Data)
	if err != nil {
		return fmt.Errorf("open upstream jobs: %w", err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			o.Log.Error("upstream jobs not closed", "error", err)
		}
	}()

	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return fmt.Errorf("listen for upstream calls: %w", err)
	}
	s := newServer(ctx, o, store)
	server := &http.Server{
		Handler:           s.Mux,
		ReadHeaderTimeout: 30 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnState:         s.Connections.Observe,
		ErrorLog:          slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn),
	}
	o.Log.Info("upstream listening", "address", listener.Addr().String(), "jobs", store.Count())
	if o.Ready != nil {
		o.Ready(listener.Addr().String())
	}

	if err := loopback.Serve(ctx, server, listener, stopGrace); err != nil {
		return fmt.Errorf("serve upstream calls: %w", err)
	}
	return nil
}
