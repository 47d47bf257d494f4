package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"modelrelay/dev/checkout"
	"modelrelay/dev/loopback"
	"modelrelay/dev/redis"
	"modelrelay/dev/settings"
)

const (
	// partGrace is what a part gets to end in order.
	partGrace = 20 * time.Second
	// gatewayGrace is longer than the gateway's own grace for open streams and submits.
	gatewayGrace = 3 * time.Minute
	// gatewayStart bounds the time until the gateway says it is ready.
	gatewayStart = 2 * time.Minute
)

// stack is the running whole.
type stack struct {
	environment
	flags *upCommand
	// events gets one line for everything that matters to a person.
	events *slog.Logger

	data      string
	temporary bool
	program   string
	again     string // what a person types instead of program
	root      string // of the checkout

	parts    []*part // in the order they were started
	stopping atomic.Bool
	watchers sync.WaitGroup
}

// places are the addresses the parts listen on.
type places struct {
	temporal, ui, redis, s3, upstream, gateway string
	// metrics are the gateway's; "" where the user's file says where they are.
	metrics string
	// sentinels know which Redis is the primary; none where there is only one.
	sentinels []string
}

// prepare finds what the stack needs on this machine. A stack that was prepared must be closed.
func (s *stack) prepare() (err error) {
	if s.program, err = os.Executable(); err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	s.again = s.program
	s.root, err = checkout.Root(s.home)
	switch {
	case err != nil && !s.flags.Services:
		return err
	case err == nil && s.goRun:
		s.again = "go run -C " + quote(s.shown(filepath.Join(s.root, "dev"))) + " ."
	}
	if s.data, s.temporary, err = s.flags.dataFolder(s.environment); err != nil {
		return err
	}
	for _, dir := range []string{s.logs(), filepath.Dir(s.gatewayBinary())} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("create a folder: %w", err)
		}
	}
	return nil
}

func (s *stack) logs() string          { return filepath.Join(s.data, "logs") }
func (s *stack) gatewayBinary() string { return filepath.Join(s.data, "bin", "gateway") }
func (s *stack) gatewayConfig() string { return filepath.Join(s.data, "gateway.yaml") }

// up starts everything, says what a person needs to know, and prints the ready line.
func (s *stack) up(ctx context.Context) error {
	config, err := s.readConfig()
	if err != nil {
		return err
	}
	at, err := s.claim(config)
	if err != nil {
		return err
	}
	built := make(chan error, 1)
	if s.flags.Services {
		built <- nil
	} else {
		go func() { built <- checkout.Build(ctx, s.root, "./cmd/gateway", s.gatewayBinary(), s.stderr) }()
	}
	err = s.startServices(ctx, at)
	if err := errors.Join(err, <-built); err != nil {
		return err
	}
	if s.flags.Services {
		s.printServices(at)
		return nil
	}
	if err := config.write(s.gatewayConfig(), s.sections(at, config)); err != nil {
		return err
	}
	if err := s.startGateway(ctx, at.gateway); err != nil {
		return err
	}
	s.printStack(at, config, s.consoleLink(ctx))
	return nil
}

// consoleLinkLasts is time enough to see the link, also for who fetches a coffee while the stack compiles.
const consoleLinkLasts = "2h"

// consoleLink asks the gateway's own command for an address that signs the reader in to the console; "" where there is none,
// as in a configuration that switches the console off.
func (s *stack) consoleLink(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, gatewayStart)
	defer cancel()
	command := exec.CommandContext(ctx, s.gatewayBinary(), "console", "--for", consoleLinkLasts, "--config", s.gatewayConfig()) //nolint:gosec // the program that this one has built
	out, err := command.Output()
	if err != nil {
		s.events.Warn("there is no link to the console", "error", err)
		return ""
	}
	return strings.TrimSpace(string(out))
}

// claim settles every address, so that one that is taken is named before anything was started.
func (s *stack) claim(config *gatewayConfig) (at places, err error) {
	for _, a := range []struct {
		part, flag, want string
		got              *string
	}{
		{"Temporal", "--temporal", s.flags.Temporal, &at.temporal},
		{"the Temporal UI", "--ui", s.flags.UI, &at.ui},
		{"Redis", "--redis", s.flags.Redis, &at.redis},
		{"the object store", "--s3", s.flags.S3, &at.s3},
		{"the upstreams", "--upstream", s.flags.Upstream, &at.upstream},
		{"the gateway", "--listen", config.listen, &at.gateway},
		{"the gateway's metrics", "--metrics", s.flags.Metrics, &at.metrics},
	} {
		if s.flags.Services && (a.got == &at.gateway || a.got == &at.metrics) || config.metrics && a.got == &at.metrics {
			continue
		}
		addr, err := loopback.Address(a.want)
		if err != nil {
			return places{}, fmt.Errorf("%s cannot listen on %s: %w: choose another address with %s", a.part, a.want, err, a.flag)
		}
		*a.got = addr.String()
	}
	if s.flags.Parts == production {
		for range redis.SentinelCount {
			addr, err := loopback.Address("127.0.0.1:0")
			if err != nil {
				return places{}, fmt.Errorf("find an address for a sentinel: %w", err)
			}
			at.sentinels = append(at.sentinels, addr.String())
		}
	}
	return at, nil
}

// startServices starts everything but the gateway and returns when all of it answers.
func (s *stack) startServices(ctx context.Context, at places) error {
	parts := "--parts=" + string(s.flags.Parts)
	redisArgs := []string{parts, "--listen", at.redis}
	for _, addr := range at.sentinels {
		redisArgs = append(redisArgs, "--sentinels", addr)
	}
	services := []*part{
		s.service("temporal", parts, "--listen", at.temporal, "--ui", at.ui),
		s.service("redis", redisArgs...),
		s.service("s3", parts, "--listen", at.s3,
			"--access-key", settings.AccessKey, "--secret-key", settings.SecretKey, "--bucket", settings.Bucket),
		s.service("upstream", "--listen", at.upstream),
	}
	ready := make([]<-chan string, len(services))
	for i, p := range services {
		var err error
		if ready[i], err = s.start(p); err != nil {
			return err
		}
	}
	for i, p := range services {
		if _, err := p.await(ctx, ready[i]); err != nil {
			return err
		}
	}
	return s.keepAccount(ctx, at.upstream)
}

func (s *stack) service(name string, args ...string) *part {
	args = slices.Concat([]string{name}, args, []string{"--data", filepath.Join(s.data, name)})
	p := &part{name: name, program: s.program, args: args, again: s.again, grace: partGrace}
	for _, arg := range args {
		p.again += " " + quote(arg)
	}
	return p
}

// startGateway starts the gateway and returns when it says that it is ready.
func (s *stack) startGateway(ctx context.Context, addr string) error {
	binary, config := s.gatewayBinary(), s.gatewayConfig()
	p := &part{
		name: "gateway", program: binary, args: []string{"serve", "--config", config}, grace: gatewayGrace, line: s.gatewayLine,
		again: quote(s.shown(binary)) + " serve --config " + quote(s.shown(config)),
	}
	if _, err := s.start(p); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, gatewayStart)
	defer cancel()
	asked := make(chan error, 1)
	go func() { asked <- awaitReady(ctx, "http://"+addr+"/readyz?for=video") }()
	select {
	case err := <-asked:
		if err != nil {
			return fmt.Errorf("the gateway is not ready: %w%s", err, p.tail.String())
		}
		return nil
	case <-p.child.Done():
		return fmt.Errorf("the gateway ended before it was ready: %s%s", p.status(), p.tail.String())
	}
}

// start starts a part and watches it from then on.
func (s *stack) start(p *part) (<-chan string, error) {
	ready, err := p.start(s.logs())
	if err != nil {
		return nil, err
	}
	s.parts = append(s.parts, p)
	s.watchers.Go(func() {
		<-p.child.Done()
		if !s.stopping.Load() {
			s.events.Error("part ended, the others go on", "part", p.name, "status", p.status(),
				"log", s.shown(filepath.Join(s.logs(), p.name+".log")), "start_again", p.again)
		}
	})
	return ready, nil
}

// close stops what runs, the last started first, and removes a temporary folder.
func (s *stack) close() error {
	s.stopping.Store(true)
	var errs []error
	for _, p := range slices.Backward(s.parts) {
		select {
		case <-p.child.Done():
			continue
		default:
		}
		s.events.Info("stopping", "part", p.name)
		if err := p.child.Stop(p.grace); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", p.name, err))
		}
	}
	s.watchers.Wait()
	if s.temporary {
		if err := os.RemoveAll(s.data); err != nil {
			errs = append(errs, fmt.Errorf("remove the temporary data: %w", err))
		}
	}
	return errors.Join(errs...)
}

// awaitReady asks url until it answers 200; the error of a wait in vain holds the last answer.
func awaitReady(ctx context.Context, url string) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	last := errors.New("never asked")
	client := &http.Client{Timeout: 10 * time.Second}
	for {
		if err := askReady(ctx, client, url); err == nil {
			return nil
		} else if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", last, ctx.Err())
		case <-tick.C:
		}
	}
}

func askReady(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return nil
	}
	body := make([]byte, 1<<10)
	n, _ := response.Body.Read(body) // only for the message
	return fmt.Errorf("%s: %s", response.Status, strings.TrimSpace(string(body[:n])))
}

// forgets reports whether the Redis of the stack keeps nothing.
func forgets() bool { return redis.Server() == "" }

// quote returns arg as a shell takes it for one word.
func quote(arg string) string {
	if arg != "" && !strings.ContainsAny(arg, " \t\n\"'\\$&|;<>()*?[]{}~#`!") {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}
