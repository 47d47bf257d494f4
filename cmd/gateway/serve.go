package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"modelrelay/api"
	"modelrelay/cmd/gateway/internal/cli"
	"modelrelay/providers"
	"modelrelay/storage"
)

type serveCmd struct {
	Worker bool `help:"Run tasks in this process too." default:"true" negatable:""`
}

// Run serves until ctx ends. Then it accepts no connection, waits for open calls within relay.grace, closes realtime conversations with
// "going away", and waits for the answers of running submits.
func (c *serveCmd) Run(ctx context.Context, m *Main, g *cli.Globals) error {
	connections, err := connectionsWithin(m.openFiles())
	if err != nil {
		return err
	}
	p, watch, err := m.start(ctx, g)
	if err != nil {
		return err
	}
	logWarnings(p.log, p.cfg.Warnings(p.catalog))
	tokens, err := p.seedTokens(ctx, m)
	if err != nil {
		return err
	}
	tasks := p.tasks()
	edge, err := p.server(m, tokens, tasks)
	if err != nil {
		return err
	}
	defer p.spareCollections(m.Env)()
	countTasks, closeMetrics, err := p.measure(ctx)
	if err != nil {
		return err
	}
	defer closeMetrics()
	// Calls outlive ctx: its end begins the grace period, and they end with the grace period.
	calls, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	servers, err := p.listen(ctx, edge, connections, calls)
	if err != nil {
		return err
	}

	var background sync.WaitGroup
	defer background.Wait()
	running, stop := context.WithCancel(ctx)
	defer stop()
	background.Go(func() { p.attend(running, watch, tokens, countTasks) })
	background.Go(func() { tasks.Follow(running) })
	if c.Worker {
		background.Go(func() { runWorker(running, p.worker(tokens, edge), p.log) })
	}

	failed := make(chan error, len(servers))
	for _, s := range servers {
		background.Go(func() { failed <- api.Serve(s.server, s.listener) })
	}
	p.log.Info("listening", "address", servers[0].listener.Addr().String(), "tls", p.cfg.TLS.Enabled(), "worker", c.Worker, "connections",
		connections, "channels", len(p.cfg.Channels), "tokens", len(p.cfg.Tokens))
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	p.log.Info("stopping", "grace", p.cfg.Relay.Grace.String())
	grace := time.Now().Add(p.cfg.Relay.Grace)
	edge.Drain()
	//nolint:contextcheck // ctx has ended, the grace period has not
	end(servers, p.cfg.Relay.Grace, p.log, func() {
		cut(&providers.Fault{Kind: providers.Overloaded, Message: "The gateway is stopping."})
		waitForCalls(edge, cutTimeout)
	})
	// The server does not wait for conversations, which are closing.
	if !waitForCalls(edge, max(flushTimeout, time.Until(grace))) { //nolint:contextcheck // ctx has ended
		p.log.Warn("calls are still running after the grace period")
	}
	return nil
}

// openEvery is the interval at which waitForCalls counts the open calls.
const openEvery = 10 * time.Millisecond

// waitForCalls waits until the server has recorded all of its calls, at most limit, and reports whether it has.
func waitForCalls(server *api.Server, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for server.Open().Requests > 0 {
		if storage.Sleep(ctx, openEvery) != nil {
			return false
		}
	}
	return true
}

// cutTimeout is how long calls that are cut off may take to inform their clients.
const cutTimeout = time.Second

type openServer struct {
	server   *http.Server
	listener net.Listener
}

// listen listens for the API and, with admin.listen, separately for the operator's operations. Calls end with the context calls. The
// public server accepts the number of connections.
func (p *parts) listen(ctx context.Context, edge *api.Server, connections int, calls context.Context) ([]openServer, error) { //nolint:revive // two contexts: that of the start, and that of calls
	var servers []openServer
	secured := p.cfg.TLS.Config()
	start := func(address string, handler http.Handler, connections int) error {
		public := len(servers) == 0 // only this one has proxies in front
		listener, err := edge.Listen(ctx, address, connections, &api.ListenOptions{ProxyProtocol: public && p.cfg.ProxyProtocol})
		if err != nil {
			return err
		}
		server := edge.HTTPServer(address, handler, &api.HTTPOptions{TLS: secured, H2C: public && p.cfg.H2C})
		server.BaseContext = func(net.Listener) context.Context { return calls }
		servers = append(servers, openServer{server, listener})
		return nil
	}
	err := start(p.cfg.Listen, edge.Handler(), connections)
	if err == nil && p.cfg.Admin.Listen != "" {
		err = start(p.cfg.Admin.Listen, edge.AdminHandler(), adminConnections)
		if err == nil {
			p.log.Info("the operator interface has its own address", "address", servers[len(servers)-1].listener.Addr().String())
		}
	}
	if err == nil && p.cfg.Console.Enabled && p.cfg.Console.Listen != "" {
		err = start(p.cfg.Console.Listen, edge.ConsoleHandler(), adminConnections)
		if err == nil {
			p.log.Info("the console has its own address", "address", servers[len(servers)-1].listener.Addr().String())
		}
	}
	if err != nil {
		for _, s := range servers {
			_ = s.listener.Close() // no call was accepted
		}
	}
	return servers, err
}

// end closes the listeners immediately, waits for open calls within the grace period, and then cuts off the rest.
func end(servers []openServer, grace time.Duration, log *slog.Logger, cut func()) {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	errs := make([]error, len(servers))
	var all sync.WaitGroup
	for i, s := range servers {
		all.Go(func() { errs[i] = s.server.Shutdown(ctx) })
	}
	all.Wait()
	err := errors.Join(errs...)
	if errors.Is(err, context.DeadlineExceeded) {
		log.Warn("open calls are cut off", "grace", grace.String())
		cut()
		// The server sends a call's last bytes and the end of its answer after the call returns.
		last, cancel := context.WithTimeout(context.Background(), cutTimeout)
		defer cancel()
		for i, s := range servers {
			all.Go(func() {
				_ = s.server.Shutdown(last) // open connections are closed next
				errs[i] = s.server.Close()
			})
		}
		all.Wait()
		err = errors.Join(errs...)
	}
	if err != nil {
		log.Warn("the listener did not close cleanly", "error", err)
	}
}
