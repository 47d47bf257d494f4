// Package temporal runs a Temporal server with its web UI on the loopback address: the whole of it inside this process with
// SQLite underneath, one file, or, as production has it, each role in a process of its own on PostgreSQL. It imports nothing of
// the rest of the stack but loopback, settings, supervise and postgres.
package temporal

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"time"

	uiserver "github.com/temporalio/ui-server/v2/server"
	uiconfig "github.com/temporalio/ui-server/v2/server/config"
	uioptions "github.com/temporalio/ui-server/v2/server/server_options"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"modelrelay/dev/loopback"
)

// startTimeout bounds the time between the server's start and its first useful answer. A kept database of many
// gigabytes on a busy machine takes seconds, not minutes.
const startTimeout = 2 * time.Minute

// gcPercent is how much the heap may grow between two collections, where GOGC does not say. The server makes much garbage over
// a small heap: at Go's 100 a tenth of its CPU time goes into collecting, at 200 half of that.
const gcPercent = 200

// Options says where the server listens and keeps its state.
type Options struct {
	// Listen is the frontend's address; port 0 picks a free one.
	Listen string
	// UI is the web UI's address; empty means no UI.
	UI string
	// Codec is the address of a remote codec, which browsers ask with the credentials that they have for it; empty: none.
	Codec string
	// Data is the folder of the database, an absolute path. It must exist.
	Data string
	// Ready is called once, with the frontend's address, when the namespace answers and its search attributes can
	// be used.
	Ready func(addr string)
	// Log receives the server's own words.
	Log *slog.Logger
}

// Run serves until ctx ends, then stops in order and returns nil. Killing the process at any moment loses nothing
// that was acknowledged: the next Run on the same folder continues.
func Run(ctx context.Context, o Options) error {
	frontend, page, err := o.addresses()
	if err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	server, err := newServer(frontend, o.Data, o.Log)
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	defer func() {
		if err := server.Stop(); err != nil {
			o.Log.Error("temporal did not stop cleanly", "error", err)
		}
	}()
	return serve(ctx, o, frontend, page)
}

// addresses settles where the frontend and the UI listen; the UI's is none where there is no UI.
func (o Options) addresses() (frontend, page netip.AddrPort, err error) {
	if frontend, err = loopback.Address(o.Listen); err != nil {
		return frontend, page, fmt.Errorf("listen address: %w", err)
	}
	if o.UI != "" {
		if page, err = loopback.Address(o.UI); err != nil {
			return frontend, page, fmt.Errorf("address of the UI: %w", err)
		}
	}
	return frontend, page, nil
}

// serve waits for the frontend, starts the UI where page is an address, and returns when ctx ends.
func serve(ctx context.Context, o Options, frontend, page netip.AddrPort) error {
	err := prepare(ctx, frontend.String(), o.Log)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	if page.IsValid() {
		// It is made only now because it connects at once, and pauses after a refusal.
		ui := newUI(page, frontend, o.Codec)
		end := make(chan error, 1)
		go func() { end <- ui.Start() }()
		defer func() {
			ui.Stop()
			if err := <-end; err != nil {
				o.Log.Error("the UI did not stop cleanly", "error", err)
			}
		}()
		err := until(ctx, func() error { return dial(ctx, page.String()) })
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("start the UI: %w", err)
		}
	}
	o.Ready(frontend.String())
	<-ctx.Done()
	return nil
}

// prepare brings the namespace to what the gateway expects and returns when it can be used.
func prepare(ctx context.Context, addr string, logger *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	c, err := client.NewLazyClient(client.Options{HostPort: addr, Logger: log.NewStructuredLogger(logger)})
	if err != nil {
		return fmt.Errorf("make a client of the server: %w", err)
	}
	defer c.Close()
	return ensureNamespace(ctx, c)
}

func newUI(listen, frontend netip.AddrPort, codec string) *uiserver.Server {
	return uiserver.NewServer(uioptions.WithConfigProvider(&uiconfig.Config{
		Host:                listen.Addr().String(),
		Port:                int(listen.Port()),
		TemporalGRPCAddress: frontend.String(),
		EnableUI:            true,
		CORS:                uiconfig.CORS{CookieInsecure: true}, // plain HTTP on loopback
		Codec:               uiconfig.Codec{Endpoint: codec, IncludeCredentials: codec != ""},
		DisableNewsFetch:    true,
		HideLogs:            true,
	}))
}

func dial(ctx context.Context, addr string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return conn.Close()
}
