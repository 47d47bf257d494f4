package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"modelrelay/dev/loopback"
	"modelrelay/dev/process"
)

const (
	// startTimeout bounds the time until a process answers, a whole stack as well.
	startTimeout = 3 * time.Minute
	// stopGrace is what a process gets to end in order.
	stopGrace   = time.Minute
	askInterval = 20 * time.Millisecond

	nowhere     = "127.0.0.1:1" // nobody listens there: relayed calls need neither Temporal nor the archive
	gatewayName = "gateway"
	upstreamKey = "sk-upstream-bench"
	clientKey   = "sk-bench"
)

// stage is what the loads meet: Redis and the upstream for all of them, floor and gateway anew for each.
type stage struct {
	options         Options
	client          *http.Client // for what is no load
	redis, upstream *child
	collector       *collector
	fresh           []*child // since the last clear, in the order of their start
	started         int
}

// child is a process of the stage.
type child struct {
	name, addr, log string
	env             []string // beyond our own

	process *process.Child
}

// target is what a load is sent to.
type target struct {
	name, addr  string
	prefix, key string // of the path, and of the Authorization header
	// model and streamModel are asked for in place of the load's own; "" for those.
	model, streamModel string
	// messages: the chats are of Anthropic's format.
	messages bool
	pid      int
}

func (s *stage) prepare(ctx context.Context) error {
	s.collector = newCollector()
	err := s.options.Gateway(ctx, s.gatewayBinary())
	if err == nil {
		err = s.options.Floor(ctx, s.floorBinary())
	}
	if err != nil {
		return err
	}
	if s.redis, err = s.part(ctx, "redis"); err != nil {
		return err
	}
	s.upstream, err = s.part(ctx, "upstream")
	return err
}

func (s *stage) gatewayBinary() string { return filepath.Join(s.options.Data, "gateway") }
func (s *stage) floorBinary() string   { return filepath.Join(s.options.Data, "floor") }

// part starts a part of the stack by its sub-command.
func (s *stage) part(ctx context.Context, name string) (*child, error) {
	return s.partIn(ctx, name, name)
}

// partIn is part for one of several of the same name, each with a folder of its own.
func (s *stage) partIn(ctx context.Context, name, folder string) (*child, error) {
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	data := filepath.Join(s.options.Data, folder)
	return s.start(ctx, &child{name: name, addr: addr}, connects, s.options.Program, name, "--listen", addr, "--data", data)
}

// pair starts a floor and a gateway.
func (s *stage) pair(ctx context.Context) (floor, gateway target, err error) {
	proxy, err := s.proxy(ctx)
	if err != nil {
		return target{}, target{}, err
	}
	addr, err := freeAddress()
	if err != nil {
		return target{}, target{}, err
	}
	config := filepath.Join(s.options.Data, "gateway.yaml")
	if err := os.WriteFile(config, s.config(addr), 0o600); err != nil {
		return target{}, target{}, fmt.Errorf("write the configuration: %w", err)
	}
	// The worker is for tasks.
	relay, err := s.start(ctx, &child{name: gatewayName, addr: addr, env: s.collector.env()}, s.answers("/healthz"),
		s.gatewayBinary(), "serve", "--worker=false", "--config", config)
	if err != nil {
		return target{}, target{}, err
	}
	s.fresh = append(s.fresh, relay)
	floor = target{name: "floor", addr: proxy.addr, prefix: "/openai", key: upstreamKey, pid: proxy.process.Pid()}
	gateway = target{name: gatewayName, addr: relay.addr, key: clientKey, pid: relay.process.Pid()}
	return floor, gateway, nil
}

// direct is the upstream itself.
func (s *stage) direct() target {
	return target{name: "upstream", addr: s.upstream.addr, prefix: "/openai", key: upstreamKey, pid: s.upstream.process.Pid()}
}

// config is that of a gateway with everything on that costs something: a line of log per request, metrics, a token with
// every limit, a budget and permissions, so that Redis is asked for every call, prices, and the ledger. Traces are the
// collector's.
func (s *stage) config(listen string) []byte {
	return fmt.Appendf(nil, `listen: %s
metrics: {listen: 127.0.0.1:0}
log: {level: info, format: json}
redis: {url: redis://%s/0}
temporal: {address: %s}
archive: {endpoint: http://%s, bucket: videos, access_key: none, secret_key: none-at-all}
tokens:
  - name: bench
    key: %s
    models: ["gpt-*"]
    networks: [127.0.0.0/8]
    operations: [relay]
    requests_per_minute: 1000000000
    tokens_per_minute: 1000000000000
    concurrency: 100000
    budget: 1000000000
prices:
  %s: {input: 0.15, cached_input: 0.075, output: 0.6}
  %s: {input: 0.15, output: 0.6}
  %s: {input: 0.15, cached_input: 0.075, output: 0.6}
  %s: {input: 0.15, output: 0.6}
channels:
  - {name: bench, vendor: openai, base_url: http://%s/openai/v1, keys: [%s], models: {"*": }}
  - {name: translated, vendor: anthropic, priority: 1, base_url: http://%s/anthropic, keys: [%s], models: {%s: %s, %s: %s}}
`, listen, s.redis.addr, nowhere, nowhere, clientKey, chatModel, streamModel, translatedModel, translatedStream,
		s.upstream.addr, upstreamKey, s.upstream.addr, upstreamKey, translatedModel, claudeModel, translatedStream, claudeStream)
}

// start starts a process and returns when it answers.
func (s *stage) start(ctx context.Context, c *child, ready func(ctx context.Context, addr string) error, program string, args ...string) (*child, error) {
	s.started++
	c.log = filepath.Join(s.options.Data, fmt.Sprintf("%02d-%s.log", s.started, c.name))
	out, err := os.Create(c.log)
	if err != nil {
		return nil, fmt.Errorf("%s: create its log: %w", c.name, err)
	}
	cmd := exec.Command(program, args...) //nolint:gosec,noctx // our own programs; stop ends them in order, a context would kill
	cmd.Env = append(os.Environ(), c.env...)
	// A file of its own, no pipe: nobody's reading is part of the figures.
	cmd.Stdout, cmd.Stderr = out, out
	c.process, err = process.Start(cmd, syscall.SIGTERM)
	if err := errors.Join(err, out.Close()); err != nil {
		return nil, fmt.Errorf("%s: start: %w", c.name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(askInterval)
	defer tick.Stop()
	for {
		err := ready(ctx, c.addr)
		if err == nil {
			return c, nil
		}
		select {
		case <-tick.C:
			continue
		case <-c.process.Done():
			err = fmt.Errorf("it ended: %v", c.process.Err()) //nolint:errorlint // nil after status 0
		case <-ctx.Done():
		}
		return nil, errors.Join(fmt.Errorf("%s does not answer: %w%s", c.name, err, c.words()), c.stop())
	}
}

func (c *child) stop() error {
	if c == nil {
		return nil
	}
	if err := c.process.Stop(stopGrace); err != nil {
		return fmt.Errorf("stop %s: %w", c.name, err)
	}
	return nil
}

// words are the last lines that a process said.
func (c *child) words() string {
	const most = 5
	text, err := os.ReadFile(c.log)
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return "\n    " + strings.Join(lines[max(0, len(lines)-most):], "\n    ")
}

// clear ends what was started for one load.
func (s *stage) clear() error {
	var errs []error
	for _, c := range slices.Backward(s.fresh) {
		errs = append(errs, c.stop())
	}
	s.fresh = nil
	return errors.Join(errs...)
}

// close ends everything.
func (s *stage) close() error {
	err := errors.Join(s.clear(), s.upstream.stop(), s.redis.stop())
	if s.collector != nil {
		s.collector.close()
	}
	return err
}

// freeAddress returns an address of this machine that nobody listens on.
func freeAddress() (string, error) {
	addr, err := loopback.Address("127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free address: %w", err)
	}
	return addr.String(), nil
}

// connects tells whether somebody listens.
func connects(ctx context.Context, addr string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return conn.Close()
}

// answers tells whether a path answers 200.
func (s *stage) answers(path string) func(ctx context.Context, addr string) error {
	return func(ctx context.Context, addr string) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+path, nil)
		if err != nil {
			return err
		}
		response, err := s.client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("answered %s", response.Status)
		}
		return drain(response.Body)
	}
}
